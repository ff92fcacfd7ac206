package ingest

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Characters around the ends of sentences.
const (
	fullStops = "。！？｡؟۔।॥։።" // end a sentence whatever follows
	stops     = ".!?…"       // end one when white space follows
	closers   = "\"')]}”’»」』）】》〉］｝"
	clauses   = ",;:，、；：،؛"
)

// abbreviations do not end a sentence although a capital may follow. Initials and those with a point inside are told by
// their form.
const abbreviations = " mr mrs ms dr prof st jr sr vs etc cf al no nr vol pp fig eq ch sec ed eds inc ltd co corp dept gen col " +
	"capt lt sgt rev hon gov sen rep jan feb mar apr jun jul aug sep sept oct nov dec mt ave approx ca bzw usw sog evtl " +
	"mme mlle sra srta dra ing avda тыс млн см др проф ул "

// nextPiece returns how many bytes of s are its first sentence, or line where the block is cut at lines, with the white
// space after it; 0 where none ends within the first limit bytes.
func nextPiece(s []byte, kind blockKind, limit int) int {
	n := 0
	if kind == prose {
		n = sentenceEnd(s, limit)
	} else if i := bytes.IndexByte(s[:min(len(s), limit)], '\n'); i >= 0 {
		n = i + 1
	}
	if n == 0 && len(s) <= limit {
		n = len(s)
	}
	return n
}

func sentenceEnd(s []byte, limit int) int {
	for i := 0; i < min(len(s), limit); {
		r, size := utf8.DecodeRune(s[i:])
		switch {
		case r == '\n' && startsItem(s[i+1:]):
			return i + 1
		case strings.ContainsRune(fullStops, r):
			return skip(s, i, fullStops+stops, closers, " \t\n\u3000")
		case strings.ContainsRune(stops, r):
			if end := skip(s, i, fullStops+stops, closers); ends(s, i, end) {
				return skip(s, end, " \t\n\u3000")
			}
		}
		i += size
	}
	return 0
}

// skip returns where the run of the first set that begins at i ends, then that of the second, and so on.
func skip(s []byte, i int, sets ...string) int {
	for _, set := range sets {
		for i < len(s) {
			r, size := utf8.DecodeRune(s[i:])
			if !strings.ContainsRune(set, r) {
				break
			}
			i += size
		}
	}
	return i
}

// ends reports whether the stop at i, with what belongs to it until end, ends a sentence.
func ends(s []byte, i, end int) bool {
	if end == len(s) {
		return true
	}
	next, _ := utf8.DecodeRune(s[end:])
	if !unicode.IsSpace(next) {
		return false
	}
	after, _ := utf8.DecodeRune(bytes.TrimLeftFunc(s[end:min(len(s), end+64)], unicode.IsSpace))
	return !unicode.IsLower(after) && (s[i] != '.' || !isAbbreviation(s[:i]))
}

// isAbbreviation looks at the word before a point.
func isAbbreviation(s []byte) bool {
	if len(s) > 40 {
		s = s[len(s)-40:]
	}
	at := bytes.LastIndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '.' && !unicode.IsDigit(r) })
	word := string(s[at+1:])
	if strings.Trim(word, "0123456789") == "" { // "3. Go on" at the start of a line numbers it
		return word != "" && (at < 0 || s[at] == '\n')
	}
	r, size := utf8.DecodeRuneInString(word)
	initial := size == len(word) && unicode.IsUpper(r) && r != 'I'
	return initial || strings.Contains(word, ".") || strings.Contains(abbreviations, " "+strings.ToLower(word)+" ")
}

// startsItem reports whether a line begins an item of a list.
func startsItem(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	mark := bytes.TrimLeft(line, "0123456789")
	if numbered := len(line) - len(mark); numbered > 0 && numbered < 4 {
		return len(mark) > 1 && strings.IndexByte(".)", mark[0]) >= 0 && mark[1] == ' '
	}
	return len(line) > 1 && line[1] == ' ' && strings.IndexByte("-*+", line[0]) >= 0 || bytes.HasPrefix(line, []byte("• "))
}

// softBorder returns the last end of a line in the second half of s, else of a clause, else of a word; 0 for none.
func softBorder(s string) int {
	half := s[runeStart(s, len(s)/2):]
	from := len(s) - len(half)
	if i := strings.LastIndexByte(half, '\n'); i >= 0 {
		return from + i + 1
	}
	for end := len(half); end > 0; {
		i := strings.LastIndexAny(half[:end], clauses)
		if i < 0 {
			break
		}
		r, size := utf8.DecodeRuneInString(half[i:])
		next, _ := utf8.DecodeRuneInString(half[i+size:])
		if r >= utf8.RuneSelf && i+size < len(half) || unicode.IsSpace(next) {
			return from + i + size
		}
		end = i
	}
	if i := strings.LastIndexFunc(half, unicode.IsSpace); i >= 0 {
		_, size := utf8.DecodeRuneInString(half[i:])
		return from + i + size
	}
	return 0
}
