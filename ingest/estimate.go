package ingest

import (
	"unicode"
	"unicode/utf8"
)

// Shares of a token that characters take in the encodings of current models, in hundredths: rounded up from counts of
// English, Russian and Chinese text, so that an estimate is seldom too low.
const (
	shareLetter = 24
	shareDigit  = 40
	sharePunct  = 60
	shareOther  = 50  // letters of alphabets beyond ASCII
	shareWide   = 100 // Han, kana, Hangul, and what is rare
)

// Estimate says about how many tokens a text has, without the tables of any model and the same for ever: what is cut by it
// is cut alike by later versions.
func Estimate(s string) int {
	n := 0
	for _, r := range s {
		if r < utf8.RuneSelf {
			n += int(asciiShares[r])
		} else {
			n += share(r)
		}
	}
	return (n + 99) / 100
}

// asciiShares spares the commonest characters the way through share, which is most of the work of cutting.
var asciiShares = func() (shares [utf8.RuneSelf]uint8) {
	for r := range shares {
		shares[r] = uint8(share(rune(r)))
	}
	return shares
}()

func share(r rune) int {
	switch {
	case r == ' ' || r == '\n' || r == '\t':
		return 5
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		return shareLetter
	case r >= '0' && r <= '9':
		return shareDigit
	case r < utf8.RuneSelf:
		return sharePunct
	case r < 0x2000 && unicode.IsLetter(r):
		return shareOther
	}
	return shareWide
}
