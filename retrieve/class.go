package retrieve

import "unicode"

// class is what a character is to the scanner. Letters of different classes never share a token.
type class uint8

const (
	classSpace class = iota // anything that ends a token
	classDigit
	classMark // combining: stays with what stands before it
	classLatin
	classGreek
	classCyrillic
	classSemitic // Arabic, Hebrew, Syriac: vowel points may be left out
	classLetter  // every other alphabet, Devanagari and its kin among them
	classHan     // Han and kana, one run in Japanese
	classHangul
	classThai // Thai, Lao, Khmer, Myanmar: written without spaces
	classEmoji
	classFlag // regional indicator: two make a flag
)

// asciiClass and asciiLower are lookups for the bytes below 0x80.
var (
	asciiClass = asciiClasses()
	asciiLower = asciiLowers()
)

func asciiClasses() (t [128]class) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9':
			t[c] = classDigit
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			t[c] = classLatin
		}
	}
	return t
}

func asciiLowers() (t [128]byte) {
	for c := range t {
		t[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	return t
}

// runeClass returns the class of any character.
func runeClass(r rune) class {
	if r >= 0 && r < 128 {
		return asciiClass[r]
	}
	return classOf(r)
}

// classOf returns the class of a character above ASCII, the common scripts first.
func classOf(r rune) class {
	switch {
	case r >= 0x4e00 && r <= 0x9fff, r >= 0x3041 && r <= 0x3096, r >= 0x309d && r <= 0x309f, r >= 0x30a1 && r <= 0x30ff && r != 0x30fb:
		return classHan
	case r >= 0xac00 && r <= 0xd7a3:
		return classHangul
	case r >= 0x2000 && r <= 0x20cf, r >= 0x3000 && r <= 0x3004:
		return classSpace
	case r < 0x0250:
		if unicode.IsLetter(r) {
			return classLatin
		}
		return classSpace
	}
	return classOfRare(r)
}

func classOfRare(r rune) class {
	switch {
	case r >= 0x1f1e6 && r <= 0x1f1ff:
		return classFlag
	case isEmoji(r):
		return classEmoji
	case unicode.In(r, unicode.Mn, unicode.Mc, unicode.Me):
		return classMark
	case !unicode.IsLetter(r) && r != 0x3007:
		return classSpace
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo):
		return classHan
	case unicode.In(r, unicode.Hangul):
		return classHangul
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return classThai
	case unicode.In(r, unicode.Latin):
		return classLatin
	case unicode.In(r, unicode.Greek):
		return classGreek
	case unicode.In(r, unicode.Cyrillic):
		return classCyrillic
	case unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac):
		return classSemitic
	}
	return classLetter
}

func isEmoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2600 && r <= 0x27bf || r >= 0x2b00 && r <= 0x2bff ||
		r >= 0x23e9 && r <= 0x23fa || r == 0x231a || r == 0x231b
}

// ignorable reports whether a character is left out of terms: joiners, direction marks, soft hyphens, variation
// selectors, skin tones. A family of emoji falls apart into its members by this, in texts and queries alike.
func ignorable(r rune) bool {
	switch {
	case r == 0xad, r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return r >= 0xfe00 && r <= 0xfe0f || r == 0x20e3 || r >= 0x1f3fb && r <= 0x1f3ff
}

// wordy reports whether letters of the class make words that spaces part.
func (c class) wordy() bool { return c >= classLatin && c <= classLetter }
