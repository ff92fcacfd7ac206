package retrieve

// stem reduces an English word to its stem in place and returns the shortened slice: M. F. Porter, "An algorithm for
// suffix stripping", Program 14 (1980), with the author's own later departures (bli for abli, logi). The word must be
// lower-case a to z; words of one or two letters stay as they are. A stem is never longer than its word.
func stem(w []byte) []byte {
	if len(w) <= 2 {
		return w
	}
	w = step1a(w)
	w = step1b(w)
	w = step1c(w)
	w = replaceLongest(w, &step2Rules, 0)
	w = replaceLongest(w, &step3Rules, 0)
	w = step4(w)
	return step5(w)
}

// consonant reports whether w[i] counts as a consonant: y does where it follows a vowel or stands first.
func consonant(w []byte, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !consonant(w, i-1)
	}
	return true
}

// measure counts the vowel-consonant sequences of w: m in the paper.
func measure(w []byte) int {
	m, vowel := 0, false
	for i := range w {
		c := w[i]
		isVowel := c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || c == 'y' && i > 0 && !vowel
		if vowel && !isVowel {
			m++
		}
		vowel = isVowel
	}
	return m
}

func hasVowel(w []byte) bool {
	for i := range w {
		if !consonant(w, i) {
			return true
		}
	}
	return false
}

// doubled reports whether w ends with the same consonant twice.
func doubled(w []byte) bool {
	n := len(w)
	return n >= 2 && w[n-1] == w[n-2] && consonant(w, n-1)
}

// shortEnd reports whether w ends consonant-vowel-consonant, the last not w, x or y: *o in the paper.
func shortEnd(w []byte) bool {
	n := len(w)
	if n < 3 || !consonant(w, n-1) || consonant(w, n-2) || !consonant(w, n-3) {
		return false
	}
	return w[n-1] != 'w' && w[n-1] != 'x' && w[n-1] != 'y'
}

func ends(w []byte, suffix string) bool {
	return len(w) >= len(suffix) && string(w[len(w)-len(suffix):]) == suffix
}

func step1a(w []byte) []byte {
	switch {
	case w[len(w)-1] != 's':
		return w
	case ends(w, "sses"), ends(w, "ies"):
		return w[:len(w)-2]
	case ends(w, "ss"):
		return w
	}
	return w[:len(w)-1]
}

func step1b(w []byte) []byte {
	if ends(w, "eed") {
		if measure(w[:len(w)-3]) > 0 {
			return w[:len(w)-1]
		}
		return w
	}
	n := len(w)
	switch {
	case ends(w, "ed"):
		n -= 2
	case ends(w, "ing"):
		n -= 3
	default:
		return w
	}
	if !hasVowel(w[:n]) {
		return w
	}
	return mendEnd(w[:n])
}

// mendEnd puts the word right after -ed or -ing is gone. There is room in w for one more letter.
func mendEnd(w []byte) []byte {
	switch {
	case ends(w, "at"), ends(w, "bl"), ends(w, "iz"):
		return append(w, 'e')
	case doubled(w):
		if c := w[len(w)-1]; c == 'l' || c == 's' || c == 'z' {
			return w
		}
		return w[:len(w)-1]
	case measure(w) == 1 && shortEnd(w):
		return append(w, 'e')
	}
	return w
}

func step1c(w []byte) []byte {
	if n := len(w) - 1; n > 0 && w[n] == 'y' && hasVowel(w[:n]) {
		w[n] = 'i'
	}
	return w
}

// suffixRule replaces a suffix; the table is by the last letter but one of the word, longest suffix first.
type suffixRule struct{ from, to string }

var step2Rules = [128][]suffixRule{
	'a': {{"ational", "ate"}, {"tional", "tion"}},
	'c': {{"enci", "ence"}, {"anci", "ance"}},
	'e': {{"izer", "ize"}},
	'g': {{"logi", "log"}},
	'l': {{"entli", "ent"}, {"ousli", "ous"}, {"alli", "al"}, {"bli", "ble"}, {"eli", "e"}},
	'o': {{"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}},
	's': {{"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"alism", "al"}},
	't': {{"biliti", "ble"}, {"aliti", "al"}, {"iviti", "ive"}},
}

var step3Rules = [128][]suffixRule{
	'a': {{"ical", "ic"}},
	't': {{"icate", "ic"}, {"iciti", "ic"}},
	'v': {{"ative", ""}},
	'z': {{"alize", "al"}},
	'u': {{"ful", ""}},
	's': {{"ness", ""}},
}

var step4Rules = [128][]suffixRule{
	'a': {{"al", ""}},
	'c': {{"ance", ""}, {"ence", ""}},
	'e': {{"er", ""}},
	'i': {{"ic", ""}},
	'l': {{"able", ""}, {"ible", ""}},
	'n': {{"ement", ""}, {"ment", ""}, {"ent", ""}, {"ant", ""}},
	'o': {{"ion", ""}, {"ou", ""}},
	's': {{"ism", ""}},
	't': {{"ate", ""}, {"iti", ""}},
	'u': {{"ous", ""}},
	'v': {{"ive", ""}},
	'z': {{"ize", ""}},
}

// replaceLongest applies the rule of the longest suffix that fits, if what stands before it has a measure over min.
func replaceLongest(w []byte, rules *[128][]suffixRule, min int) []byte {
	if len(w) < 3 {
		return w
	}
	for _, r := range rules[w[len(w)-2]] {
		if !ends(w, r.from) {
			continue
		}
		if before := w[:len(w)-len(r.from)]; measure(before) > min {
			return append(before, r.to...)
		}
		return w
	}
	return w
}

// step4 drops suffixes of long words; -ion only after s or t.
func step4(w []byte) []byte {
	if ends(w, "ion") && (len(w) < 4 || w[len(w)-4] != 's' && w[len(w)-4] != 't') {
		return w
	}
	return replaceLongest(w, &step4Rules, 1)
}

func step5(w []byte) []byte {
	if n := len(w) - 1; n > 0 && w[n] == 'e' {
		if m := measure(w[:n]); m > 1 || m == 1 && !shortEnd(w[:n]) {
			w = w[:n]
		}
	}
	if n := len(w) - 1; n > 0 && w[n] == 'l' && doubled(w) && measure(w) > 1 {
		w = w[:n]
	}
	return w
}
