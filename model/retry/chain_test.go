package retry_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/model/retry"
	"memgpt/model/script"
)

// named is a scripted model with a name and a window.
func named(name string, window int, replies ...script.Reply) *script.Model {
	return script.New(script.Config{Replies: replies, Capabilities: memgpt.Capabilities{Name: name, Window: window, Tools: true}})
}

func TestTokenBudget(t *testing.T) {
	long := &memgpt.Request{Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, strings.Repeat("abc", 1000))}}
	count := func(*memgpt.Request) int { return 400 }
	empty := fail(memgpt.CodeModelEmpty, 0)
	for _, test := range []struct {
		name  string
		cfg   retry.Config
		req   *memgpt.Request
		fault script.Reply
		calls int
	}{
		{"by the caller's count", retry.Config{TokenBudget: 1000, Count: count}, request(), fail(memgpt.CodeModelDown, 0), 3},
		{"less than one", retry.Config{TokenBudget: 399, Count: count}, request(), fail(memgpt.CodeModelTimeout, 0), 1},
		{"by size", retry.Config{TokenBudget: 2500}, long, fail(memgpt.CodeModelDown, 0), 3},
		{"an empty answer costs too", retry.Config{TokenBudget: 300, Count: count}, request(), empty, 1},
		{"refused unread", retry.Config{TokenBudget: 1, Count: count}, request(), fail(memgpt.CodeModelLimit, 0), 5},
		{"default", retry.Config{Count: func(*memgpt.Request) int { return 600_000 }}, request(), fail(memgpt.CodeModelDown, 0), 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := script.Of(repeat(9, test.fault)...)
				test.cfg.Model = m
				if _, err := newModel(t, test.cfg).Generate(t.Context(), test.req, nil); err == nil || m.Count() != test.calls {
					t.Errorf("%d calls, %v; want %d", m.Count(), err, test.calls)
				}
			})
		})
	}
}

// TestBudgetKeepsNoRequest has a request that is made again for its size and let go of before the wait.
func TestBudgetKeepsNoRequest(t *testing.T) {
	made := 0
	req := &memgpt.Request{Again: func() []memgpt.Message { made++; return request().Messages }}
	m := newModel(t, retry.Config{
		Model: script.Of(fail(memgpt.CodeModelDown, 0), script.Text("ok")),
		Sleep: func(context.Context, time.Duration) error {
			if req.Messages != nil {
				t.Error("the request keeps its messages while it waits")
			}
			return nil
		},
	})
	if _, err := m.Generate(t.Context(), req, nil); err != nil || made != 2 {
		t.Errorf("made %d times, %v", made, err)
	}
}

func TestFallback(t *testing.T) {
	for _, test := range []struct {
		name         string
		fault        script.Reply
		first, calls int // of the first model, of the fallback
		code         memgpt.Code
	}{
		{"down", fail(memgpt.CodeModelDown, 0), 2, 1, ""},
		{"timeout", fail(memgpt.CodeModelTimeout, 0), 2, 1, ""},
		{"limit", fail(memgpt.CodeModelLimit, 0), 2, 1, ""},
		{"limit for a short time", fail(memgpt.CodeModelLimit, 2*time.Second), 2, 1, ""},
		{"limit for longer than a person waits", fail(memgpt.CodeModelLimit, time.Minute), 1, 1, ""},
		{"quota", fail(memgpt.CodeModelQuota, 0), 1, 1, ""},
		{"auth", fail(memgpt.CodeModelAuth, 0), 1, 0, memgpt.CodeModelAuth},
		{"request", fail(memgpt.CodeModelRequest, 0), 1, 0, memgpt.CodeModelRequest},
		{"overflow", fail(memgpt.CodeModelOverflow, 0), 1, 0, memgpt.CodeModelOverflow},
		{"empty", fail(memgpt.CodeModelEmpty, 0), 2, 0, memgpt.CodeModelEmpty},
		{"broken off", script.Text("some words that break off").Broken(1), 1, 0, memgpt.CodeModelDown},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := named("first", 8000, repeat(9, test.fault)...), named("second", 4000, script.Text("ok"))
				var fell []string
				m := newModel(t, retry.Config{Model: first, Fallbacks: []retry.Fallback{{Model: second}},
					Fell: func(_ context.Context, from, to memgpt.Capabilities, err error) {
						fell = append(fell, from.Name, to.Name, string(memgpt.CodeOf(err)))
					}})
				req := request()
				req.Model = "name-at-the-first"
				resp, err := m.Generate(t.Context(), req, func(memgpt.Delta) {})
				if memgpt.CodeOf(err) != test.code || first.Count() != test.first || second.Count() != test.calls {
					t.Fatalf("%v; %d and %d calls", err, first.Count(), second.Count())
				}
				if test.calls == 0 {
					return
				}
				if resp.Model != "second" || second.Last().Model != "" || first.Last().Model != "name-at-the-first" {
					t.Errorf("%q answered; the models were asked as %q and %q", resp.Model, first.Last().Model, second.Last().Model)
				}
				if !slices.Equal(fell, []string{"first", "second", string(test.fault.Err.(*memgpt.Error).Code)}) {
					t.Errorf("told %q", fell)
				}
			})
		})
	}
}

func TestFallbacksOfFallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := named("wrong", 0, fail(memgpt.CodeModelAuth, 0))
		last := named("last", 0, fail(memgpt.CodeModelDown, 0), fail(memgpt.CodeModelDown, 0), script.Text("ok"))
		m := newModel(t, retry.Config{Model: named("first", 0, repeat(2, fail(memgpt.CodeModelDown, 0))...),
			Fallbacks: []retry.Fallback{{Model: wrong}, {Model: last}}})
		resp, err := m.Generate(t.Context(), request(), nil)
		if err != nil || resp.Message.Said() != "ok" || wrong.Count() != 1 || last.Count() != 3 {
			t.Errorf("%v; %d and %d calls", err, wrong.Count(), last.Count())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, retry.Config{Model: named("first", 0, fail(memgpt.CodeModelLimit, time.Hour)),
			Fallbacks: []retry.Fallback{{Model: named("second", 0, script.Fail(memgpt.Errorf(memgpt.CodeModelQuota, "no credit here")))}}})
		_, err := m.Generate(t.Context(), request(), nil)
		var e *memgpt.Error
		if !errors.As(err, &e) || e.Code != memgpt.CodeModelLimit || e.RetryAfter != time.Hour || !strings.Contains(err.Error(), "second: no credit here") {
			t.Errorf("%#v", err)
		}
	})
}

// TestCancelAsksNobodyElse has a caller give up while the first model is asked.
func TestCancelAsksNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second := named("second", 0, script.Text("ok"))
		m := newModel(t, retry.Config{Model: named("first", 0, script.Text("late").After(time.Minute)), Fallbacks: []retry.Fallback{{Model: second}}})
		if _, err := m.Generate(ctx, request(), nil); !errors.Is(err, context.DeadlineExceeded) || second.Count() != 0 {
			t.Errorf("%v, %d calls of the fallback", err, second.Count())
		}
	})
}

func TestCapabilitiesAreThoseOfAll(t *testing.T) {
	able := script.New(script.Config{Capabilities: memgpt.Capabilities{Name: "able", Window: 128_000, MaxOutput: 4096, Tools: true, Parallel: true, Images: true}})
	small := script.New(script.Config{Capabilities: memgpt.Capabilities{Name: "small", Window: 8192, Tools: true}})
	unknown := script.New(script.Config{Capabilities: memgpt.Capabilities{Name: "unknown", Tools: true, Parallel: true}})
	got := newModel(t, retry.Config{Model: able, Fallbacks: []retry.Fallback{{Model: small}, {Model: unknown}}}).Capabilities()
	if want := (memgpt.Capabilities{Name: "able", Window: 8192, MaxOutput: 4096, Tools: true}); got != want {
		t.Errorf("%+v", got)
	}
	if _, err := retry.New(retry.Config{Model: able, Fallbacks: []retry.Fallback{{}}}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("a fallback without a model: %v", err)
	}
}

// TestNoFallbackOverItsWindow has a caller whose own window is larger than a fallback's.
func TestNoFallbackOverItsWindow(t *testing.T) {
	for _, test := range []struct {
		count, calls int
		code         memgpt.Code
	}{{3900, 0, memgpt.CodeModelQuota}, {3400, 1, ""}} {
		second := named("second", 4000, script.Text("ok"))
		m := newModel(t, retry.Config{Model: named("first", 8000, fail(memgpt.CodeModelQuota, 0)), Fallbacks: []retry.Fallback{{Model: second}},
			Count: func(*memgpt.Request) int { return test.count }})
		req := request()
		req.Window, req.MaxTokens = 8000, 500
		if _, err := m.Generate(t.Context(), req, nil); memgpt.CodeOf(err) != test.code || second.Count() != test.calls {
			t.Errorf("%d tokens: %v, %d calls", test.count, err, second.Count())
		}
	}
}
