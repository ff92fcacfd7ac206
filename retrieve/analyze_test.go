package retrieve_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt/retrieve"
	"memgpt/store"
)

// shown writes a term with its kind in front: = exact word, d: date in a text, t: date of the text, #: tag.
func shown(term string) string {
	switch term[0] {
	case 1:
		return "=" + term[1:]
	case 2:
		return "d:" + term[1:]
	case 3:
		return "t:" + term[1:]
	case 4:
		return "#" + term[1:]
	}
	return term
}

func analyze(in store.IndexText) (string, int) {
	terms, length := new(retrieve.Analyzer).Analyze(in)
	var list []string
	for _, t := range terms {
		list = append(list, strings.Repeat(shown(t.Term)+" ", t.N))
	}
	return strings.TrimSpace(strings.Join(list, "")), length
}

func TestAnalyzeText(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		length           int
	}{
		{"empty", "", "", 0},
		{"spaces", " \t\n ", "", 0},
		{"words and stems", "The runner runs", "the runner run =runs", 3},
		{"a stem is no other word", "abilities", "abil =abilities", 1},
		{"counts", "tea, tea. TEA!", "tea tea tea", 3},
		{"possessive", "Caroline's café", "carolin =caroline cafe =café", 2},
		{"contractions", "don't we’ll can’t", "dont we cant", 3},
		{"accents apart", "cafe\u0301 Łódź Straße", "cafe =café lodz =łódź strass =straße", 3},
		{"full width", "ＡＢＣ１２３", "abc123 abc 123", 1},
		{"script border", "Bart在学校", "bart 在 学 在学 校 学校", 3},
		{"han", "部署", "部 署 部署", 2},
		{"one han", "猫", "猫", 1},
		{"kana with han", "今日は", "今 日 今日 は 日は", 2},
		{"half-width kana", "ｶﾞｰ", "ガ ー ガー", 2},
		{"katakana parts", "ニュー・ヨー", "ニ ュ ニュ ー ー ュー ヨ ヨー", 3},
		{"thai", "ที่นี่", "ที่ นี่ ที่นี่", 2},
		{"lao", "ລາວ", "ລ າ ລາ ວ າວ", 2},
		{"khmer", "ខ្មែរ", "ខ្ មែ ខ្មែ រ មែរ", 2},
		{"myanmar", "မြန်", "မြ န် မြန်", 2},
		{"hangul", "학교에서 집", "학 교 학교 에 교에 서 에서 학교에서 집", 2},
		{"hangul pair", "학교", "학 교 학교", 1},
		{"arabic points", "كِتَاب", "كتاب =كِتَاب", 1},
		{"arabic digits", "٢٠٢٤", "2024", 1},
		{"hebrew points", "שָׁלוֹם", "שלום =שָׁלוֹם", 1},
		{"hindi keeps its marks", "हिन्दी किताब", "हिन्दी किताब", 2},
		{"cyrillic", "Ёлка", "елка =ёлка", 1},
		{"greek", "ΟΔΟΣ οδός", "οδοσ οδοσ =οδός", 2},
		{"emoji", "🍷👍🏽", "🍷 👍", 2},
		{"family", "👩‍👩‍👧", "👩 👩 👧", 3},
		{"flag", "🇩🇪🇫🇷", "🇩🇪 🇫🇷", 2},
		{"code", "重跑gen-itgc后50条", "重 跑 重跑 gen itgc 后 50 条 gen-itgc", 6},
		{"version", "v1.2.3", "v1 v 1 2 3 v1.2.3", 3},
		{"address", "foo@bar.com", "foo bar com foo@bar.com", 3},
		{"path", "/usr/lib/x.so", "usr lib x so usr/lib/x.so", 4},
		{"windows path", `C:\path`, `c path c:\path`, 2},
		{"url", "https://a.io/x?y=1", "http =https a io x y 1 https://a.io/x?y=1", 6},
		{"phone", "+49-30-1234", "49 30 1234 49-30-1234", 3},
		{"time", "12:30", "12 30 12:30", 2},
		{"thousands", "1,000 1,000,000", "1 1 000 000 000 1000 1000000", 5},
		{"decimal comma", "3,5", "3 5 3,5", 2},
		{"ordinal", "8th", "8th 8 th", 1},
		{"hex is no ordinal", "4a1f", "4a1f", 1},
		{"dashes part", "wait--what...so", "wait what so", 3},
		{"sentence", "one, two; (three)", "on =one two three", 3},
		{"zero width", "soft\u00adhyphen a\u200bb", "softhyphen a b", 3},
		{"invalid", "a\xff\xed\xa0\x80b\xc3", "a b", 2},
		{"forged kinds", "\x02m05 \x04x", "m05 m 05 x", 2},
		{"NUL", "a\x00b", "a b", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, length := analyze(store.IndexText{Text: c.text})
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%q: -want +got\n%s", c.text, d)
			}
			if length != c.length {
				t.Errorf("%q has length %d, want %d", c.text, length, c.length)
			}
		})
	}
}

func TestAnalyzeDates(t *testing.T) {
	const day = "d:m05 d:2023-05 d:05-08 d:2023-05-08"
	for text, want := range map[string]string{
		"8 May 2023": day, "8th of May, 2023": day, "May 8, 2023": day, "May 8th 2023": day, "8-May-2023": day, "on 08 may. 2023": day,
		"2023-05-08": day, "2023/05/08": day, "2023/5/8": day, "2023.05.08": day, "2023-05-08T13:56:00Z": day,
		"2023年5月8日": day, "２０２３年５月８日の": day, "2023년 5월 8일": day, "2023年5月8号": day, "8.5.2023": day,
		"May 2023": "d:m05 d:2023-05", "2023-05": "d:m05 d:2023-05", "2023年5月": "d:m05 d:2023-05", "(May, 2023)": "d:m05 d:2023-05",
		"May 8": "d:m05 d:05-08", "5月8日": "d:m05 d:05-08", "5月": "d:m05",
		"25/12/2023": "d:m12 d:2023-12 d:12-25 d:2023-12-25", "12/25/2023": "d:m12 d:2023-12 d:12-25 d:2023-12-25",
		"05/08/2023": "", "you may go": "", "may": "", "2023": "", "2023-13-01": "", "2023-05-99": "", "1.2.3": "", "99 May 20": "d:m05 d:05-20",
		"0023-05-08": "", "2023年": "", "march on 8 roads": "", "120 May": "",
	} {
		got, _ := analyze(store.IndexText{Text: text})
		var dates []string
		for _, term := range strings.Fields(got) {
			if strings.HasPrefix(term, "d:") {
				dates = append(dates, term)
			}
		}
		if d := cmp.Diff(want, strings.Join(dates, " ")); d != "" {
			t.Errorf("%q: -want +got\n%s", text, d)
		}
	}
}

func TestAnalyzeWhatBelongsToAText(t *testing.T) {
	zone := time.FixedZone("Tokyo", 9*3600)
	got, length := analyze(store.IndexText{Text: "hi", Author: "Mel Ørsted", Time: time.Date(2023, 5, 7, 20, 0, 0, 0, time.UTC).In(zone),
		Tags: []string{" Work/ＩＤ 7 ", "北京"}})
	want := "hi mel orst =ørsted t:m05 t:2023-05 t:05-08 t:2023-05-08 t:2023 t:w1 #work/id 7 #北京"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if length != 1 {
		t.Errorf("length %d: what belongs to a text counted, want 1", length)
	}
}

func TestAnalyzeIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"word":       strings.Repeat("x", 1<<20),
		"code":       strings.Repeat("x-", 1<<19),
		"slashes":    strings.Repeat("/", 1<<20),
		"han":        strings.Repeat("学校", 1<<18),
		"thai":       strings.Repeat("ที่", 1<<17),
		"marks":      strings.Repeat("\u0301", 1<<19),
		"ligature":   strings.Repeat("\ufdfa", 1<<16),
		"surrogates": strings.Repeat("\xed\xa0\x80", 1<<18),
		"uuid":       strings.Repeat("550e8400-e29b-41d4-a716-446655440000", 1<<15),
	} {
		terms, _ := new(retrieve.Analyzer).Analyze(store.IndexText{Text: text})
		size := 0
		for _, term := range terms {
			if len(term.Term) > 65 || !utf8.ValidString(term.Term) {
				t.Errorf("%s: term %.80q has %d bytes or is no UTF-8", name, term.Term, len(term.Term))
			}
			size += len(term.Term)
		}
		if len(terms) > 1<<16 {
			t.Errorf("%s: %d terms", name, len(terms))
		}
	}
	long := strings.Repeat("z", 100)
	a, _ := analyze(store.IndexText{Text: long + "a"})
	b, _ := analyze(store.IndexText{Text: long + "b"})
	if a == b {
		t.Error("two long words with the same beginning are one term")
	}
	words := strings.Repeat("word ", 1<<18)
	if got, length := new(retrieve.Analyzer).Analyze(store.IndexText{Text: words}); length != 1<<18 || len(got) != 1 || got[0].N != 1<<18 {
		t.Errorf("%d words counted as %d, %v", 1<<18, length, got)
	}
}

func TestAnalyzeConcurrently(t *testing.T) {
	var a retrieve.Analyzer
	texts := []string{"The quick brown fox", "在学校 we met", strings.Repeat("longer text ", 9000), "v1.2.3"}
	var want [][]store.TermCount
	for _, text := range texts {
		terms, _ := new(retrieve.Analyzer).Analyze(store.IndexText{Text: text})
		want = append(want, terms)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 40 {
				n := (i + w) % len(texts)
				if got, _ := a.Analyze(store.IndexText{Text: texts[n]}); !slices.Equal(got, want[n]) {
					t.Errorf("text %d: got %v, want %v", n, got, want[n])
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzAnalyze(f *testing.F) {
	for _, text := range []string{"", "Bart在学校 v1.2.3", "8 May 2023年5月8日", "can't\u2019t", "\xed\xa0\x80", "é́́ ที่ 학교 🇩🇪🇩", "a'", "12/12/2012 \u0660"} {
		f.Add(text, "Ann", "tag")
	}
	var a retrieve.Analyzer
	f.Fuzz(func(t *testing.T, text, author, tag string) {
		terms, length := a.Analyze(store.IndexText{Text: text, Author: author, Tags: []string{tag}})
		seen := map[string]bool{}
		for _, term := range terms {
			if term.Term == "" || term.N < 1 || seen[term.Term] || len(term.Term) > 65 || !utf8.ValidString(term.Term) {
				t.Fatalf("term %q × %d", term.Term, term.N)
			}
			seen[term.Term] = true
		}
		if length < 0 || length > len(text)+1 {
			t.Fatalf("length %d of %d bytes", length, len(text))
		}
	})
}
