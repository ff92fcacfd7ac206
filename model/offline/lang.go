package offline

import (
	"strings"
	"unicode"
)

// lang is a language that the stand-in speaks.
type lang int

const (
	english lang = iota
	chinese
)

// pick returns the text in the language.
func (l lang) pick(en, zh string) string {
	if l == chinese {
		return zh
	}
	return en
}

// dense tells whether a character belongs to a script that writes no spaces between words.
func dense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// langOf tells in which language to answer a text: Chinese where it has at least as many Chinese characters as words of
// letters, so that a foreign name in a sentence does not decide.
func langOf(s string) lang {
	var han, words int
	inWord := false
	for _, r := range s {
		letter := unicode.IsLetter(r) && !dense(r)
		switch {
		case unicode.Is(unicode.Han, r):
			han++
		case letter && !inWord:
			words++
		}
		inWord = letter || inWord && (r == '\'' || r == '’')
	}
	if han > 0 && han >= words {
		return chinese
	}
	return english
}

// token is a run of one script: a word or number, or a run of characters without spaces.
type token struct {
	text  string
	dense bool
}

// tokens splits a text into runs. Codes, addresses and dates such as a-1, x@y.z and 2023-05-08 stay whole.
func tokens(s string) []token {
	var list []token
	rs := []rune(s)
	for i := 0; i < len(rs); {
		kind := runKind(rs[i])
		if kind == runOther {
			i++
			continue
		}
		j := i + 1
		for j < len(rs) && (runKind(rs[j]) == kind || kind == runWord && joins(rs, j)) {
			j++
		}
		list = append(list, token{string(rs[i:j]), kind == runDense})
		i = j
	}
	return list
}

const (
	runOther = iota
	runWord
	runDense
)

func runKind(r rune) int {
	switch {
	case dense(r):
		return runDense
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return runWord
	}
	return runOther
}

// joins tells whether the sign at j holds two pieces of one word together.
func joins(rs []rune, j int) bool {
	if !strings.ContainsRune("-_'’.@:/", rs[j]) || j+1 >= len(rs) {
		return false
	}
	return runKind(rs[j-1]) == runWord && runKind(rs[j+1]) == runWord
}

// sentences splits a text at the ends of sentences, which stay with them.
func sentences(s string) []string {
	var list []string
	rs := []rune(s)
	from := 0
	add := func(to int) {
		if text := strings.TrimSpace(string(rs[from:to])); text != "" {
			list = append(list, text)
		}
		from = to
	}
	for i, r := range rs {
		switch {
		case r == '\n' || strings.ContainsRune("。！？；", r):
			add(i + 1)
		case strings.ContainsRune(".!?;", r) && endsSentence(rs, from, i):
			add(i + 1)
		}
	}
	add(len(rs))
	return list
}

func endsSentence(rs []rune, from, i int) bool {
	if i+1 < len(rs) && !unicode.IsSpace(rs[i+1]) && !dense(rs[i+1]) {
		return false
	}
	if rs[i] != '.' {
		return true
	}
	words := strings.Fields(string(rs[from:i]))
	if len(words) == 0 {
		return true
	}
	switch strings.ToLower(words[len(words)-1]) {
	case "dr", "mr", "mrs", "ms", "st", "no", "prof", "vs", "e.g", "i.e":
		return false
	}
	return true
}

// root is a word without its everyday endings, for comparison only.
func root(w string) string {
	w = strings.ToLower(strings.ReplaceAll(w, "’", "'"))
	w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "'")
	if base, ok := irregular[w]; ok {
		return base
	}
	for _, r := range w {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) {
			return w
		}
	}
	return strings.TrimSuffix(stripEnding(w), "e")
}

func stripEnding(w string) string {
	n := len(w)
	switch {
	case n > 4 && (strings.HasSuffix(w, "ies") || strings.HasSuffix(w, "ied")):
		return w[:n-3] + "y"
	case n > 4 && (strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "shes") || strings.HasSuffix(w, "ches") || strings.HasSuffix(w, "xes")):
		return w[:n-2]
	case n > 5 && strings.HasSuffix(w, "ing"):
		return undouble(w[:n-3])
	case n > 4 && strings.HasSuffix(w, "ed"):
		return undouble(w[:n-2])
	case n > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		return w[:n-1]
	}
	return w
}

func undouble(w string) string {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}
