package retrieve

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCutPieces(t *testing.T) {
	words := strings.Repeat("word ", 239)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"empty":  {" \n\t", nil},
		"short":  {"  One. Two.  ", []string{"One. Two."}},
		"full":   {words + "Done.", []string{words + "Done."}},
		"spaces": {words + "longer end", []string{strings.TrimSpace(words), "longer end"}},
		// The first sentence ends in the first half of the piece, the second in the second half.
		"sentence":       {words[:400] + "a. " + words[:600] + "b. " + words, []string{words[:400] + "a. " + words[:600] + "b.", strings.TrimSpace(words)}},
		"early sentence": {words[:400] + "a. " + words, []string{words[:400] + "a. " + words[:794], strings.TrimSpace(words[795:])}},
		"no sentence":    {"Version 1.5 " + words[:700] + "2.5 " + words[:700], []string{"Version 1.5 " + words[:700] + "2.5 " + words[:484], strings.TrimSpace(words[485:700])}},
		"chinese":        {strings.Repeat("我喜欢喝茶。", 150), []string{strings.Repeat("我喜欢喝茶。", 109), strings.Repeat("我喜欢喝茶。", 41)}},
		"one word":       {strings.Repeat("é", 3000), []string{strings.Repeat("é", 1200), strings.Repeat("é", 1200), strings.Repeat("é", 600)}},
	} {
		if diff := cmp.Diff(tt.want, cutPieces(tt.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// FuzzCutPieces wants all of a text in its pieces, in order, but for spaces, and each piece of its size.
func FuzzCutPieces(f *testing.F) {
	f.Add(strings.Repeat("A sentence. 一句话。 ", 200))
	f.Add(strings.Repeat("\xff\u0301…\n", 900))
	bare := func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pieces := cutPieces(text)
		if bare(strings.Join(pieces, "")) != bare(text) {
			t.Errorf("%q is cut into %q", text, pieces)
		}
		for _, p := range pieces {
			if p == "" || textSize(p) > cutSize || utf8.ValidString(text) && !utf8.ValidString(p) {
				t.Errorf("a piece is %q", p)
			}
		}
	})
}
