package openai

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
	Encoding   string   `json:"encoding_format,omitempty"`
}

type answer struct {
	Data []struct {
		Index     *int   `json:"index"`
		Embedding vector `json:"embedding"`
	} `json:"data"`
	Error json.RawMessage `json:"error"`
}

// vector is a list of numbers, or the bytes of float32, little endian, as base64.
type vector []float32

// UnmarshalJSON implements json.Unmarshaler.
func (v *vector) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		var list []float32
		err := json.Unmarshal(raw, &list)
		*v = list
		return err
	}
	var b []byte
	if err := json.Unmarshal(raw, &b); err != nil {
		return fmt.Errorf("decode a vector from base64: %w", err)
	}
	if len(b)%4 != 0 {
		return fmt.Errorf("decode a vector from %d bytes: want a multiple of 4", len(b))
	}
	*v = make(vector, len(b)/4)
	for i := range *v {
		(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

// Bounds of what is read of an answer and of an error.
const (
	maxAnswer = 256 << 20
	maxSaid   = 64 << 10
)

// ask sends one request.
func (e *Embedder) ask(ctx context.Context, input []string) ([][]float32, *memgpt.Error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	resp, err := e.send(ctx, input)
	if err != nil {
		return nil, e.unreachable(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return nil, e.refused(resp)
	}
	var a answer
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, e.unreachable(err)
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, e.wrong("the answer can't be read (check the base URL, which mostly ends in /v1): %w", err)
	}
	if said := strings.TrimSpace(string(a.Error)); said != "" && said != "null" {
		return nil, e.judge(http.StatusInternalServerError, said)
	}
	return e.take(&a, len(input))
}

func (e *Embedder) send(ctx context.Context, input []string) (*http.Response, error) {
	r := request{Model: e.cfg.Model, Input: input, Dimensions: e.cfg.Dimensions}
	if e.cfg.Base64 {
		r.Encoding = "base64"
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if e.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+e.cfg.APIKey)
	}
	for name, value := range e.cfg.Headers {
		req.Header.Set(name, value)
	}
	return e.client.Do(req)
}

// take puts the vectors of an answer in the order of the texts, checks them and brings them to length 1.
func (e *Embedder) take(a *answer, n int) ([][]float32, *memgpt.Error) {
	if len(a.Data) != n {
		return nil, e.wrong("%d vectors came for %d texts", len(a.Data), n)
	}
	list := make([][]float32, n)
	for i, d := range a.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= n || list[at] != nil {
			return nil, e.wrong("vector %d has the index %d, which is taken or none of %d", i, at, n)
		}
		if err := e.checkDim(len(d.Embedding)); err != nil {
			return nil, err
		}
		if err := unit(d.Embedding); err != nil {
			return nil, e.wrong("vector %d %v", at, err)
		}
		list[at] = d.Embedding
	}
	return list, nil
}

// checkDim remembers the dimension of the first vector and refuses others.
func (e *Embedder) checkDim(got int) *memgpt.Error {
	if got == 0 {
		return e.wrong("a vector is empty")
	}
	e.dim.CompareAndSwap(0, int64(got))
	if want := e.Dim(); got != want {
		return e.wrong("a vector has %d dimensions, and %d are expected: is it another model now?", got, want)
	}
	return nil
}

func (e *Embedder) wrong(format string, args ...any) *memgpt.Error {
	return memgpt.Errorf(memgpt.CodeModelRequest, "embed with %s at %s: "+format, append([]any{e.cfg.Model, e.host}, args...)...)
}

// unreachable maps the failure of a request to which no whole answer came. The URL, which may hold secrets, is taken out.
func (e *Embedder) unreachable(err error) *memgpt.Error {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return memgpt.Errorf(memgpt.CodeModelTimeout, "embed at %s: no answer within %s", e.host, e.cfg.Timeout)
	}
	if under := errors.Unwrap(err); under != nil {
		err = under
	}
	return memgpt.Errorf(memgpt.CodeModelDown, "embed at %s: is the server running? %w", e.host, err)
}

// refused maps an answer with a status that is not a success.
func (e *Embedder) refused(resp *http.Response) *memgpt.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid))
	err := e.judge(resp.StatusCode, string(body))
	err.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), e.cfg.Now())
	return err
}

// judge gives a refusal its code and text.
func (e *Embedder) judge(status int, body string) *memgpt.Error {
	said := wire.Hide(said(body), e.cfg.APIKey)
	code := statusCode(status)
	lower := strings.ToLower(said)
	switch {
	case strings.Contains(lower, "context length") || strings.Contains(lower, "maximum input") || strings.Contains(lower, "too large to process"):
		code = memgpt.CodeModelOverflow
	case strings.Contains(lower, "insufficient_quota") || strings.Contains(lower, "exceeded your current quota"):
		code = memgpt.CodeModelQuota
	}
	return memgpt.Errorf(code, "embed with %s at %s: status %d%s: %s", e.cfg.Model, e.host, status, advice(code, status), said)
}

func advice(code memgpt.Code, status int) string {
	switch {
	case code == memgpt.CodeModelAuth:
		return " (check the API key)"
	case code == memgpt.CodeModelOverflow:
		return " (cut texts into shorter pieces)"
	case status == http.StatusNotFound:
		return " (check the base URL, which mostly ends in /v1, and that the server has the model)"
	}
	return ""
}

// said is the message in the body of an error: of an object {"error": {"message"}} or {"error"}, or the body's beginning.
func said(body string) string {
	body = strings.TrimSpace(memgpt.CleanText(body))
	var o struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal([]byte(body), &o) == nil {
		var text string
		switch {
		case o.Message != "":
			body = o.Message
		case json.Unmarshal(o.Error, &text) == nil:
			body = text
		case len(o.Error) > 0:
			return said(string(o.Error))
		}
	}
	if body == "" {
		return "no explanation"
	}
	return memgpt.CutText(body, 500)
}

func statusCode(status int) memgpt.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return memgpt.CodeModelAuth
	case http.StatusPaymentRequired:
		return memgpt.CodeModelQuota
	case http.StatusTooManyRequests:
		return memgpt.CodeModelLimit
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return memgpt.CodeModelTimeout
	case http.StatusRequestEntityTooLarge:
		return memgpt.CodeModelOverflow
	}
	if status >= 500 && status != http.StatusNotImplemented {
		return memgpt.CodeModelDown
	}
	return memgpt.CodeModelRequest
}

// retryAfter reads a Retry-After header: seconds or a date (RFC 9110, 10.2.3). 0 is that it says nothing.
func retryAfter(header string, now time.Time) time.Duration {
	if s, err := strconv.ParseFloat(strings.TrimSpace(header), 64); err == nil {
		return time.Duration(min(max(s, 0), 1e6) * float64(time.Second))
	}
	if t, err := http.ParseTime(header); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
