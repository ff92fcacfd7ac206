package wire

import (
	"context"
	"errors"
	"net"
	"strings"

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

// Shown returns an address for an error: without what may be secret in it, which is all before the last @ of the host and
// what stands in the query, also where the address can't be read.
func Shown(address string) string {
	address = memgpt.CleanText(strings.TrimSpace(address))
	address, _, _ = strings.Cut(address, "#")
	bare, _, asked := strings.Cut(address, "?")
	scheme, rest, ok := strings.Cut(bare, "://")
	if !ok {
		scheme, rest = "", bare
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = "…@" + rest[i+1:]
	}
	if ok {
		rest = scheme + "://" + rest
	}
	if asked {
		rest += "?…"
	}
	return memgpt.CutText(rest, 200)
}

// leastKey is the length under which a key is no secret, and may be part of any word.
const leastKey = 4

// Hide returns a server's words without a key that it repeats.
func Hide(s, key string) string {
	if len(key) < leastKey {
		return s
	}
	return strings.ReplaceAll(s, key, "***")
}

// HideIn is Hide for all that an error says; nil is left.
func HideIn(e *memgpt.Error, key string) {
	if e == nil || len(key) < leastKey || !strings.Contains(e.Error(), key) {
		return
	}
	e.Text, e.Err = Hide(e.Error(), key), nil
}
