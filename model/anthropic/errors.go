package anthropic

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"memgpt"
	"memgpt/internal/wire"
)

// fault is a failed call: the error for the caller and what this package judges by.
type fault struct {
	err    *memgpt.Error
	status int    // of the HTTP answer; 0 when there was none
	said   string // what the server said
	stale  bool   // the connection was an old one that the server had closed
}

func down(format string, args ...any) *fault {
	return &fault{err: memgpt.Errorf(memgpt.CodeModelDown, format, args...)}
}

// unreachable maps the failure of a call to which no answer came.
func (m *Model) unreachable(w *wire.Watch, err error, reused bool) *fault {
	e, stale := wire.Unreachable(w, "messages at "+m.host, "can it be reached?", err, reused)
	return &fault{err: e, stale: stale}
}

// refused maps an answer with a status that is neither a success nor taken for an error by the SDK: redirects.
func (m *Model) refused(resp *http.Response) *fault {
	text := "messages at " + m.host + ": status " + strconv.Itoa(resp.StatusCode)
	if to := resp.Header.Get("Location"); to != "" {
		text += " (set the base URL to " + wire.Shown(to) + ")"
	}
	return &fault{err: &memgpt.Error{Code: memgpt.CodeModelRequest, Text: text}, status: resp.StatusCode}
}

// saidLimit is the most of a provider's words that an error repeats.
const saidLimit = 1000

// refusal maps an error that came with its status.
func (m *Model) refusal(e *sdk.Error) *fault {
	w := wireError{kind: string(e.Type()), code: string(e.ErrorCode()), text: e.Message}
	if w.text == "" {
		w.text = plainBody(e.RawJSON(), e.Response)
	}
	w.text = m.hide(w.text)
	err := w.judge(e.StatusCode)
	err.Text = "messages at " + m.host + ": status " + strconv.Itoa(e.StatusCode) + advice(err.Code, e.StatusCode) + ": " + w.text
	if e.RequestID != "" {
		err.Text += " (request " + memgpt.CutText(memgpt.CleanText(e.RequestID), 100) + ")"
	}
	if e.Response != nil && (err.Code == memgpt.CodeModelLimit || err.Code == memgpt.CodeModelDown) {
		err.RetryAfter = retryAfter(e.Response.Header, m.cfg.Now())
	}
	return &fault{err: err, status: e.StatusCode, said: w.text}
}

// plainBody returns what a server says that doesn't speak the API's errors, such as a proxy.
func plainBody(raw string, resp *http.Response) string {
	if raw == "" && resp != nil && resp.Body != nil {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, saidLimit))
		raw = string(b)
	}
	if strings.TrimSpace(raw) == "" {
		return "no explanation"
	}
	return raw
}

// hide makes a provider's words fit to be shown: short, clean, without the key.
func (m *Model) hide(s string) string {
	return memgpt.CutText(strings.TrimSpace(wire.Hide(memgpt.CleanText(s), m.cfg.APIKey)), saidLimit)
}

// advice tells what to do about a refusal, where that is not clear from the provider's words.
func advice(code memgpt.Code, status int) string {
	switch {
	case code == memgpt.CodeModelAuth:
		return " (check the API key)"
	case status == http.StatusNotFound:
		return " (check the model's name, and the base URL)"
	}
	return ""
}

// wireError is an error as the API tells it (its reference, "Errors", version 2026-10-21).
type wireError struct {
	kind string // error.type
	code string // error.details.error_code
	text string // error.message
}

// faultInStream maps an error that comes with status 200, as an event or as the body.
func faultInStream(data []byte) *fault {
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Details struct {
				Code string `json:"error_code"`
			} `json:"details"`
		} `json:"error"`
	}
	w := wireError{}
	if json.Unmarshal(data, &body) == nil {
		w = wireError{body.Error.Type, body.Error.Details.Code, body.Error.Message}
	}
	if w.text == "" {
		w.text = string(data)
	}
	w.text = memgpt.CutText(strings.TrimSpace(memgpt.CleanText(w.text)), saidLimit)
	e := w.judge(statusOf(w.kind))
	e.Text = "messages: the answer ended in an error: " + w.text
	return &fault{err: e}
}

// statusOf is the status that comes with a type of error.
func statusOf(kind string) int {
	switch kind {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "timeout_error":
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// overflows are the API's words for a request over the window. The second speaks of prompt and reply together.
var overflows = []*regexp.Regexp{
	regexp.MustCompile(`prompt is too long: (\d+) tokens > (\d+)`),
	regexp.MustCompile(`exceed context limit: (\d+) \+ \d+ > (\d+)`),
	regexp.MustCompile(`(?:prompt|input) is too long()()`),
}

// broke matches what is said of an account without credit, or over a limit of money, whatever the status.
var broke = regexp.MustCompile(`credit balance is too low|reached your specified api usage limits|spend limit`)

// judge gives an error its code.
func (w *wireError) judge(status int) *memgpt.Error {
	text := strings.ToLower(w.text)
	for _, re := range overflows {
		if m := re.FindStringSubmatch(text); m != nil && status != http.StatusTooManyRequests {
			e := &memgpt.Error{Code: memgpt.CodeModelOverflow}
			e.Tokens, _ = strconv.Atoi(m[1])
			e.Limit, _ = strconv.Atoi(m[2])
			return e
		}
	}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return &memgpt.Error{Code: memgpt.CodeModelOverflow}
	case status == http.StatusPaymentRequired, w.kind == "billing_error", strings.HasSuffix(w.code, "spend_limit_reached"), broke.MatchString(text):
		return &memgpt.Error{Code: memgpt.CodeModelQuota}
	case w.kind == "overloaded_error":
		return &memgpt.Error{Code: memgpt.CodeModelDown}
	}
	return &memgpt.Error{Code: statusCode(status)}
}

func statusCode(status int) memgpt.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return memgpt.CodeModelAuth
	case http.StatusTooManyRequests:
		return memgpt.CodeModelLimit
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return memgpt.CodeModelTimeout
	case http.StatusConflict:
		return memgpt.CodeModelDown
	}
	if status >= 500 && status != http.StatusNotImplemented {
		return memgpt.CodeModelDown // 529 is the API's own for "overloaded"
	}
	return memgpt.CodeModelRequest
}

// maxWait bounds what is believed of a number, so that no arithmetic overflows.
const maxWait = 30 * 24 * time.Hour

// limits are the budgets that the API tells of in headers.
var limits = []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"}

// retryAfter returns how long the API asks to wait; 0 when it does not say. Retry-After is in seconds or a date
// (RFC 9110, section 10.2.3); without it, the latest reset of a budget that is used up counts.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if v, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After")), 64); err == nil && v > 0 {
		return time.Duration(min(v, maxWait.Seconds()) * float64(time.Second))
	}
	if t, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(t.Sub(now), 0), maxWait)
	}
	var wait time.Duration
	for _, name := range limits {
		if h.Get("Anthropic-Ratelimit-"+name+"-Remaining") != "0" {
			continue
		}
		if t, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+name+"-Reset")); err == nil {
			wait = max(wait, t.Sub(now))
		}
	}
	return min(wait, maxWait)
}
