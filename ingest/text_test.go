package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

// show writes chunks as "heading | text", one a line.
func show(chunks []Chunk) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "%s | %s\n", c.Heading, strings.ReplaceAll(c.Text, "\n", "⏎"))
	}
	return b.String()
}

type example struct {
	what, name, text, want string
	max                    int
}

func (e example) run(t *testing.T) {
	cfg := Config{Max: e.max}
	chunks, rep := cut(t, cfg, e.name, strings.NewReader(e.text))
	if e.max == 0 {
		cfg.Max = DefaultMax
	}
	cfg.Count = Estimate
	sound(t, cfg, e.text, chunks, rep)
	if diff := cmp.Diff(e.want, show(chunks)); diff != "" {
		t.Error(diff)
	}
}

func TestMarkdown(t *testing.T) {
	for _, e := range []example{
		{"headings make a path", "a.md", "Intro.\n# A\nText a.\n## B ##\n\nText b.\n\n# C\nText c.\n",
			" | Intro.\nA | # A⏎Text a.\nA > B | ## B ##⏎⏎Text b.\nC | # C⏎Text c.\n", 0},
		{"headings without text stay together", "a.md", "# A\n\n## B\n\n### C\nText.\n## D\n## E\nMore.",
			"A > B > C | # A⏎⏎## B⏎⏎### C⏎Text.\nA > D | ## D\nA > E | ## E⏎More.\n", 0},
		{"underlined headings", "a.md", "Title\n=====\nOne.\n\nPart\n---\nTwo.\n\n---\n\n- item\n---\nThree.",
			"Title | Title⏎=====⏎One.\nTitle > Part | Part⏎---⏎Two.⏎⏎---⏎⏎- item⏎---⏎Three.\n", 0},
		{"no headings in code", "a.md", "# A\n```sh\n# not one\n\ntext\n===\n```\n    # nor this\n#nor this\n",
			"A | # A⏎```sh⏎# not one⏎⏎text⏎===⏎```⏎    # nor this⏎#nor this\n", 0},
		{"a fence in a list, closed by its own sign", "a.md", "- x\n  ````\n  ```\n  # no\n  ````\n# Yes\nz",
			" | - x⏎  ````⏎  ```⏎  # no⏎  ````\nYes | # Yes⏎z\n", 0},
		{"code is kept whole", "a.md", "One two three four five six.\n\n```\nalpha beta\n\ngamma delta epsilon zeta\n```\nAfter it all was well, they say.",
			" | One two three four five six.\n | ```⏎alpha beta⏎⏎gamma delta epsilon zeta⏎```\n | After it all was well, they say.\n", 16},
		{"a table is kept whole", "a.md", "Words before the table stand here.\n| a | b |\n|---|---|\n| 1 | 2 |\n\nAfter the table.",
			" | Words before the table stand here.\n | | a | b |⏎|---|---|⏎| 1 | 2 |⏎⏎After the table.\n", 16},
		{"a long table is cut at rows", "a.md", "a | b\n--|--\none | two\nthree | four\nfive | six\nseven hundred | eight hundred\n",
			" | a | b⏎--|--⏎one | two⏎three | four⏎five | six\n | seven hundred | eight hundred\n", 16},
		{"front matter", "a.md", "---\ntitle: \"Notes\"\ndate: 2024-05-06\ntags: [x, 'y']\n---\nText.\n# H\nMore.",
			"Notes | ---⏎title: \"Notes\"⏎date: 2024-05-06⏎tags: [x, 'y']⏎---\nNotes | Text.\nNotes > H | # H⏎More.\n", 0},
		{"a rule at the top is no front matter", "a.md", "---\n\nText.\n\n# H\nx", " | ---⏎⏎Text.\nH | # H⏎x\n", 0},
		{"a heading stays with the beginning of its text", "a.md", "# Heading\nOne two three four five. Six seven eight nine ten eleven twelve thirteen.",
			"Heading | # Heading⏎One two three four five.\nHeading | Six seven eight nine ten eleven twelve thirteen.\n", 16},
		{"a long heading", "a.md", "# " + strings.Repeat("long ", 40) + "\nx",
			strings.Repeat("long ", 23) + "long… | # " + strings.Repeat("long ", 40) + "⏎x\n", 0},
	} {
		t.Run(e.what, e.run)
	}
}

func TestFrontMatter(t *testing.T) {
	chunks, _ := cut(t, Config{}, "a.md", strings.NewReader("---\ndate: 2024-05-06\ntags:\n  - x\n  - y z\nother: 1\n- no\n---\nText."))
	last := chunks[len(chunks)-1]
	if diff := cmp.Diff([]string{"x", "y z"}, last.Tags); diff != "" || last.Time.Format("2006-01-02") != "2024-05-06" {
		t.Errorf("%v %s", last.Time, diff)
	}
}

func TestPlain(t *testing.T) {
	for _, e := range []example{
		{"paragraphs that fit stay together", "a.txt", "One.\n\nTwo.\n\n\nThree.", " | One.⏎⏎Two.⏎⏎⏎Three.\n", 0},
		{"cut at paragraphs", "a.txt", "One two three four five six seven eight or so.\n\nNine ten eleven twelve thirteen fourteen.",
			" | One two three four five six seven eight or so.\n | Nine ten eleven twelve thirteen fourteen.\n", 16},
		{"cut at sentences", "a.txt", "One two three four five six seven eight or so. Nine ten eleven Mr. Smith went away. To U.S. Steel he said \"Go on!\" Then he left again for good and was seen no more.",
			" | One two three four five six seven eight or so.\n | Nine ten eleven Mr. Smith went away.\n | To U.S. Steel he said \"Go on!\"\n | Then he left again for good and was seen no more.\n", 16},
		{"cut at Chinese sentences", "a.txt", "他说：“我明天再来。”然后走了。我们等到晚上！可是没有人来，真的没有人来。",
			" | 他说：“我明天再来。”然后走了。\n | 我们等到晚上！\n | 可是没有人来，真的没有人来。\n", 16},
		{"cut at clauses", "a.txt", "一二三四五六七八九十，一二三四五六七八九十一二三四五六七八九十。",
			" | 一二三四五六七八九十，\n | 一二三四五六七八九十一二三四五六\n | 七八九十。\n", 16},
		{"chapters", "a.txt", "CHAPTER I\n\nIt began. It was\nCHAPTER II of it.\n\nBOOK ONE: 1805\n\nCHAPTER 2. The Road\n\nText.\n",
			"CHAPTER I | CHAPTER I⏎⏎It began. It was⏎CHAPTER II of it.\nBOOK ONE: 1805 > CHAPTER 2. The Road | BOOK ONE: 1805⏎⏎CHAPTER 2. The Road⏎⏎Text.\n", 0},
		{"Chinese chapters", "a.txt", "第一卷 风起\n第一章　山村\n他在山村里长大。\n第二章 下山\n第三章的故事是假的，不算。\n第一节\n他走了。",
			"第一卷 风起 > 第一章 山村 | 第一卷 风起⏎第一章　山村⏎他在山村里长大。\n" +
				"第一卷 风起 > 第二章 下山 | 第二章 下山⏎第三章的故事是假的，不算。\n第一卷 风起 > 第二章 下山 > 第一节 | 第一节⏎他走了。\n", 0},
		{"numbers and capitals", "a.txt", "THE GREAT PLAN\n\nWhy.\n\n1 Scope\n\nAll.\n\n1.2 Terms of it\n\nNone.\n\n3. Buy some milk, please.\n\nOK.",
			"THE GREAT PLAN | THE GREAT PLAN⏎⏎Why.\nTHE GREAT PLAN > 1 Scope | 1 Scope⏎⏎All.\n" +
				"THE GREAT PLAN > 1 Scope > 1.2 Terms of it | 1.2 Terms of it⏎⏎None.⏎⏎3. Buy some milk, please.⏎⏎OK.\n", 0},
		{"underlined and overlined", "a.rst", "=====\nTitle\n=====\nOne.\n\nPart\n----\nTwo.\n\nIt is said so.\n-\n-----\nx",
			"Title | =====⏎Title⏎=====⏎One.\nTitle > Part | Part⏎----⏎Two.⏎⏎It is said so.⏎-⏎-----⏎x\n", 0},
		{"no Markdown in plain text", "a.txt", "# a comment\nx = 1\n\n# another\n", " | # a comment⏎x = 1⏎⏎# another\n", 0},
		{"items of a list", "a.txt", "- one two three four\n- five six seven eight\n- nine ten eleven and more of it\n1. Twelve\n2. Thirteen",
			" | - one two three four⏎- five six seven eight\n | - nine ten eleven and more of it⏎1. Twelve⏎2. Thirteen\n", 16},
		{"nothing", "a.txt", " \n\n\u3000\n", "", 0},
	} {
		t.Run(e.what, e.run)
	}
}

// TestGraphemes cuts texts of one repeated character that readers see as one, at every size.
func TestGraphemes(t *testing.T) {
	for _, char := range []string{"é", "👩‍👩‍👧‍👦", "🇩🇪", "한", "각", "क्षि", "👍🏽", "ก็่", "a\u0300\u0323", "❤️", "𠀋"} {
		for _, pad := range []string{"", "x", "xy", "xyz"} {
			text := pad + strings.Repeat(char, 200)
			cfg := Config{Max: 16, Count: Estimate}
			chunks, rep := cut(t, cfg, "a.txt", strings.NewReader(text))
			sound(t, cfg, text, chunks, rep)
			for _, c := range chunks {
				if strings.Trim(strings.ReplaceAll(c.Text, char, ""), "xyz") != "" {
					t.Errorf("%q is cut within: %q", char, c.Text)
				}
			}
			if len(chunks) < 2 {
				t.Errorf("%q is not cut", char)
			}
		}
	}
}

func TestNoSpaces(t *testing.T) {
	for unit, size := range map[string]int{"x": 1 << 20, "字": 1 << 20, "a\u0301": 1 << 20, "\u0301": 1 << 18, "🇩🇪": 1 << 17} {
		text := strings.Repeat(unit, size/len(unit))
		chunks, rep := cut(t, Config{}, "a.txt", strings.NewReader(text))
		sound(t, Config{}, text, chunks, rep)
		if most := 3 * Estimate(text) / DefaultMax; len(chunks) > most {
			t.Errorf("%q: %d chunks, %d would be many", unit, len(chunks), most)
		}
	}
}

// texts are awkward ones for the properties.
func texts(t testing.TB) map[string]string {
	all := map[string]string{}
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"word ", "Sentence ends. ", "\n", "\n\n", "# Head\n", "```\n", "| a | b |\n", "===\n", "---\n", "第三章\n", "他来了。", "é",
		"\r\n", "- item\n", "\u3000", "\u00a0", "👩‍👧", "e\u0301", "“Quote.” ", "1.2 Terms\n", "CAPITAL LINE\n", strings.Repeat("long", 300), "\f"}
	for i := range 28 {
		var b strings.Builder
		for range 1 + r.IntN(1500) {
			b.WriteString(words[r.IntN(len(words))])
			if i%7 == 0 && r.IntN(300) == 0 {
				word := words[r.IntN(len(words))]
				b.WriteString(strings.Repeat(word, 1+80000/len(word)))
			}
		}
		all[fmt.Sprintf("%d%s", i, []string{".md", ".txt"}[i%2])] = b.String()
	}
	return all
}

// TestNothingLost is the property of every text, and that sizes of reads and other counts change nothing about it.
func TestNothingLost(t *testing.T) {
	for name, text := range texts(t) {
		clean := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		for _, cfg := range []Config{{Max: DefaultMax, Count: Estimate}, {Max: 40, Count: func(s string) int { return len(strings.Fields(s)) + len(s)/20 }}} {
			chunks, rep := cut(t, cfg, name, strings.NewReader(text))
			sound(t, cfg, clean, chunks, rep)
			for _, slow := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
				again, rep2 := cut(t, cfg, name, slow(strings.NewReader(text)))
				if diff := cmp.Diff(chunks, again) + cmp.Diff(rep, rep2); diff != "" {
					t.Fatalf("%s: other reads, other chunks: %.2000s", name, diff)
				}
			}
		}
	}
}

// TestDecodedAlike holds the same for an encoding that must be told first, which depends on what a window holds.
func TestDecodedAlike(t *testing.T) {
	text := strings.Repeat("plain words. ", 9000) + strings.Repeat("昨天我们去了苏州，参观了拙政园。\n\n", 4000)
	raw := encode(t, text, "gb18030")
	want, rep := cut(t, Config{}, "a", bytes.NewReader(raw))
	sound(t, Config{}, text, want, rep)
	if rep.Encoding != "gb18030" || len(rep.Hash) != 32 {
		t.Errorf("%+v", rep)
	}
	for _, slow := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		got, rep2 := cut(t, Config{}, "a", slow(bytes.NewReader(raw)))
		if diff := cmp.Diff(want, got) + cmp.Diff(rep, rep2); diff != "" {
			t.Fatalf("%.2000s", diff)
		}
	}
	utf, rep3 := cut(t, Config{}, "a", strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n")))
	if diff := cmp.Diff(want, utf); diff != "" || rep.Hash != rep3.Hash {
		t.Errorf("the same text in UTF-8 is another: %.2000s", diff)
	}
}

func TestDocuments(t *testing.T) {
	dir := documents(t)
	for _, pattern := range []string{"txt/*", "md/*", "rst/*"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			format := formatOf(file, raw)
			text, _ := decodeAll(t, raw, Config{})
			chunks, rep := cut(t, Config{Format: format}, file, bytes.NewReader(raw))
			sound(t, Config{}, text, chunks, rep)
			if strings.TrimSpace(text) != "" && len(chunks) == 0 {
				t.Errorf("%s has no chunks", file)
			}
		}
	}
}

// endless yields a text of the given size in bytes without holding it.
type endless struct {
	left int
	unit []byte
	at   int
	seen func() // called by each read
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	e.seen()
	n := copy(p[:min(len(p), e.left)], e.unit[e.at:])
	e.at = (e.at + n) % len(e.unit)
	e.left -= n
	return n, nil
}

// TestBoundedMemory streams 10 MB, or 200 in its long form, and as much of the shapes that hold most, and watches the heap.
func TestBoundedMemory(t *testing.T) {
	share := 20
	if os.Getenv("MEMGPT_LONG") != "" {
		share = 1
	}
	para := "He went to the harbour early. Nobody was there yet, but the boats were out.\n他去了码头。那里还没有人。\n\n"
	for _, c := range []struct {
		name, unit string
		mb         int
	}{
		{"a.md", "# Head\n\n" + strings.Repeat(para, 50), 200}, {"b.txt", "\n", 40}, {"c.txt", "x", 20}, {"d.md", "```\ncode\n", 20},
		{"e.txt", "no end of it ", 20}, {"f.jsonl", `{"text":"` + strings.Repeat("a b ", 200) + "\"}\n", 20}, {"g.jsonl", "{", 20},
	} {
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		most, n := uint64(0), 0
		watch := func() {
			if n++; n%200 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
		}
		size := max(c.mb/share, 4) << 20 / len(c.unit) * len(c.unit) // whole units
		r := io.MultiReader(strings.NewReader(`{"text":"x"}`+"\n"), &endless{left: size, unit: []byte(strings.Repeat(c.unit, 1+4096/len(c.unit))), seen: watch})
		rep, err := must(t, Config{}).Cut(t.Context(), c.name, r, func(Chunk) error { return nil })
		if err != nil || rep.Bytes < int64(size) {
			t.Errorf("%s: %v, %d bytes", c.name, err, rep.Bytes)
		}
		if grown := int64(most) - int64(before.HeapAlloc); grown > 8<<20 {
			t.Errorf("%s: the heap grew by %d KiB", c.name, grown>>10)
		}
		t.Logf("%s: %d MB, %d chunks, heap at most %d KiB", c.name, size>>20, rep.Chunks, most>>10)
	}
}

// TestBroken holds that what goes wrong outside is handed on, and the report tells how far it came.
func TestBroken(t *testing.T) {
	lost := errors.New("lost")
	text := strings.Repeat("A sentence of some length stands here.\n\n", 4000)
	rep, err := must(t, Config{}).Cut(t.Context(), "x", io.MultiReader(strings.NewReader(text), iotest.ErrReader(lost)), func(Chunk) error { return nil })
	if !errors.Is(err, lost) || rep.Chunks == 0 {
		t.Errorf("reader: %v after %d chunks", err, rep.Chunks)
	}
	rep, err = must(t, Config{}).Cut(t.Context(), "x", strings.NewReader(text), func(c Chunk) error {
		if c.Index == 3 {
			return lost
		}
		return nil
	})
	if !errors.Is(err, lost) || rep.Chunks != 3 {
		t.Errorf("yield: %v after %d chunks", err, rep.Chunks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rep, err = must(t, Config{}).Cut(ctx, "x", strings.NewReader(text), func(c Chunk) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || rep.Chunks != 1 {
		t.Errorf("context: %v after %d chunks", err, rep.Chunks)
	}
	_, err = must(t, Config{}).Cut(t.Context(), "x", strings.NewReader("%PDF-1.7\n…"), func(Chunk) error { t.Error("a chunk"); return nil })
	if memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("PDF: %v", err)
	}
}

// FuzzCut holds the property for whatever text.
func FuzzCut(f *testing.F) {
	for name, text := range texts(f) {
		f.Add(memgpt.CutText(text, 3000), strings.HasSuffix(name, ".md"), uint8(len(name)))
	}
	f.Fuzz(func(t *testing.T, text string, markdown bool, max uint8) {
		cfg := Config{Max: minMax + int(max), Count: Estimate, Encoding: "utf-8", Format: FormatText}
		if markdown {
			cfg.Format = FormatMarkdown
		}
		if check("x", []byte(text), true) != nil {
			return
		}
		clean := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(memgpt.CleanText(strings.TrimPrefix(text, "\ufeff")))
		var chunks []Chunk
		rep, err := must(t, cfg).Cut(t.Context(), "x", iotest.HalfReader(strings.NewReader(text)), func(c Chunk) error {
			chunks = append(chunks, c)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Invalid == 0 && rep.Dropped == 0 { // runs of what is invalid are replaced as one by CleanText
			sound(t, cfg, clean, chunks, rep)
		}
	})
}
