package retry_test

import (
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/model/retry"
	"memgpt/model/script"
)

// TestLongWaitsAreTold: who is told to wait for hours is not asked again, and the error says for how long.
func TestLongWaitsAreTold(t *testing.T) {
	for wait, want := range map[time.Duration]string{3 * time.Hour: "left alone for 3h0m0s", 0: "fails"} {
		m := script.Of(repeat(9, fail(memgpt.CodeModelLimit, wait))...)
		_, err := newModel(t, retry.Config{Model: m, Tries: 5, Base: time.Millisecond}).Generate(t.Context(), request(), nil)
		if err == nil || !strings.Contains(err.Error(), want) || memgpt.CodeOf(err) != memgpt.CodeModelLimit ||
			strings.Contains(err.Error(), "alone") != (wait > 0) || strings.Count(err.Error(), "fails") != 1 || (m.Count() == 1) != (wait > 0) {
			t.Errorf("%s: %d calls, %v", wait, m.Count(), err)
		}
	}
}

// TestOverflowOfAFallback: a fallback whose window the request passes ends the chain, so that the caller learns its size
// and makes room; the next one is not asked with what is known to be too large.
func TestOverflowOfAFallback(t *testing.T) {
	over := script.Fail(&memgpt.Error{Code: memgpt.CodeModelOverflow, Text: "too long", Tokens: 9000, Limit: 8192})
	first, second, third := named("a", 0, repeat(9, fail(memgpt.CodeModelDown, 0))...), named("b", 0, over), named("c", 0, script.Text("ok"))
	_, err := newModel(t, retry.Config{Model: first, Base: time.Millisecond, Fallbacks: []retry.Fallback{{Model: second}, {Model: third}}}).Generate(t.Context(), request(), nil)
	e, ok := err.(*memgpt.Error)
	if !ok || e.Code != memgpt.CodeModelOverflow || e.Tokens != 9000 || third.Count() != 0 {
		t.Errorf("%v, the third was asked %d times", err, third.Count())
	}
}
