package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// fault is a failed call: the error for the caller and what this package judges by.
type fault struct {
	err    *memgpt.Error
	status int    // of the HTTP answer; 0 when there was none
	said   string // what the server said, unshortened
	stale  bool   // the connection was an old one that the server had closed
}

func down(format string, args ...any) *fault {
	return &fault{err: memgpt.Errorf(memgpt.CodeModelDown, format, args...)}
}

func empty(text string) *fault { return &fault{err: memgpt.Errorf(memgpt.CodeModelEmpty, "%s", text)} }

// callName names one of the two APIs in the words of errors.
func callName(responses bool) string {
	if responses {
		return "responses"
	}
	return "chat completion"
}

// unreachable maps the failure of a call to which no answer came.
func (m *Model) unreachable(call string, w *wire.Watch, err error, reused bool) *fault {
	e, stale := wire.Unreachable(w, call+" at "+m.base.Host, "is the server running?", err, reused)
	return &fault{err: e, stale: stale}
}

// saidLimit bounds what is read of the body of an error.
const saidLimit = 64 << 10

// refused maps an answer with a status that is not a success.
func (m *Model) refused(call string, resp *http.Response) *fault {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, saidLimit))
	said := wire.Hide(memgpt.CleanText(string(body)), m.cfg.APIKey)
	w := readError([]byte(said))
	e := w.judge(resp.StatusCode)
	e.Text = call + " at " + m.base.Host + ": status " + strconv.Itoa(resp.StatusCode) + advice(e.Code, resp) + ": " + w.text
	if e.Code == memgpt.CodeModelLimit || e.Code == memgpt.CodeModelDown {
		e.RetryAfter = retryAfter(resp.Header, said, m.cfg.Now(), e.Code == memgpt.CodeModelLimit)
	}
	return &fault{err: e, status: resp.StatusCode, said: said}
}

// advice tells what to do about a refusal, where that is not clear from the provider's words.
func advice(code memgpt.Code, resp *http.Response) string {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return " (set the base URL to " + wire.Shown(resp.Header.Get("Location")) + ")"
	case code == memgpt.CodeModelAuth:
		return " (check the API key)"
	case resp.StatusCode == http.StatusNotFound:
		return " (check the base URL, which mostly ends in /v1, and the model's name)"
	}
	return ""
}

// wireError is an error as a server sends it.
type wireError struct {
	text   string // its message, shortened
	code   string // its code and type, in lower case
	status int    // the code, where that is a number
	prompt int    // n_prompt_tokens and n_ctx of llama.cpp
	window int
}

// errorFields are the names under which servers tell of errors, at the top or under "error".
type errorFields struct {
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"` // FastAPI
	Err     json.RawMessage `json:"error"`
	Type    label           `json:"type"`
	Code    label           `json:"code"`
	Status  label           `json:"status"` // Google
	Prompt  int             `json:"n_prompt_tokens"`
	Window  int             `json:"n_ctx"`
}

// readError reads the body of an error in any shape: OpenAI's object, a plain string (Ollama, LM Studio), a list
// (Google), a detail (FastAPI), a page (proxies) or words.
func readError(body []byte) wireError {
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte("<")) {
		return wireError{text: "a web page: " + pageTitle(memgpt.CleanText(string(body)))}
	}
	w := wireError{text: memgpt.CutText(memgpt.CleanText(string(body)), 500)}
	w.read(body, 0)
	if w.text == "" {
		w.text = "no explanation"
	}
	return w
}

func (w *wireError) read(raw json.RawMessage, depth int) {
	if depth > 3 || len(raw) == 0 {
		return
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			w.read(list[0], depth+1)
		}
	case '"':
		w.say(clean(unquote(raw)))
	case '{':
		w.readFields(raw, depth)
	}
}

func (w *wireError) readFields(raw json.RawMessage, depth int) {
	var f errorFields
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, &f); err != nil && !errors.As(err, &wrong) {
		return
	}
	w.code = strings.ToLower(strings.Join([]string{w.code, string(f.Code), string(f.Type), string(f.Status)}, " "))
	if n, err := strconv.Atoi(string(f.Code)); err == nil && n >= 400 && n < 600 {
		w.status = n
	}
	w.prompt, w.window = max(w.prompt, f.Prompt), max(w.window, f.Window)
	if len(f.Message) > 0 && f.Message[0] == '"' {
		w.say(clean(unquote(f.Message)))
	}
	if len(f.Detail) > 0 && f.Detail[0] == '"' {
		w.say(clean(unquote(f.Detail)))
	}
	w.read(f.Err, depth+1)
}

func (w *wireError) say(s string) {
	if s = strings.TrimSpace(s); s != "" {
		w.text = memgpt.CutText(s, 1000)
	}
}

// pageTitle returns the title of a web page, or its beginning.
func pageTitle(page string) string {
	lower := strings.ToLower(page)
	if i := strings.Index(lower, "<title>"); i >= 0 && len(lower) == len(page) {
		if j := strings.Index(lower[i:], "</title>"); j >= 0 {
			return memgpt.CutText(strings.TrimSpace(page[i+len("<title>"):i+j]), 200)
		}
	}
	return memgpt.CutText(page, 100)
}

// pageFault is a page where an answer should be: with status 200 it comes from something else than a model's server.
func pageFault(call string, body io.Reader, host string) *fault {
	page, _ := io.ReadAll(io.LimitReader(body, 4<<10))
	return &fault{err: memgpt.Errorf(memgpt.CodeModelRequest,
		"%s at %s: a web page came instead of an answer (%s): check the base URL, which mostly ends in /v1",
		call, host, pageTitle(memgpt.CleanText(string(page))))}
}

// faultInStream maps an error that comes with status 200, as an event or as the body.
func faultInStream(call string, data []byte) *fault {
	w := readError(data)
	status := w.status
	switch {
	case status != 0:
	case strings.Contains(w.code, "rate_limit_exceeded"):
		status = http.StatusTooManyRequests
	case strings.Contains(w.code, "invalid_api_key"), strings.Contains(strings.ToLower(w.text), "api key"):
		status = http.StatusUnauthorized
	case strings.Contains(w.code, "invalid_"):
		status = http.StatusBadRequest
	default:
		status = http.StatusInternalServerError
	}
	e := w.judge(status)
	e.Text = call + ": the answer ended in an error: " + w.text
	return &fault{err: e}
}

// judge gives an error its code. The words come before the status, which many servers choose badly.
func (w *wireError) judge(status int) *memgpt.Error {
	text := strings.ToLower(w.text)
	switch {
	case w.overflows(status, text):
		e := &memgpt.Error{Code: memgpt.CodeModelOverflow}
		e.Tokens, e.Limit = w.sizes()
		return e
	case w.broke(status, text):
		return &memgpt.Error{Code: memgpt.CodeModelQuota}
	case status >= 500 && forms(text):
		return &memgpt.Error{Code: memgpt.CodeModelRequest}
	}
	return &memgpt.Error{Code: statusCode(status)}
}

// broke reports whether credit is used up.
func (w *wireError) broke(status int, text string) bool {
	if status == http.StatusPaymentRequired {
		return true
	}
	for _, mark := range []string{"insufficient_quota", "insufficient balance", "insufficient credits", "exceeded your current quota", "billing_hard_limit"} {
		if strings.Contains(w.code, mark) || strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// forms reports whether a server's failure is really about the form of the request, so that it would fail each time:
// llama.cpp and LM Studio fail so at a history that their templates don't take.
func forms(text string) bool {
	for _, mark := range []string{"failed to parse tool call arguments", "roles must alternate", "no user query found", "jinja", "chat template", "input is not supported"} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

func statusCode(status int) memgpt.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return memgpt.CodeModelAuth
	case http.StatusPaymentRequired:
		return memgpt.CodeModelQuota
	case http.StatusTooManyRequests:
		return memgpt.CodeModelLimit
	case http.StatusRequestTimeout, http.StatusGatewayTimeout, 524: // 524: Cloudflare
		return memgpt.CodeModelTimeout
	case http.StatusConflict, http.StatusTooEarly:
		return memgpt.CodeModelDown
	}
	if status >= 500 && status != http.StatusNotImplemented {
		return memgpt.CodeModelDown
	}
	return memgpt.CodeModelRequest
}

// retryAfter returns how long a provider asks to wait; 0 when it does not say. Headers come before words. Those of rate
// limits count only where one was passed: OpenAI sends them with every answer, a failure of its own too.
func retryAfter(h http.Header, said string, now time.Time, limited bool) time.Duration {
	var limit time.Duration
	if limited {
		limit = resets(h, now)
	}
	for _, d := range []time.Duration{
		number(h.Get("Retry-After-Ms"), time.Millisecond),
		afterHeader(h.Get("Retry-After"), now),
		limit,
		inWords(said),
	} {
		if d > 0 {
			return d
		}
	}
	return 0
}

// afterHeader reads Retry-After: seconds or a date (RFC 9110, section 10.2.3).
func afterHeader(s string, now time.Time) time.Duration {
	if d := number(s, time.Second); d > 0 {
		return d
	}
	if t, err := http.ParseTime(s); err == nil {
		return min(max(t.Sub(now), 0), maxWait)
	}
	return 0
}

// maxWait bounds what is believed of a number, so that no arithmetic overflows.
const maxWait = 30 * 24 * time.Hour

func number(s string, unit time.Duration) time.Duration {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v > 0) {
		return 0
	}
	if v >= float64(maxWait/unit) {
		return maxWait
	}
	return time.Duration(v * float64(unit))
}
