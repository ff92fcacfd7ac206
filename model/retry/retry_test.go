package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/model/modeltest"
	"memgpt/model/retry"
	"memgpt/model/script"
)

func request() *memgpt.Request {
	return &memgpt.Request{Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hi")}}
}

func fail(code memgpt.Code, after time.Duration) script.Reply {
	return script.Fail(&memgpt.Error{Code: code, Text: "fails", RetryAfter: after})
}

func repeat(n int, r script.Reply) []script.Reply {
	var list []script.Reply
	for range n {
		list = append(list, r)
	}
	return list
}

func started(err error) bool {
	var e *memgpt.Error
	return errors.As(err, &e) && e.Started
}

// timed notes when calls come.
type timed struct {
	memgpt.Model
	at []time.Time
}

func (m *timed) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	m.at = append(m.at, time.Now())
	return m.Model.Generate(ctx, req, stream)
}

func newModel(t *testing.T, cfg retry.Config) *retry.Model {
	t.Helper()
	m, err := retry.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := fail(memgpt.CodeModelLimit, 2*time.Second)
		under := &timed{Model: script.Of(limit, limit, script.Text("ok"))}
		said := 0
		resp, err := newModel(t, retry.Config{Model: under}).Generate(t.Context(), request(), func(memgpt.Delta) { said++ })
		if err != nil || resp.Message.Said() != "ok" || said != 1 || len(under.at) != 3 {
			t.Fatalf("%v, %v, %d pieces, %d calls", resp, err, said, len(under.at))
		}
		for i := 1; i < 3; i++ {
			if gap := under.at[i].Sub(under.at[i-1]); gap < 2*time.Second || gap > 3*time.Second {
				t.Errorf("gap %d is %v, want 2 s and a little", i, gap)
			}
		}
	})
}

func TestForEverIsBounded(t *testing.T) {
	for _, test := range []struct {
		name        string
		code        memgpt.Code
		after       time.Duration
		calls       int
		least, most time.Duration
	}{
		{"limit", memgpt.CodeModelLimit, 2 * time.Second, 5, 8 * time.Second, 12 * time.Second},
		{"limit without a wait", memgpt.CodeModelLimit, 0, 5, 3 * time.Second, 8 * time.Second},
		{"down", memgpt.CodeModelDown, 0, 5, 3 * time.Second, 8 * time.Second},
		{"timeout", memgpt.CodeModelTimeout, 0, 5, 3 * time.Second, 8 * time.Second},
		{"long wait", memgpt.CodeModelLimit, 50 * time.Second, 3, 100 * time.Second, 120 * time.Second},
		{"longer than all", memgpt.CodeModelLimit, time.Hour, 1, 0, 0},
		{"empty", memgpt.CodeModelEmpty, 0, 2, 250 * time.Millisecond, time.Second},
		{"overflow", memgpt.CodeModelOverflow, 0, 1, 0, 0},
		{"request", memgpt.CodeModelRequest, 0, 1, 0, 0},
		{"auth", memgpt.CodeModelAuth, 0, 1, 0, 0},
		{"quota", memgpt.CodeModelQuota, 0, 1, 0, 0},
		{"other", "", 0, 1, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				under := &timed{Model: script.Of(repeat(20, fail(test.code, test.after))...)}
				start := time.Now()
				_, err := newModel(t, retry.Config{Model: under}).Generate(t.Context(), request(), nil)
				var e *memgpt.Error
				if !errors.As(err, &e) || e.Code != test.code || e.RetryAfter != test.after {
					t.Errorf("error %#v", err)
				}
				took := time.Since(start)
				if len(under.at) != test.calls || took < test.least || took > test.most {
					t.Errorf("%d calls in %v, want %d in %v to %v", len(under.at), took, test.calls, test.least, test.most)
				}
			})
		})
	}
}

func TestTotalCountsTheCallsThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := script.Of(repeat(5, fail(memgpt.CodeModelTimeout, 0).After(90*time.Second))...)
		if _, err := newModel(t, retry.Config{Model: m}).Generate(t.Context(), request(), nil); err == nil || m.Count() != 2 {
			t.Errorf("%d calls, %v; want 2", m.Count(), err)
		}
	})
}

func TestStartedStreamIsNotReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := script.Text("some words that break off").Broken(1)
		m := script.Of(broken, script.Text("ok"))
		_, err := newModel(t, retry.Config{Model: m}).Generate(t.Context(), request(), func(memgpt.Delta) {})
		if memgpt.CodeOf(err) != memgpt.CodeModelDown || !started(err) || m.Count() != 1 {
			t.Errorf("heard: %d calls, %v", m.Count(), err)
		}
		// where nobody hears the pieces nothing has to be taken back
		m = script.Of(broken, script.Text("ok"))
		if resp, err := newModel(t, retry.Config{Model: m}).Generate(t.Context(), request(), nil); err != nil || resp.Message.Said() != "ok" {
			t.Errorf("unheard: %d calls, %v", m.Count(), err)
		}
		m = script.Of(repeat(9, broken)...)
		if _, err := newModel(t, retry.Config{Model: m}).Generate(t.Context(), request(), nil); err == nil || started(err) {
			t.Errorf("unheard for ever: %v", err)
		}
		// pieces that were passed on count even if the error does not say so
		unsaid := script.Text("some words that break off")
		unsaid.Err, unsaid.Pieces = &memgpt.Error{Code: memgpt.CodeModelDown, Text: "x"}, 1
		m = script.Of(unsaid, script.Text("ok"))
		if _, err := newModel(t, retry.Config{Model: m}).Generate(t.Context(), request(), func(memgpt.Delta) {}); !started(err) || m.Count() != 1 {
			t.Errorf("unsaid: %d calls, %v", m.Count(), err)
		}
	})
}

func TestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := newModel(t, retry.Config{Model: script.Of(fail(memgpt.CodeModelLimit, time.Minute))}).Generate(ctx, request(), nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestInjected(t *testing.T) {
	var waits []time.Duration
	told := 0
	now := time.Unix(0, 0)
	m := newModel(t, retry.Config{
		Model: script.Of(repeat(9, fail(memgpt.CodeModelDown, 0))...),
		Tries: 9, Base: time.Second, Max: 8 * time.Second,
		Now:   func() time.Time { return now },
		Rand:  func() float64 { return 0.5 },
		Sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d); now = now.Add(d); return nil },
		Retry: func(context.Context, error, time.Duration) { told++ },
	})
	if _, err := m.Generate(t.Context(), request(), nil); err == nil {
		t.Error("no error")
	}
	want := []time.Duration{750, 1500, 3000, 6000, 6000, 6000, 6000, 6000}
	if len(waits) != len(want) || told != len(want) {
		t.Fatalf("waits %v, told %d", waits, told)
	}
	for i, d := range waits {
		if d != want[i]*time.Millisecond {
			t.Errorf("wait %d is %v, want %v", i, d, want[i]*time.Millisecond)
		}
	}
	if _, err := retry.New(retry.Config{}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("no model: %v", err)
	}
}

func TestContract(t *testing.T) {
	modeltest.Run(t, func(t *testing.T) modeltest.Subject {
		answer := script.Config{Func: func(int, *memgpt.Request) script.Reply {
			return script.Calls(script.Text("好"), script.Say("你好🍷"), script.Call("f"))
		}}
		stuck := script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Text("x").Held(script.NewGate()) }}
		return modeltest.Subject{
			Model: newModel(t, retry.Config{Model: script.New(answer)}),
			Stuck: newModel(t, retry.Config{Model: script.New(stuck)}),
		}
	})
}
