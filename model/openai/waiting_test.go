package openai

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// waiting holds n calls at a server of this process, with prompts of 16 KiB (a window of 4,096), and returns the memory
// that each takes, client and server together.
func waiting(t testing.TB, n int) (perCall int) {
	gate := script.NewGate()
	srv := httptest.NewServer(script.NewServer(script.ServerConfig{Config: script.Config{CountOnly: true,
		Func: func(int, *memgpt.Request) script.Reply { return script.Say("ok").Held(gate) }}}))
	defer srv.Close()
	m, err := New(Config{BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	prompt := strings.Repeat("0123456789abcde\n", 1024)
	before := used()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := m.Generate(t.Context(), ask(prompt), nil); err != nil {
				t.Error(err)
			}
		})
		<-gate.Entered() // one after the other, so that the burst of connections is no part of the test
	}
	perCall = (used() - before) / n
	gate.Open()
	wg.Wait()
	return perCall
}

func used() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapInuse + s.StackInuse)
}

// TestWaitingTakesLittle holds the promise of 10,000 agents in 1 GiB: what a call takes while it waits must leave most of
// that (100 KiB each) to the agents. A body that is kept would take 16 KiB more on either side.
func TestWaitingTakesLittle(t *testing.T) {
	const most = 64 << 10
	if raced {
		t.Skip("the race detector takes memory of its own")
	}
	if per := waiting(t, 300); per > most {
		t.Errorf("a waiting call takes %d bytes, and %d is the most", per, most)
	} else {
		t.Logf("a waiting call takes %d bytes, client and server together", per)
	}
}

// BenchmarkWaiting reports the memory of one of 8,000 waiting calls.
func BenchmarkWaiting(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(waiting(b, 8_000)), "bytes/call")
	}
}

func BenchmarkEncode(b *testing.B) {
	req := ask(strings.Repeat("请牢记,我不能喝酒 \"🍷\"\n", 500))
	cfg := Config{Model: "m"}
	b.ReportAllocs()
	for b.Loop() {
		encode(req, "m", &cfg, shape{})
	}
}
