package memgpt

import (
	"errors"
	"testing"
)

// TestErrorSaysOnce: what lies beneath is said once, whether the text quotes it or not.
func TestErrorSaysOnce(t *testing.T) {
	under := errors.New("refused")
	for format, want := range map[string]string{
		"dial: %w":             "dial: refused",
		"is it running? %w":    "is it running? refused",
		"it said %w; start it": "it said refused; start it",
	} {
		if err := Errorf(CodeModelDown, format, under); err.Error() != want || !errors.Is(err, under) {
			t.Errorf("%q: %q, want %q", format, err.Error(), want)
		}
	}
	if err := (&Error{Text: "no model could answer", Err: under}); err.Error() != "no model could answer: refused" {
		t.Errorf("%q", err.Error())
	}
}
