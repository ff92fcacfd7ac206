package retrieve_test

import (
	"slices"
	"strings"
	"testing"

	"memgpt/embed/e5"
	"memgpt/retrieve"
)

// TestPiecesAreSeenWhole embeds the longest pieces of texts of many kinds by the built-in encoder, which cuts what is too
// long for it: the last word of a piece counts.
func TestPiecesAreSeenWhole(t *testing.T) {
	e, err := e5.New(e5.Config{})
	if err != nil {
		t.Skipf("the built-in encoder is not here: %v", err)
	}
	for name, text := range map[string]string{
		"Chinese": "邻居的孙子们星期三下午参观了植物园，回来时带了三盆仙人掌。", "Amharic": "የጎረቤቴ ልጆች ረቡዕ ከሰዓት በኋላ የአትክልት ቦታውን ጎበኙ። ",
		"Go": "for i := 0; i < len(rows); i++ { total += rows[i].price*count[i] }\n", "JSON": `{"id": 4711, "tags": ["a", "b"], "x": {"y": -1.5}}, `,
		"figures": "2024-03-17 18:35 4471 8820 16.75 ", "emoji": "🌵🚲🎺🧀🏡",
	} {
		piece := retrieve.CutPieces(strings.Repeat(text, 100))[0]
		runes := []rune(piece)
		other := string(runes[:len(runes)-2]) + " x"
		vectors, err := e.Embed(t.Context(), []string{piece, other}, false)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(vectors[0], vectors[1]) {
			t.Errorf("%s: the end of a piece of %d characters is not looked at", name, len(runes))
		}
	}
}
