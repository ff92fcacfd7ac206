package wire

import (
	"context"
	"errors"
	"net"

	"memgpt"
)

// Unreachable maps the failure of a call to which no answer came. what names the call, ask what a person should look at.
// stale says that the connection had been used before, and that the server may only have closed it.
func Unreachable(w *Watch, what, ask string, err error, reused bool) (e *memgpt.Error, stale bool) {
	var timeout net.Error
	switch {
	case w.Ended():
		return TimedOut(w, what), false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && w.ctx.Err() != nil:
		return memgpt.Errorf(memgpt.CodeModelDown, "%s: %w", what, err), false
	case errors.As(err, &timeout) && timeout.Timeout():
		return memgpt.Errorf(memgpt.CodeModelTimeout, "%s: could not connect in time: %w", what, Plain(err)), false
	}
	return memgpt.Errorf(memgpt.CodeModelDown, "%s: %s %w", what, ask, Plain(err)), reused
}

// TimedOut is the error of a call that the watch ended.
func TimedOut(w *Watch, what string) *memgpt.Error {
	return &memgpt.Error{Code: memgpt.CodeModelTimeout, Text: what + ": " + w.Limit()}
}

// Plain takes the URL, which may hold secrets, from an error of the HTTP client.
func Plain(err error) error {
	for {
		under := errors.Unwrap(err)
		if under == nil {
			return err
		}
		var op *net.OpError
		if errors.As(err, &op) {
			return op
		}
		err = under
	}
}
