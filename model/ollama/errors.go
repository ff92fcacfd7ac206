package ollama

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// unreachable maps the failure of a call to which no answer came.
func (m *Model) unreachable(w *wire.Watch, err error, reused bool) *fault {
	e, stale := wire.Unreachable(w, "Ollama at "+m.base.Host, "is it running (`ollama serve`)?", err, reused)
	return &fault{err: e, stale: stale}
}

// saidLimit is the most of a server's words that an error repeats.
const saidLimit = 1000

// refused maps an answer with a status that is not a success.
func (m *Model) refused(resp *http.Response, what, model string) *fault {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct {
		Error string `json:"error"`
	}
	said := string(data)
	if json.Unmarshal(data, &body) == nil && body.Error != "" {
		said = body.Error
	}
	if said = m.hide(said); said == "" {
		said = "no explanation"
	}
	e := judge(resp.StatusCode, said)
	e.Text = what + " at " + m.base.Host + ": status " + strconv.Itoa(resp.StatusCode) + advice(e.Code, resp, said, model) + ": " + said
	if e.Code == memgpt.CodeModelLimit || e.Code == memgpt.CodeModelDown {
		e.RetryAfter = retryAfter(resp.Header)
	}
	return &fault{err: e, said: strings.ToLower(said)}
}

// hide makes a server's words fit to be shown: short, clean, without the key.
func (m *Model) hide(s string) string {
	return memgpt.CutText(strings.TrimSpace(wire.Hide(memgpt.CleanText(s), m.cfg.APIKey)), saidLimit)
}

// advice tells what to do about a refusal, where that is not clear from the server's words.
func advice(code memgpt.Code, resp *http.Response, said, model string) string {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return " (set the base URL to " + wire.Shown(resp.Header.Get("Location")) + ")"
	case resp.StatusCode == http.StatusNotFound && model != "" && strings.Contains(said, "not found"):
		return " (the server doesn't have the model: `ollama pull " + model + "` loads it down)"
	case code == memgpt.CodeModelAuth:
		return " (check the API key)"
	case strings.Contains(said, "more system memory"):
		return " (take a smaller model, or give the agent a smaller window)"
	}
	return ""
}

// overflows are the words for a prompt over num_ctx: of llama.cpp's server inside Ollama (0.30 and later), and of Ollama's
// own runners.
var overflows = []*regexp.Regexp{
	regexp.MustCompile(`request \((\d+) tokens\) exceeds the available context size \((\d+) tokens\)`),
	regexp.MustCompile(`exceeds? (?:the )?(?:available |maximum )?context()()`),
	regexp.MustCompile(`(?:prompt|input) is too long()()`),
}

// judge gives an error its code. The words come before the status, which an error inside a stream doesn't have.
func judge(status int, said string) *memgpt.Error {
	text := strings.ToLower(said)
	for _, re := range overflows {
		if m := re.FindStringSubmatch(text); m != nil {
			e := &memgpt.Error{Code: memgpt.CodeModelOverflow}
			e.Tokens, _ = strconv.Atoi(m[1])
			e.Limit, _ = strconv.Atoi(m[2])
			return e
		}
	}
	if strings.Contains(text, "more system memory") {
		return &memgpt.Error{Code: memgpt.CodeModelRequest}
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &memgpt.Error{Code: memgpt.CodeModelAuth}
	case http.StatusPaymentRequired:
		return &memgpt.Error{Code: memgpt.CodeModelQuota}
	case http.StatusTooManyRequests:
		return &memgpt.Error{Code: memgpt.CodeModelLimit}
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return &memgpt.Error{Code: memgpt.CodeModelTimeout}
	case http.StatusNotImplemented:
		return &memgpt.Error{Code: memgpt.CodeModelRequest}
	}
	if status >= 500 {
		return &memgpt.Error{Code: memgpt.CodeModelDown}
	}
	return &memgpt.Error{Code: memgpt.CodeModelRequest}
}

// maxWait bounds what is believed of a number, so that no arithmetic overflows.
const maxWait = 30 * 24 * time.Hour

// retryAfter reads Retry-After in seconds; 0 when there is none.
func retryAfter(h http.Header) time.Duration {
	v, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After")), 64)
	if err != nil || !(v > 0) {
		return 0
	}
	return time.Duration(min(v, maxWait.Seconds()) * float64(time.Second))
}
