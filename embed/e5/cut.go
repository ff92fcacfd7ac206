package e5

import (
	"unicode"
	"unicode/utf8"

	"memgpt"
)

// Tokens counts the ids of a stored text as Embed would make them, prefix and ends among them, without a bound. It loads
// the model if it is not loaded.
func (e *Encoder) Tokens(text string) (int, error) {
	net, err := e.acquire()
	if err != nil {
		return 0, err
	}
	defer e.release()
	return net.tok.count(text), nil
}

// Cut splits a text into pieces of at most max tokens each as Tokens counts them; 0 is DefaultCut, and it is at least 16
// and at most MaxTokens. It prefers the end of a line, then of a sentence, then of a word, all in the second half of a
// piece, and cuts between characters where there is none. The pieces put together are the text, so that their lengths
// give their places.
func (e *Encoder) Cut(text string, max int) ([]string, error) {
	net, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer e.release()
	return net.tok.cut(text, limitCut(max, net.maxTokens())), nil
}

// limitCut brings a piece's size between 16, where a piece is still longer than its prefix, and what Embed takes.
func limitCut(size, most int) int {
	if size <= 0 {
		size = DefaultCut
	}
	return min(max(size, 16), most)
}

func (t *tokenizer) count(text string) int { return len(t.encode(storedPrefix+text, 1<<30)) }

// unit is a stretch of text that is cut at its end or not at all.
type unit struct {
	text   string
	tokens int // of it alone, without prefix and ends
	rank   int // of the border at its end
}

// Ranks of borders, the best last.
const (
	borderCharacter = iota
	borderWord
	borderSentence
	borderLine
)

// cut is Cut. It adds up units; since two units together may have a token more than each alone, a piece is counted again.
func (t *tokenizer) cut(text string, max int) []string {
	overhead := t.count("")
	units := t.units(text, max-overhead)
	var pieces []string
	for len(units) > 0 {
		n := chooseEnd(units, max-overhead)
		piece := joinUnits(text, units[:n])
		for n > 1 && t.count(piece) > max {
			n--
			piece = joinUnits(text, units[:n])
		}
		pieces = append(pieces, piece)
		text, units = text[len(piece):], units[n:]
	}
	return pieces
}

// chooseEnd returns how many units to take: as many as fit, then back to the best border in the second half.
func chooseEnd(units []unit, room int) int {
	sum, best, rank := 0, 1, -1
	for i, u := range units {
		if sum += u.tokens; sum > room && i > 0 {
			return best
		}
		if u.rank >= rank || sum <= room/2 {
			best, rank = i+1, u.rank
		}
	}
	return len(units)
}

func joinUnits(text string, units []unit) string {
	n := 0
	for _, u := range units {
		n += len(u.text)
	}
	return text[:n]
}

// unitBytes is where a unit ends at the latest, in bytes for each token that fits, so that a long text without borders isn't
// counted again and again. Few tokens are longer.
const unitBytes = 8

// units splits a text behind white space and behind the marks that end a sentence or clause without any, and what is still
// over room between characters.
func (t *tokenizer) units(text string, room int) []unit {
	var units []unit
	overhead := t.count("")
	for text != "" {
		start := memgpt.CutText(text, unitBytes*room)
		if start == "" { // no character begins there
			start = text[:unitBytes*room]
		}
		end, rank := nextBorder(start)
		u := unit{text[:end], t.count(text[:end]) - overhead, rank}
		if u.tokens > room {
			u = t.shorten(u.text, room, overhead)
		}
		units = append(units, u)
		text = text[len(u.text):]
	}
	return units
}

// shorten takes the beginning of a unit that is too long, by halves and at least one character.
func (t *tokenizer) shorten(text string, room, overhead int) unit {
	for {
		n := len(text) / 2
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
			return unit{text[:n], t.count(text[:n]) - overhead, borderCharacter}
		}
		text = text[:n]
		if tokens := t.count(text) - overhead; tokens <= room {
			return unit{text, tokens, borderCharacter}
		}
	}
}

// nextBorder returns where a text may first be cut, and how good a place that is.
func nextBorder(text string) (end, rank int) {
	last, inSpace := rune(0), false
	for i, r := range text {
		switch {
		case unicode.IsSpace(r):
			inSpace = true
			if r == '\n' {
				rank = borderLine
			}
		case inSpace:
			return i, max(rank, rankAfter(last, borderWord))
		case isWide(last):
			return i, rankAfter(last, borderCharacter)
		}
		if !inSpace {
			last = r
		}
	}
	return len(text), max(rank, rankAfter(last, borderCharacter))
}

// isWide reports a mark that ends a sentence or clause without white space.
func isWide(r rune) bool {
	return isFullStop(r) || r == '，' || r == '、' || r == '；' || r == '：'
}

func isFullStop(r rune) bool {
	return r == '。' || r == '！' || r == '？' || r == '｡' || r == '．'
}

// rankAfter is the rank of a border behind a character.
func rankAfter(r rune, rank int) int {
	switch {
	case r == '.' || r == '!' || r == '?' || r == '…' || r == '।' || r == '؟' || isFullStop(r):
		return borderSentence
	case isWide(r):
		return borderWord
	}
	return rank
}
