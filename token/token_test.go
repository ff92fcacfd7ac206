package token

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer/codec"

	"memgpt"
)

func counter(t testing.TB) *Counter {
	t.Helper()
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNew(t *testing.T) {
	if _, err := New(Config{Encoding: "klingon"}); memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), O200k) {
		t.Errorf("an unknown encoding gave %v", err)
	}
	c, err := New(Config{Encoding: Cl100k})
	if err != nil {
		t.Fatal(err)
	}
	if old, now := c.Text("我叫小林，住在杭州。"), counter(t).Text("我叫小林，住在杭州。"); old <= now {
		t.Errorf("cl100k counts %d for Chinese, o200k %d", old, now)
	}
}

// Figures of the published encoding, got from tiktoken.
func TestText(t *testing.T) {
	c := counter(t)
	for text, want := range map[string]int{"": 0, "hello world": 2, "\n": 1, strings.Repeat("a", 8): 1, "tokenization": 2} {
		if got := c.Text(text); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

// TestPublishedCounts compares both vocabularies with the counts that their makers publish (OpenAI's cookbook, "How to
// count tokens with tiktoken", its comparison of encodings).
func TestPublishedCounts(t *testing.T) {
	for tokenizer, counts := range map[string]map[string]int{
		"o200k_base":  {"tiktoken is great!": 6, "antidisestablishmentarianism": 6, "2 + 2 = 4": 7, "お誕生日おめでとう": 8},
		"cl100k_base": {"tiktoken is great!": 6, "antidisestablishmentarianism": 6, "2 + 2 = 4": 7, "お誕生日おめでとう": 9},
		"llama-bpe":   {"お誕生日おめでとう": 8},
		"":            {"お誕生日おめでとう": 8},
	} {
		c, err := New(Config{Encoding: EncodingOf(tokenizer)})
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range counts {
			if got := c.Text(text); got != want {
				t.Errorf("%s: %q has %d tokens, want %d", tokenizer, text, got, want)
			}
		}
	}
}

func TestTextAgreesWithEncoding(t *testing.T) {
	c, enc := counter(t), codec.NewO200kBase()
	for name, text := range samples(100_000) {
		want, err := enc.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Text(text); got != want {
			t.Errorf("%s: counted %d, the encoding %d", name, got, want)
		}
	}
}

// Beyond the exact size the estimate stays near, and is quick.
func TestTextEstimate(t *testing.T) {
	c, enc := counter(t), codec.NewO200kBase()
	for name, text := range samples(400 << 10) {
		want, err := enc.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got := c.Text(text)
		if took := time.Since(start); took > 2*time.Second { // generous: 150 ms are meant, the race detector is slow
			t.Errorf("%s: took %v", name, took)
		}
		if off := float64(got)/float64(want) - 1; off < -0.03 || off > 0.08 {
			t.Errorf("%s: estimated %d for %d, off by %.1f %%", name, got, want, 100*off)
		}
	}
}

// A text whose halves differ is still estimated well: the samples come from all over it.
func TestTextEstimateMixed(t *testing.T) {
	c := counter(t)
	s := samples(400_000)
	want := c.exact(s["english"]) + c.exact(s["base64"]) + c.exact(s["emoji"])
	got := c.Text(s["english"] + s["base64"] + s["emoji"])
	if off := float64(got)/float64(want) - 1; off < -0.05 || off > 0.05 {
		t.Errorf("estimated %d for %d", got, want)
	}
	if got := c.Text(strings.Repeat("\x80", exactBytes+1)); got < 1000 {
		t.Errorf("bytes that are no text were estimated at %d", got)
	}
}

func TestMessage(t *testing.T) {
	c := counter(t)
	long := strings.Repeat("word ", 50)
	plain := memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, long)
	base := c.Message(&memgpt.Message{})
	if base < 3 {
		t.Errorf("an envelope costs %d", base)
	}
	if got := c.Message(&plain); got != base+c.Text(long) {
		t.Errorf("a text message costs %d", got)
	}
	parts := map[string]struct {
		part memgpt.Part
		min  int
	}{
		"thought":          {memgpt.Text{Text: long, Thought: true}, c.Text(long)},
		"image":            {memgpt.Image{URL: "https://example.com/a.png"}, ImageTokens},
		"image data":       {memgpt.Image{Data: make([]byte, 1<<20)}, ImageTokens},
		"text file":        {memgpt.File{Name: "a.txt", Data: []byte(long)}, c.Text(long) + c.Text("a.txt")},
		"binary file":      {memgpt.File{Name: "a.pdf", Data: []byte{0xff, 0xfe}}, ImageTokens + c.Text("a.pdf")},
		"reasoning":        {memgpt.Reasoning{Text: long}, c.Text(long)},
		"opaque reasoning": {memgpt.Reasoning{Data: json.RawMessage(strings.Repeat("x", 400))}, 100},
		"call":             {memgpt.Call{ID: long, Name: long, Arguments: long}, 3*c.Text(long) + 1},
		"result":           {memgpt.Result{CallID: long, Text: long}, 2*c.Text(long) + 1},
		"unknown":          {memgpt.Unknown{Kind: "x", Raw: json.RawMessage(strconv.Quote(long))}, c.Text(long)},
	}
	for name, tt := range parts {
		got := c.Message(&memgpt.Message{Parts: memgpt.Parts{tt.part}}) - base
		if got < tt.min || got > tt.min+20 {
			t.Errorf("%s costs %d, want at least %d and little more", name, got, tt.min)
		}
		both := c.Message(&memgpt.Message{Parts: memgpt.Parts{tt.part, tt.part}}) - base
		if both != 2*got {
			t.Errorf("%s twice costs %d, once %d", name, both, got)
		}
	}
}

func TestTools(t *testing.T) {
	c := counter(t)
	if got := c.Tools(nil); got != 0 {
		t.Errorf("no functions cost %d", got)
	}
	one := memgpt.ToolSpec{Name: strings.Repeat("yield_", 20), Description: "Ends the turn.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	texts := c.Text(one.Name) + c.Text(one.Description) + c.Text(string(one.Parameters))
	single, double := c.Tools([]memgpt.ToolSpec{one}), c.Tools([]memgpt.ToolSpec{one, one})
	if single <= texts || double-single <= texts {
		t.Errorf("functions cost %d and %d, their texts %d", single, double, texts)
	}
}

func TestFactor(t *testing.T) {
	c := counter(t)
	expect := func(want float64) {
		t.Helper()
		if got := c.Factor("m"); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("the factor is %v, want %v", got, want)
		}
	}
	expect(1)
	c.Observe("m", 1000, 1500)
	expect(1.5) // up at once
	c.Observe("m", 1000, 1000)
	expect(1.45) // down slowly
	c.Observe("m", 1000, 400)
	expect(1.45) // truncated
	c.Observe("m", 10, 100)
	expect(1.45) // too small to tell
	c.Observe("m", 1000, 0)
	c.Observe("m", 0, 1000)
	c.Observe("m", -5, -5)
	expect(1.45)
	c.Observe("m", 1000, 1_000_000)
	expect(8)
	for range 1000 {
		c.Observe("m", 1000, 610)
	}
	if got := c.Factor("m"); got < 0.6 || got > 0.62 {
		t.Errorf("the factor sank to %v, want to 0.61", got)
	}
	if got := c.Factor("other"); got != 1 {
		t.Errorf("another model has the factor %v", got)
	}
	c.Observe("fresh", 1000, 900)
	if got := c.Factor("fresh"); got < 0.9899 || got > 0.9901 {
		t.Errorf("one low report moved a fresh factor to %v", got)
	}
}

func TestTruncated(t *testing.T) {
	c := counter(t)
	for _, tt := range []struct {
		counted, reported int
		want              bool
	}{{1000, 599, true}, {1000, 600, false}, {1000, 0, false}, {1000, 2000, false}, {50, 1, false}} {
		if got := c.Truncated(tt.counted, tt.reported); got != tt.want {
			t.Errorf("Truncated(%d, %d) = %v", tt.counted, tt.reported, got)
		}
	}
}

func TestFactorsAreBounded(t *testing.T) {
	c := counter(t)
	for i := range 10 * maxModels {
		c.Observe(strconv.Itoa(i), 1000, 2000)
	}
	if n := len(c.factors.byModel); n > maxModels {
		t.Errorf("%d models are remembered", n)
	}
	if got := c.Factor(strconv.Itoa(10*maxModels - 1)); got != 2 {
		t.Errorf("the newest model has the factor %v", got)
	}
}

func TestConcurrent(t *testing.T) {
	c := counter(t)
	texts := samples(5000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, s := range texts {
				first := c.Text(s)
				c.Observe("m", 1000, 1100)
				if again := c.Text(s); again != first || c.Factor("m") > 1.2 {
					t.Errorf("counted %d, then %d", first, again)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzText(f *testing.F) {
	for _, s := range samples(200) {
		f.Add(s, s)
	}
	f.Add("err", "ounce0")
	f.Add("don't", "'S we’ll \t\r\n  x")
	f.Add("ſ'ſ 'ſ K'K'RE'Ve'lL'LX", "\u0085\u00a0\u1680\u180e\u200b\u2028\u3000 x\u3000\u3000x")
	f.Add("x\u0301\u0301y e\u0301te\u0301", "क्षत्रिय हिन्दी")
	f.Add("\u0301A ǅa ªA ʰB", "(\u0301 (A\u0301b 12345 ½x ٣٤٥٦ // a/\n/ \n \n  b")
	f.Add("\x1c\x1d\x1f a\v\fb", "\r\n\r\n\t x  \n")
	f.Add("\xff\xfe", "a\u0301")
	c, enc := counter(f), codec.NewO200kBase()
	f.Fuzz(func(t *testing.T, a, b string) {
		na, nb, nab := c.Text(a), c.Text(b), c.Text(a+b)
		if a != "" && na < 1 {
			t.Errorf("%q counts %d", a, na)
		}
		for text, n := range map[string]int{a: na, b: nb, a + b: nab} {
			if want, err := enc.Count(text); err == nil && len(text) < exactBytes && n != want {
				t.Errorf("%q counts %d, the encoding says %d", text, n, want)
			}
		}
		if nab > na+nb+3+(na+nb)/8 { // pairs are merged greedily: a joint may undo good merges on both of its sides
			t.Errorf("%q counts %d, %q %d, together %d", a, na, b, nb, nab)
		}
	})
}

// samples are texts of about n bytes that have been trouble for tokenizers.
func samples(n int) map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	fill := func(next func() string) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(next())
		}
		return b.String()
	}
	pick := func(words ...string) func() string { return func() string { return words[r.IntN(len(words))] } }
	const b64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return map[string]string{
		"english":  fill(pick("the ", "agent ", "remembers ", "don't ", "Caroline's ", "7391, ", "bike.\n", "SaidHe ", "\r\n", "  ")),
		"chinese":  fill(pick("我叫小林", "，住在杭州。", "记得", "我不能喝酒", "二〇二四年", "腾讯云", "\n")),
		"emoji":    fill(pick("👩‍👩‍👧‍👦", "🍷", "é", "e\u0301", "👍🏽 ")),
		"aaa":      strings.Repeat("a", n),
		"spaces":   strings.Repeat(" ", n),
		"base64":   fill(func() string { return string(b64[r.IntN(64)]) }),
		"code":     fill(pick("func (c *Counter) ", "{\n\t\t", "return x != nil && y[0] == '\\n'", "}\n", "// why\n", "if err := f(); err")),
		"japanese": fill(pick("今日は成語", "しりとり", "をした。", "カタカナ")),
		"letters":  fill(func() string { return string(rune('a' + r.IntN(26))) }),
	}
}

func BenchmarkText(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, exactBytes - 64, 2 << 20} {
		for name, text := range samples(size) {
			b.Run(name+"/"+strconv.Itoa(size>>10)+"k", func(b *testing.B) {
				c := counter(b)
				c.Text("warm")
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					c.Text(text)
				}
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		counter(b).Text("x")
	}
}
