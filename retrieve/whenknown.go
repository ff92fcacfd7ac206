package retrieve

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// knownDate is a day of the year that has a name in somebody's life.
type knownDate struct {
	kind       string // birthday or anniversary
	who        string // whose, in lower case: tom, mother; "" where the text says no name
	month, day int
	year       int // of the first one; 0 where the text leaves it open
}

var (
	knownWords = regexp.MustCompile(`\b(?:birthday|bday|birth date|date of birth|dob|born|wedding anniversary|anniversary|` +
		`married|got married|wedding day)\b|` +
		`出生|生日|诞生日|生まれ|(?:结婚)?(?:纪念|记念)日|结婚于`)
	knownStop   = regexp.MustCompile(`[\n;。；!?！？]|\.\s`)
	knownOther  = regexp.MustCompile(`party|gift|present|dinner|cake|trip|card|聚会|礼物|派对|蛋糕|moved|started|joined`)
	knownBefore = regexp.MustCompile(`^[\s,(]*(?:is|was|are|on|は|が|是|,|，)?\s*(?:(?:the|my|your|our|his|her|their|` +
		`[\p{L}]+'s)\s*)?(?:[^\s,，]{0,4}[的の])?[我你您她他]?(?:user's )?$`)
)

// knownDates finds the birthdays and anniversaries that texts tell of, blocks of the working context for example:
// "birthday is May 3", "born on 3 May 1990", "生日是5月3日". A date that can be read both ways gives both.
func knownDates(texts ...string) []knownDate {
	var list []knownDate
	for _, text := range texts {
		plain, _ := plainDates(text, maxBlock)
		list = append(list, knownIn(plain)...)
	}
	return list[:min(len(list), maxKnown)]
}

// Bounds of knownDates.
const (
	maxBlock = 1 << 16 // bytes of a text
	maxKnown = 64
	farKnown = 36 // bytes between the word and the date
)

func knownIn(text string) []knownDate {
	var list []knownDate
	for _, loc := range knownWords.FindAllStringIndex(text, maxKnown) {
		head, tail := text[max(0, loc[0]-80):loc[0]], text[loc[1]:min(len(text), loc[1]+100)]
		if all := knownStop.FindAllStringIndex(head, -1); all != nil {
			head = head[all[len(all)-1][1]:]
		}
		if end := knownStop.FindStringIndex(tail); end != nil {
			tail = tail[:end[0]]
		}
		head, tail = strings.ToValidUTF8(head, ""), strings.ToValidUTF8(tail, "")
		kind := "birthday"
		if word := text[loc[0]:loc[1]]; strings.Contains(word, "anniv") || strings.Contains(word, "marr") ||
			strings.Contains(word, "wedding") ||
			strings.Contains(word, "念日") || strings.Contains(word, "结婚") {
			kind = "anniversary"
		}
		for _, d := range dateBeside(head, tail) {
			list = append(list, knownDate{kind, owner(head), d.month, d.day, d.year})
		}
	}
	return list
}

// dateBeside returns the readings of the first date behind the word, else of the last one before it, if nothing of
// another matter stands between.
func dateBeside(head, tail string) []date {
	if all := datesIn(tail); len(all) > 0 {
		f := all[0]
		if gap := tail[:f.start]; len(gap) <= farKnown && !knownOther.MatchString(gap) && !knownWords.MatchString(gap) {
			return f.dates()
		}
	}
	if all := datesIn(head); len(all) > 0 {
		if f := all[len(all)-1]; knownBefore.MatchString(head[f.end:]) {
			return f.dates()
		}
	}
	return nil
}

// datesIn returns the calendar's days that a text names.
func datesIn(text string) []find {
	all := newMoment(text, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).find()
	return slices.DeleteFunc(all, func(f find) bool { return len(f.dates()) == 0 })
}

func (f find) dates() []date {
	var list []date
	for _, s := range f.list {
		if s.on.day > 0 {
			list = append(list, s.on)
		}
	}
	return list
}

var (
	possessor = regexp.MustCompile(`(?:([\p{L}]+)'s? (?:[a-z]+ )?|\b(my|our|his|her|their|your|the) |([\p{L}]+) (?:was|is|` +
		`were) )(?:\d+(?:st|nd|rd|th) |(?:last|next|this) )?$`)
	hanOwner = regexp.MustCompile(`([^\s\pP我你您她他们是在说的のは]{1,6})(?:的|の|是|于|は)?$`)
	kin      = map[string]string{
		"mom": "mother", "mum": "mother", "mommy": "mother", "妈妈": "mother", "妈": "mother", "母亲": "mother", "母": "mother",
		"dad": "father", "爸爸": "father", "爸": "father", "父亲": "father", "父": "father",
		"妻子": "wife", "老婆": "wife", "太太": "wife", "妻": "wife", "丈夫": "husband", "老公": "husband", "先生": "husband",
		"夫":  "husband",
		"儿子": "son", "女儿": "daughter", "娘": "daughter", "息子": "son", "she": "", "he": "", "they": "", "i": "",
		"user": "", "用户": "", "who": "",
	}
)

// owner returns whose day it is by the words before its name, "" for the one that the text is about.
func owner(head string) string {
	name := ""
	if m := possessor.FindStringSubmatch(head); m != nil {
		name = cmp.Or(m[1], m[3])
	} else if m := hanOwner.FindStringSubmatch(head); m != nil && m[1][0] >= utf8.RuneSelf {
		name = m[1]
	}
	if k, ok := kin[name]; ok {
		return k
	}
	if _, ok := yearWords[name]; ok {
		return ""
	}
	return name
}

// anniversaries returns when the known day was that a match names, by each of its readings: "my birthday", "mom's 60th
// birthday", "our anniversary". Where the question names nobody and the blocks only somebody, that one is a guess.
func (m *match) anniversaries() []stretch {
	word := m.get("known")
	if word == "" {
		return nil
	}
	kind := "anniversary"
	if strings.Contains(word, "b") || strings.Contains(word, "生日") {
		kind = "birthday"
	}
	at := m.start + strings.LastIndex(m.text[m.start:m.end], word)
	list, weight := m.knownOf(kind, owner(m.text[max(0, at-60):at]))
	var out []stretch
	for _, k := range list {
		item, ok := dateItem(k.month, k.day, 0)
		if !ok {
			continue
		}
		year := m.yearOf(cmp.Or(m.get("year"), m.get("pre")))
		if n := number(m.get("nth")); n > 0 && k.year > 0 && n < 150 {
			year = k.year + n
		}
		if from, to := m.pick(year, whichWords[m.get("rel")], item.at); !from.IsZero() {
			out = append(out, stretch{from: from, to: to, sure: weight / float64(len(list))})
		}
	}
	return out
}

func (w *moment) knownOf(kind, who string) (list []knownDate, weight float64) {
	named := map[string]bool{}
	var any []knownDate
	for _, k := range w.known {
		if k.kind == kind {
			any = append(any, k)
			named[k.who] = true
			if k.who == who {
				list = append(list, k)
			}
		}
	}
	if list == nil && who == "" && len(named) == 1 {
		return any, .6
	}
	return list, .9
}
