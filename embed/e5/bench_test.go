package e5

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// shortText is of some 15 tokens; mixedTexts are 32 texts of 12 to some 200.
const shortText = "I moved to Berlin in March and work as a nurse."

func mixedTexts(t testing.TB) []string {
	var texts []string
	all := samples(t)
	for i := range 32 {
		text := all[i%60].Text
		if i%4 == 3 {
			text = strings.Repeat(text+" ", 6)
		}
		texts = append(texts, text)
	}
	return texts
}

func BenchmarkShort(b *testing.B) {
	for _, k := range kernels() {
		b.Run(k.name, func(b *testing.B) { benchmarkEmbed(b, k, []string{shortText}) })
	}
}

// BenchmarkBatch embeds 32 texts on one goroutine.
func BenchmarkBatch(b *testing.B) {
	for _, k := range kernels() {
		b.Run(k.name, func(b *testing.B) { benchmarkEmbed(b, k, mixedTexts(b)) })
	}
}

// BenchmarkEqual embeds 32 short texts of one length.
func BenchmarkEqual(b *testing.B) {
	for _, k := range kernels() {
		b.Run(k.name, func(b *testing.B) { benchmarkEmbed(b, k, slices.Repeat([]string{shortText}, 32)) })
	}
}

func benchmarkEmbed(b *testing.B, k kernel, texts []string) {
	e := newEncoder(b, k)
	e.threads = 1
	tokens := 0
	f, err := readModel("")
	if err != nil {
		b.Fatal(err)
	}
	tok := newTokenizer(f)
	for _, text := range texts {
		tokens += len(tok.encode(storedPrefix+text, MaxTokens))
	}
	if _, err := e.Embed(b.Context(), texts, false); err != nil {
		b.Fatal(err)
	}
	began := cpuTime()
	best := time.Hour
	for b.Loop() {
		start := cpuTime()
		if _, err := e.Embed(b.Context(), texts, false); err != nil {
			b.Fatal(err)
		}
		best = min(best, cpuTime()-start)
	}
	used := cpuTime() - began
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(tokens)*float64(b.N)/max(used.Seconds(), 1e-9), "tokens/cpu-s")
	b.ReportMetric(float64(best.Microseconds())/1000, "best-cpu-ms")
	b.ReportMetric(float64(tokens), "tokens")
}

// BenchmarkLoad is what the first text waits for.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		f, err := readModel("")
		if err != nil {
			b.Fatal(err)
		}
		load(f, plainKernel(), 1)
	}
}

func BenchmarkTokenize(b *testing.B) {
	f, err := readModel("")
	if err != nil {
		b.Fatal(err)
	}
	tok := newTokenizer(f)
	for b.Loop() {
		tok.encode(storedPrefix+shortText, MaxTokens)
	}
}
