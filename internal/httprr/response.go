package httprr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Response is the response of an exchange. Its pointer is an http.Handler and an http.RoundTripper that answer any request
// with it, so a recorded body serves as a fixture with or without a server.
type Response struct {
	Status int // 0 is 200
	Header http.Header
	Body   []byte
	Cut    bool // the connection broke at the end of Body: reading on gives io.ErrUnexpectedEOF
}

func (r *Response) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

// ServeHTTP writes the response, an event stream one event at a time.
func (r *Response) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	for name, values := range r.Header {
		if name != "Content-Length" && name != "Transfer-Encoding" { // net/http's own
			w.Header()[name] = values
		}
	}
	w.WriteHeader(r.status())
	parts := [][]byte{r.Body}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		parts = bytes.SplitAfter(r.Body, []byte("\n\n"))
	}
	flush := http.NewResponseController(w)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return // the client has left, and there is nobody to tell
		}
		if len(parts) > 1 || r.Cut {
			_ = flush.Flush() // without it the bytes come together, which is right too
		}
	}
	if r.Cut {
		panic(http.ErrAbortHandler)
	}
}

// RoundTrip answers with the response. It does not look at the request but for its context, and it closes its body.
func (r *Response) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper must; nobody reads it any more
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	length := int64(-1) // as for a chunked body
	if h.Get("Content-Length") != "" && !r.Cut && req.Method != http.MethodHead {
		length = int64(len(r.Body))
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", r.status(), http.StatusText(r.status())),
		StatusCode:    r.status(),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        h,
		Body:          io.NopCloser(&reader{req: req, data: r.Body, cut: r.Cut}),
		ContentLength: length,
		Request:       req,
	}, nil
}

// reader reads a body as a connection would: no longer than its request's context lives.
type reader struct {
	req  *http.Request
	data []byte
	cut  bool
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.req.Context().Err(); err != nil {
		return 0, err
	}
	if len(r.data) == 0 && len(p) > 0 {
		if r.cut {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, io.EOF
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

func scrubURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	query, found := u.Query(), u.User != nil
	for name := range query {
		if secret(strings.ToLower(name)) {
			query[name], found = []string{scrubbed}, true
		}
	}
	if !found {
		return s // with its query in the order of the caller
	}
	u.User, u.RawQuery = nil, query.Encode()
	return u.String()
}

// Pairs reads recordings that are kept as plain files: index.json at the root of fsys maps a name to
//
//	{"method", "path", "request": file or null, "response": file, "status", "content_type", "headers": {…}}
//
// and the files hold the bodies. URLs are base, such as http://127.0.0.1:8080, with the path. Whether a body was cut isn't in
// the files; the caller sets Cut where it was.
func Pairs(fsys fs.FS, base string) (map[string]Exchange, error) {
	data, err := fs.ReadFile(fsys, "index.json")
	if err != nil {
		return nil, fmt.Errorf("httprr: read pairs: %w", err)
	}
	var index map[string]pair
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("httprr: read index.json: %w", err)
	}
	exchanges := make(map[string]Exchange, len(index))
	for name, p := range index {
		if exchanges[name], err = p.exchange(fsys, base); err != nil {
			return nil, fmt.Errorf("httprr: read pair %s: %w", name, err)
		}
	}
	return exchanges, nil
}

type pair struct {
	Method, Path      string
	Request, Response string
	Status            int
	ContentType       string `json:"content_type"`
	Headers           map[string]string
}

func (p pair) exchange(fsys fs.FS, base string) (Exchange, error) {
	x := Exchange{
		Request:  Request{Method: p.Method, URL: strings.TrimSuffix(base, "/") + p.Path},
		Response: Response{Status: p.Status, Header: http.Header{}},
	}
	for name, value := range p.Headers {
		if name != "Transfer-Encoding" { // the transport's own, and the files hold what was inside
			x.Response.Header.Set(name, value)
		}
	}
	if p.ContentType != "" {
		x.Response.Header.Set("Content-Type", p.ContentType)
	}
	var err error
	if p.Request != "" {
		x.Request.Header = http.Header{"Content-Type": {"application/json"}}
		if x.Request.Body, err = fs.ReadFile(fsys, path.Clean(p.Request)); err != nil {
			return x, err
		}
	}
	x.Response.Body, err = fs.ReadFile(fsys, path.Clean(p.Response))
	return x, err
}

// names are the keys of a header, sorted.
func names(h http.Header) []string {
	var keys []string
	for name := range h {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}
