package retry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/model/retry"
	"memgpt/model/script"
)

// once asks a model behind a breaker a single time.
func once(t *testing.T, b *retry.Breaker, r script.Reply) (asked bool, err error) {
	t.Helper()
	m := script.Of(r)
	_, err = newModel(t, retry.Config{Model: m, Tries: 1, Breaker: b}).Generate(t.Context(), request(), nil)
	return m.Count() == 1, err
}

func wantState(t *testing.T, b *retry.Breaker, want retry.BreakerState) {
	t.Helper()
	if got, _ := b.State(); got != want {
		t.Fatalf("the breaker is %s, want %s", got, want)
	}
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.NewBreaker(retry.BreakerConfig{Name: "acme", After: 3, Open: time.Minute})
		down, ok := fail(memgpt.CodeModelDown, 0), script.Text("ok")
		for _, r := range []script.Reply{down, fail(memgpt.CodeModelTimeout, 0), fail(memgpt.CodeModelRequest, 0), down, down, ok, down, down} {
			if asked, _ := once(t, b, r); !asked { // refusals are answers: the row begins anew
				t.Fatal("the breaker opened too soon")
			}
		}
		_, _ = once(t, b, down)
		wantState(t, b, retry.BreakerOpen)
		until := time.Now().Add(time.Minute)
		time.Sleep(20 * time.Second)
		asked, err := once(t, b, ok)
		var e *memgpt.Error
		if asked || !errors.As(err, &e) || e.Code != memgpt.CodeModelDown || e.RetryAfter != 40*time.Second || e.Started {
			t.Fatalf("asked %v, %#v", asked, err)
		}
		for _, part := range []string{"acme", until.Format(time.RFC3339), "failed 3 times", "fails"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
		time.Sleep(40 * time.Second)
		wantState(t, b, retry.BreakerHalfOpen)
		if asked, _ := once(t, b, down); !asked { // a probe that fails opens again
			t.Error("no probe")
		}
		wantState(t, b, retry.BreakerOpen)
		time.Sleep(time.Minute)
		if asked, err := once(t, b, fail(memgpt.CodeModelLimit, 0)); !asked || memgpt.CodeOf(err) != memgpt.CodeModelLimit {
			t.Errorf("asked %v, %v", asked, err)
		}
		wantState(t, b, retry.BreakerClosed)
		_, _ = once(t, b, down)
		_, _ = once(t, b, down)
		wantState(t, b, retry.BreakerClosed)
	})
}

func TestBreakerObeysTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.NewBreaker(retry.BreakerConfig{After: 1})
		_, _ = once(t, b, fail(memgpt.CodeModelDown, 5*time.Minute))
		if state, until := b.State(); state != retry.BreakerOpen || time.Until(until) != 5*time.Minute {
			t.Errorf("%s until %s", state, until)
		}
	})
}

// TestBreakerIsShared has two models of one provider: what one finds out the other is spared, and tries stop as well.
func TestBreakerIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.NewBreaker(retry.BreakerConfig{After: 3})
		one, two := script.Of(repeat(9, fail(memgpt.CodeModelDown, 0))...), script.Of(script.Text("ok"))
		_, err := newModel(t, retry.Config{Model: one, Breaker: b}).Generate(t.Context(), request(), nil)
		if one.Count() != 3 || !strings.Contains(err.Error(), "is not asked until") {
			t.Errorf("%d calls, %v", one.Count(), err)
		}
		start := time.Now()
		if _, err := newModel(t, retry.Config{Model: two, Breaker: b}).Generate(t.Context(), request(), nil); err == nil || two.Count() != 0 || time.Since(start) != 0 {
			t.Errorf("%d calls in %v, %v", two.Count(), time.Since(start), err)
		}
		fallback := script.Of(script.Text("ok"))
		m := newModel(t, retry.Config{Model: two, Breaker: b, Fallbacks: []retry.Fallback{{Model: fallback}}})
		if _, err := m.Generate(t.Context(), request(), nil); err != nil || two.Count() != 0 || fallback.Count() != 1 || time.Since(start) != 0 {
			t.Errorf("%d and %d calls in %v, %v", two.Count(), fallback.Count(), time.Since(start), err)
		}
	})
}

func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.NewBreaker(retry.BreakerConfig{After: 1, Open: time.Minute})
		_, _ = once(t, b, fail(memgpt.CodeModelDown, 0))
		time.Sleep(time.Minute)
		ask := func(ctx context.Context, r script.Reply) chan error {
			done := make(chan error, 1)
			m := newModel(t, retry.Config{Model: script.Of(r), Tries: 1, Breaker: b})
			go func() {
				_, err := m.Generate(ctx, request(), nil)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		given := ask(ctx, script.Text("ok").After(time.Hour))
		if asked, err := once(t, b, script.Text("ok")); asked || memgpt.CodeOf(err) != memgpt.CodeModelDown || !strings.Contains(err.Error(), "whether it is back") {
			t.Errorf("beside the probe: asked %v, %v", asked, err)
		}
		cancel() // a probe that its caller gives up says nothing, and the next call is one
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		wantState(t, b, retry.BreakerHalfOpen)
		slow := ask(t.Context(), script.Text("ok").After(time.Second))
		if asked, _ := once(t, b, script.Text("ok")); asked {
			t.Error("two probes at once")
		}
		if err := <-slow; err != nil {
			t.Error(err)
		}
		wantState(t, b, retry.BreakerClosed)
	})
}

// TestLateEndsDontCount has calls that began before the breaker opened.
func TestLateEndsDontCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.NewBreaker(retry.BreakerConfig{After: 1, Open: time.Minute})
		m := newModel(t, retry.Config{Model: script.Of(script.Text("ok").After(2 * time.Second)), Breaker: b})
		done := make(chan error, 1)
		go func() {
			_, err := m.Generate(t.Context(), request(), nil)
			done <- err
		}()
		synctest.Wait()
		_, _ = once(t, b, fail(memgpt.CodeModelDown, 0))
		if err := <-done; err != nil {
			t.Error(err)
		}
		wantState(t, b, retry.BreakerOpen)
	})
}
