package token

import (
	"unicode/utf8"

	"memgpt"
)

// Texts over exactBytes are counted by samples: slices of sliceBytes from all over the text, 64 KiB in all. A text of that size is far over any sensible share of a window, so that only its order of magnitude matters until
// it has been cut; and a count must stay cheap, whatever a tool returns.
const (
	exactBytes = 128 << 10
	sliceBytes = 2 << 10
	slices     = 32
)

// Text counts the tokens of a text: exactly up to 128 KiB, beyond that by samples. It is at least 1 unless s is empty.
func (c *Counter) Text(s string) int {
	if len(s) <= exactBytes {
		return c.exact(s)
	}
	step := (len(s) - sliceBytes) / (slices - 1)
	counted, bytes := 0, 0
	for i := range slices {
		slice := sliceAt(s, i*step)
		counted += c.exact(slice)
		bytes += len(slice)
	}
	return max(1, int(float64(counted)/float64(bytes)*float64(len(s))))
}

// sliceAt returns about sliceBytes of s from about the given byte on, between borders of characters where s has any.
func sliceAt(s string, from int) string {
	for back := 0; back < utf8.UTFMax && from > 0 && !utf8.RuneStart(s[from]); back++ {
		from--
	}
	s = s[from:min(len(s), from+sliceBytes)]
	if cut := memgpt.CutText(s, len(s)-utf8.UTFMax); cut != "" {
		return cut
	}
	return s
}

// bytesPerToken is used where the encoding itself fails, which it does on no known text.
const bytesPerToken = 2

func (c *Counter) exact(s string) int {
	if !c.splits || !utf8.ValidString(s) {
		return c.encode(s)
	}
	n := 0
	for len(s) > 0 {
		size := next(s)
		n += c.pieces.count(s[:size], c.encode)
		s = s[size:]
	}
	return n
}

func (c *Counter) encode(s string) int {
	if s == "" {
		return 0
	}
	n, err := c.load().Count(s)
	if err != nil {
		n = len(s) / bytesPerToken
	}
	return max(n, 1)
}
