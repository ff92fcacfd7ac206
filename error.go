package memgpt

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code says what a caller can do about an error.
type Code string

// Codes of errors. Those that begin with "model_" come from a Model.
const (
	CodeInvalid   Code = "invalid"    // the request is wrong; it will not work again
	CodeNotFound  Code = "not_found"  // no such thing
	CodeExists    Code = "exists"     // the name, id or key is taken
	CodeConflict  Code = "conflict"   // someone else changed it; read again and retry
	CodeLeaseLost Code = "lease_lost" // another holder runs the conversation
	CodeWindow    Code = "window"     // the fixed part leaves no room in the window
	CodeNewer     Code = "newer"      // the store was written by a newer version
	CodeBusy      Code = "busy"       // the store is locked by someone else
	CodeClosed    Code = "closed"     // used after Close
	CodeBudget    Code = "budget"     // a budget is spent
	CodeCancelled Code = "cancelled"  // cause of a context that ended because somebody cancelled the turn
	CodeReplaced  Code = "replaced"   // cause of a context that ended because a later event takes the turn's place

	CodeModelOverflow Code = "model_overflow"   // the request is over the model's window
	CodeModelRequest  Code = "model_request"    // the provider refuses the request
	CodeModelAuth     Code = "model_auth"       // key missing or wrong
	CodeModelQuota    Code = "model_quota"      // no credit left
	CodeModelLimit    Code = "model_rate_limit" // too many requests; see RetryAfter
	CodeModelDown     Code = "model_down"       // overloaded, loading, unreachable or broken off
	CodeModelTimeout  Code = "model_timeout"    // no answer in time
	CodeModelEmpty    Code = "model_empty"      // an answer without content
	CodeModelCut      Code = "model_cut"        // an answer whose calls were cut off by its length
)

// Error is an error on which a caller may branch. Text says what was attempted, what failed and what to do.
type Error struct {
	Code       Code
	Text       string
	RetryAfter time.Duration // with CodeModelLimit and CodeModelDown, as the provider asked; 0 when it did not
	Tokens     int           // with CodeModelOverflow, the size of the request as the provider counted; 0 when unknown
	Limit      int           // with CodeModelOverflow, the provider's window; 0 when unknown
	Started    bool          // pieces of the reply had come before it failed
	Err        error         // what lies beneath
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Err == nil, strings.Contains(e.Text, e.Err.Error()): // it says so in its own words
		return e.Text
	case e.Text == "":
		return e.Err.Error()
	}
	return e.Text + ": " + e.Err.Error()
}

// Unwrap returns the error beneath.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an *Error. As with fmt.Errorf, %w wraps.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Err: errors.Unwrap(err), Text: err.Error()}
	if e.Err != nil { // Error adds its text again
		e.Text = strings.TrimSuffix(e.Text, ": "+e.Err.Error())
	}
	return e
}

// CodeOf returns the code of the first *Error in err's chain, "" when there is none.
func CodeOf(err error) Code {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}
