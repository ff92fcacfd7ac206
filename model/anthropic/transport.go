package anthropic

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of the transport. Many calls wait at once, and an answer comes in small pieces.
const (
	bufferSize   = 1 << 10
	idlePerHost  = 10_000
	idleTimeout  = 30 * time.Second
	drainTimeout = 50 * time.Millisecond // for the end of the body after the last event, so that the connection is used again
)

// newClient returns the configured client, made not to follow redirects: a body is not kept for a second sending, and a
// key must not go where the user did not send it.
func newClient(cfg *Config) *http.Client {
	client := &http.Client{}
	if cfg.Client != nil {
		*client = *cfg.Client
	} else {
		dialer := &net.Dialer{Timeout: cfg.Connect, KeepAlive: 30 * time.Second}
		client.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: cfg.Connect,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
			ReadBufferSize: bufferSize, WriteBufferSize: bufferSize,
			DisableCompression: true, // a compressed stream is held back by its encoder
		}
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// outgoing is a request's body that lets go of its bytes when they are sent.
type outgoing struct {
	mu   sync.Mutex
	rest []byte
}

// Read implements io.Reader.
func (o *outgoing) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := copy(p, o.rest)
	if o.rest = o.rest[n:]; len(o.rest) == 0 {
		o.rest = nil
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (o *outgoing) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rest = nil
	return nil
}

// traced returns a context that notes whether the request went over a connection that had been used before.
func traced(ctx context.Context) (context.Context, *atomic.Bool) {
	reused := new(atomic.Bool)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused.Store(info.Reused) },
	}), reused
}

// errSilent is the cause of a call's end when its time is up.
var errSilent = errors.New("time is up")

// watch ends a call that stays silent for too long. Its methods but stop are called by one goroutine.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer

	first, idle time.Duration
	due         time.Time // of the next piece
	begun       bool
}

func newWatch(ctx context.Context, first, idle time.Duration) *watch {
	w := &watch{first: first, idle: idle, due: time.Now().Add(first)}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(first, func() { w.cancel(errSilent) })
	return w
}

// stop ends the watch and with it whatever is left of the call.
func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// silent reports whether the watch ended the call.
func (w *watch) silent() bool { return errors.Is(context.Cause(w.ctx), errSilent) }

// bytes notes that something came, if only a ping. It never moves the time at which the next piece is due.
func (w *watch) bytes() {
	if w.begun {
		w.timer.Reset(min(w.idle, time.Until(w.due)))
	}
}

// piece notes that a piece of the answer came.
func (w *watch) piece() {
	w.begun = true
	w.due = time.Now().Add(w.first)
	w.timer.Reset(min(w.idle, w.first))
}

// drain leaves a moment for the end of a body whose last piece came.
func (w *watch) drain() {
	w.idle = drainTimeout
	w.timer.Reset(drainTimeout)
}

// limit names the limit that was passed.
func (w *watch) limit() string {
	switch {
	case !w.begun:
		return "no answer began within " + w.first.String()
	case !time.Now().Before(w.due):
		return "nothing but pings came within " + w.first.String()
	}
	return "nothing more came within " + w.idle.String()
}

// watched is a body that tells the watch of its bytes.
type watched struct {
	io.ReadCloser
	watch *watch
}

// Read implements io.Reader.
func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.bytes()
	}
	return n, err
}
