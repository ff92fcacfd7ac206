package retrieve

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutSize is the size of a piece: about 200 words of English, or 600 characters of Chinese.
const cutSize = 1200

// cutPieces cuts a text into pieces of at most about 200 words, or 600 characters of Chinese, Japanese or Korean, fewer of
// what encoders take many tokens for, so that what makes sense at all stays under the 512 of the built-in one: at the
// end of a sentence if there is one in the second half of a piece, else at a space, else between characters. A short
// text is one piece, an empty one none.
func cutPieces(text string) []string {
	var pieces []string
	for text = strings.TrimSpace(text); text != ""; {
		n := cutAt(text)
		if piece := strings.TrimSpace(text[:n]); piece != "" {
			pieces = append(pieces, piece)
		}
		text = strings.TrimSpace(text[n:])
	}
	return pieces
}

// cutAt returns where the first piece of a text ends.
func cutAt(text string) int {
	size, sentence, space := 0, 0, 0
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			space = i
		}
		if size += runeSize(r); size > cutSize {
			return cmp.Or(sentence, space, i)
		}
		i += width
		if size > cutSize/2 && endsSentence(r, text[i:]) {
			sentence = i
		}
	}
	return len(text)
}

// endsSentence says whether a sentence ends with r where rest follows.
func endsSentence(r rune, rest string) bool {
	switch r {
	case '\n', '。', '！', '？', '｡', '…':
		return true
	case '.', '!', '?', '।':
		next, _ := utf8.DecodeRuneInString(rest)
		return rest == "" || unicode.IsSpace(next)
	}
	return false
}

// textSize is the size of a text: its characters, those of scripts that write a syllable or a word with one counted twice,
// marks of programs, which are a token each, and what is beyond the first plane, as emoji are, three times.
func textSize(text string) (size int) {
	for _, r := range text {
		size += runeSize(r)
	}
	return size
}

func runeSize(r rune) int {
	switch {
	case r > 0xFFFF || r < 0x80 && strings.ContainsRune("\"(){}[]<>=+*/&|_#@$%^~\\`", r):
		return 3
	case r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Ethiopic):
		return 2
	}
	return 1
}
