// Package wire is what the models of all wire protocols do alike: calls over HTTP that may wait for long, and words for
// parts that a protocol has no place for. It knows no protocol.
package wire

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of the transport. Thousands of calls wait at once, and an answer comes in small pieces: buffers are small, and a
// connection is kept for each of as many calls as may wait, so that ports don't run out between two steps.
const (
	BufferSize  = 1 << 10 // bytes
	idlePerHost = 10_000
	idleTimeout = 30 * time.Second
)

// NewClient returns a client like the given one, nil for one with a transport of its own, made not to follow redirects: a
// body is not kept for a second sending, and a key must not go where the user did not send it.
func NewClient(like *http.Client, connect time.Duration) *http.Client {
	client := &http.Client{}
	if like != nil {
		*client = *like
	} else {
		client.Transport = NewTransport(connect, http.ProxyFromEnvironment)
	}
	client.Transport = inflating{client.Transport}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// NewTransport returns a transport for many calls at once that may take connect to connect, and as long for TLS.
func NewTransport(connect time.Duration, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     idleTimeout,
		ReadBufferSize:      BufferSize,
		WriteBufferSize:     BufferSize,
		DisableCompression:  true, // a compressed stream is held back by its encoder
	}
}

// inflating reads answers that are compressed. None is asked for, but some gateways compress all the same.
type inflating struct{ under http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t inflating) RoundTrip(req *http.Request) (*http.Response, error) {
	under := t.under
	if under == nil {
		under = http.DefaultTransport
	}
	resp, err := under.RoundTrip(req)
	if err != nil || !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return resp, err
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Body = &inflated{under: resp.Body}
	return resp, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t inflating) CloseIdleConnections() {
	if c, ok := t.under.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// inflated is a compressed body. What is no gzip fails at the first read.
type inflated struct {
	under io.ReadCloser
	plain *gzip.Reader
}

// Read implements io.Reader.
func (b *inflated) Read(p []byte) (n int, err error) {
	if b.plain == nil {
		if b.plain, err = gzip.NewReader(b.under); err != nil {
			return 0, fmt.Errorf("read a compressed answer: %w", err)
		}
	}
	return b.plain.Read(p)
}

// Close implements io.Closer.
func (b *inflated) Close() error { return b.under.Close() }

// Body is a request's body that lets go of its bytes when they are sent.
type Body struct {
	mu   sync.Mutex
	rest []byte
}

// NewBody returns a body of these bytes, which it keeps no longer than they are needed.
func NewBody(data []byte) *Body { return &Body{rest: data} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		b.rest = nil
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (b *Body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest = nil
	return nil
}

// Traced returns a context that notes whether the request went over a connection that had been used before.
func Traced(ctx context.Context) (context.Context, *atomic.Bool) {
	reused := new(atomic.Bool)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused.Store(info.Reused) },
	}), reused
}
