package kernel

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"memgpt"
)

// Why nothing is looked up for a message.
const (
	silentEmpty   = "no words"
	silentPhatic  = "greeting, thanks or small talk"
	silentCommand = "command"
)

// maxAsked is how much of a message is read to tell what kind it is; what is longer leans on something.
const maxAsked = 600

// verdict is what a sentence was found to be.
type verdict int

const (
	leans   verdict = iota // on what is stored
	phatic                 // greets, thanks, agrees, makes small talk
	command                // asks for something that it names itself
)

// prefetchSilence returns why nothing is looked up for a message of a user; "" where it may lean on what is stored. It
// does where one of its sentences asks a question, refers to the past or to what belongs to the user, or tells of
// something. What greets, thanks or agrees, and requests that say all that they need, do not.
func prefetchSilence(text string) string {
	if strings.IndexFunc(text, unicode.IsLetter) < 0 {
		return silentEmpty
	}
	head := memgpt.CutText(text, maxAsked)
	why := silentPhatic
	for _, sentence := range askSentences(head) {
		switch judgeSentence(sentence) {
		case leans:
			return ""
		case command:
			if why = silentCommand; strings.ContainsAny(sentence, askTaken) {
				return why // what follows is what it works on
			}
		}
	}
	if len(head) < len(text) && why == silentPhatic {
		return ""
	}
	return why
}

// askTaken are the marks before the text that a request works on.
const askTaken = ":：\"“「"

// askSentences cuts a text at ends of sentences and lines.
func askSentences(text string) []string {
	var list []string
	start := 0
	for i, c := range text {
		switch c {
		case '.', '!', '?', '。', '！', '？', '\n', ';', '；', '…', '~', '～':
			list = append(list, text[start:i+utf8.RuneLen(c)])
			start = i + utf8.RuneLen(c)
		}
	}
	list = append(list, text[start:])
	return slices.DeleteFunc(list, func(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) < 0 })
}

// judgeSentence tells what a sentence is: what the words with spaces or the runs without say that says most.
func judgeSentence(sentence string) verdict {
	question := strings.ContainsAny(sentence, "?？")
	taken := sentence
	if i := strings.IndexAny(sentence, askTaken); i > 0 {
		taken = sentence[:i]
	}
	out := phatic
	for _, part := range []string{taken, sentence} {
		out = phatic
		west, east := askScripts(part)
		if len(west) > 0 {
			out = judgeEnglish(west, question)
		}
		for _, run := range east {
			switch v := judgeEast(run, question); {
			case v == leans:
				return leans
			case v == command && out == phatic && len(west) == 0:
				out = command
			}
		}
		if out == command { // the rest is its object
			return out
		}
	}
	return out
}

// askWord is a word as it is written, and in lower case.
type askWord struct {
	low     string
	capital bool
	comma   bool // a comma stands before it
}

// askScripts splits a sentence into the words of scripts with spaces and the runs of those without.
func askScripts(sentence string) (west []askWord, east []string) {
	sentence = strings.ReplaceAll(sentence, "’", "'")
	kind := func(c rune) int {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana) || c == 'ー':
			return 2
		case unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) || c == '\'' || c == '-':
			return 1
		}
		return 0
	}
	start, was, comma := 0, 0, false
	flush := func(end int) {
		word := sentence[start:end]
		switch was {
		case 0:
			comma = comma || strings.ContainsAny(word, ",，、")
		case 1:
			if word = strings.Trim(word, "'-"); word != "" {
				first, _ := utf8.DecodeRuneInString(word)
				west, comma = append(west, askWord{strings.ToLower(word), unicode.IsUpper(first), comma}), false
			}
		case 2:
			east = append(east, word)
		}
	}
	for i, c := range sentence {
		if k := kind(c); k != was {
			flush(i)
			start, was = i, k
		}
	}
	flush(len(sentence))
	return west, east
}

// lexicon makes a function that makes a set once.
func lexicon(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool { return wordSet(list) })
}

// longestFirst makes a function that lists words once, the longest first.
func longestFirst(lists ...string) func() []string {
	return sync.OnceValue(func() []string {
		words := strings.Fields(strings.Join(lists, " "))
		slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
		return words
	})
}
