package wire

import (
	"context"
	"errors"
	"io"
	"time"
)

// DrainTimeout is left for the end of a body after the last event, so that the connection is used again.
const DrainTimeout = 50 * time.Millisecond

// Causes of a call's end when its time is up: for the next piece, and in all.
var (
	errSilent = errors.New("time is up")
	errWhole  = errors.New("the time of the whole call is up")
)

// Limits bound a call.
type Limits struct {
	First time.Duration // until the first piece of an answer, and between any two
	Idle  time.Duration // without a byte after the first piece
	Whole time.Duration // of the call in all; 0 is no bound

	Filler string // what the protocol sends when there is nothing to send, for errors: "keepalives"
}

// Watch ends a call that stays silent or goes on for too long. Its methods but Stop are called by one goroutine.
type Watch struct {
	limits Limits
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	last   *time.Timer // of the whole call; nil without a bound

	due   time.Time // of the next piece
	begun bool
}

// NewWatch begins the time of a call.
func NewWatch(ctx context.Context, limits Limits) *Watch {
	w := &Watch{limits: limits, due: time.Now().Add(limits.First)}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limits.First, func() { w.cancel(errSilent) })
	if limits.Whole > 0 {
		w.last = time.AfterFunc(limits.Whole, func() { w.cancel(errWhole) })
	}
	return w
}

// Context is the call's: it ends when the time of the call is up.
func (w *Watch) Context() context.Context { return w.ctx }

// Stop ends the watch and with it whatever is left of the call.
func (w *Watch) Stop() {
	w.timer.Stop()
	if w.last != nil {
		w.last.Stop()
	}
	w.cancel(nil)
}

// Ended reports whether the watch ended the call.
func (w *Watch) Ended() bool {
	cause := context.Cause(w.ctx)
	return errors.Is(cause, errSilent) || errors.Is(cause, errWhole)
}

// Piece notes that a piece of the answer came.
func (w *Watch) Piece() {
	w.begun = true
	w.due = time.Now().Add(w.limits.First)
	w.timer.Reset(min(w.limits.Idle, w.limits.First))
}

// bytes notes that something came, if only filler. It never moves the time at which the next piece is due.
func (w *Watch) bytes() {
	if w.begun {
		w.timer.Reset(min(w.limits.Idle, time.Until(w.due)))
	}
}

// Linger shortens the patience after a piece that may be the last.
func (w *Watch) Linger(d time.Duration) {
	w.limits.Idle = min(w.limits.Idle, d)
	w.timer.Reset(w.limits.Idle)
}

// Limit names the limit that was passed.
func (w *Watch) Limit() string {
	l := &w.limits
	switch {
	case errors.Is(context.Cause(w.ctx), errWhole):
		return "the answer was not whole within " + l.Whole.String()
	case !w.begun:
		return "no answer began within " + l.First.String()
	case !time.Now().Before(w.due):
		return "nothing but " + l.Filler + " came within " + l.First.String()
	}
	return "nothing more came within " + l.Idle.String()
}

// MaxAnswer bounds the bytes of one answer on the wire. The longest replies that models give (128 Ki tokens) are streamed
// in half of that; whoever sends more does not end, and would fill the memory.
const MaxAnswer = 64 << 20

// ErrLong is the end of an answer that passes a bound of its size. It is no use to ask again.
var ErrLong = errors.New("it is longer than any reply")

// Watched is a body that tells the watch of its bytes, and ends with ErrLong after MaxAnswer of them.
type Watched struct {
	io.ReadCloser
	Watch *Watch
	Long  bool // it may go on for hours, as the progress of a download: no MaxAnswer
	read  int
}

// Read implements io.Reader.
func (b *Watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.Watch.bytes()
	}
	if b.read += n; b.read > MaxAnswer && !b.Long {
		return n, ErrLong
	}
	return n, err
}
