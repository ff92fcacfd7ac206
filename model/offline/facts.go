package offline

import (
	"regexp"
	"strings"

	"memgpt"
)

// slot is a kind of fact about the user.
type slot string

const (
	slotName      slot = "name"
	slotCalled    slot = "called" // what something of his is called
	slotFavourite slot = "favourite"
	slotHome      slot = "home"
	slotOrigin    slot = "origin"
	slotAge       slot = "age"
	slotBirthday  slot = "birthday"
	slotEmployer  slot = "employer"
	slotJob       slot = "job"
	slotLike      slot = "like"
	slotDislike   slot = "dislike"
	slotAllergy   slot = "allergy"
	slotCannot    slot = "cannot" // value: a verb with its "cannot"
	slotHas       slot = "has"
	slotOf        slot = "of"   // something of his is something
	slotNote      slot = "note" // his own words
	slotAll       slot = "all"  // of a question: everything that is known
)

// fact is one thing that the user stated about himself.
type fact struct {
	slot  slot
	thing string // of slotCalled, slotFavourite and slotOf
	value string
	lang  lang // in which it was said, and is stored
}

// form is how facts of a slot are written: as a line in working context and to the user, %t for the thing, %v for the value.
type form struct {
	slot  slot
	lang  lang
	line  string
	reply string
}

// forms of facts. A line is read back by the first form that fits, so the special ones come before the general.
var factForms = []form{
	{slotName, english, "The user's name is %v.", "your name is %v"},
	{slotName, chinese, "用户叫%v。", "你叫%v"},
	{slotCalled, english, "The user's %t is called %v.", "your %t is called %v"},
	{slotCalled, chinese, "用户的%t叫%v。", "你的%t叫%v"},
	{slotFavourite, english, "The user's favourite %t is %v.", "your favourite %t is %v"},
	{slotFavourite, chinese, "用户最喜欢的%t是%v。", "你最喜欢的%t是%v"},
	{slotHome, english, "The user lives in %v.", "you live in %v"},
	{slotHome, chinese, "用户住在%v。", "你住在%v"},
	{slotOrigin, english, "The user comes from %v.", "you come from %v"},
	{slotOrigin, chinese, "用户来自%v。", "你来自%v"},
	{slotAge, english, "The user is %v years old.", "you are %v years old"},
	{slotAge, chinese, "用户%v岁。", "你%v岁"},
	{slotBirthday, english, "The user's birthday is %v.", "your birthday is %v"},
	{slotBirthday, chinese, "用户的生日是%v。", "你的生日是%v"},
	{slotEmployer, english, "The user works at %v.", "you work at %v"},
	{slotEmployer, chinese, "用户在%v工作。", "你在%v工作"},
	{slotJob, english, "The user's job is %v.", "your job is %v"},
	{slotJob, chinese, "用户的职业是%v。", "你的职业是%v"},
	{slotDislike, english, "The user dislikes %v.", "you dislike %v"},
	{slotDislike, chinese, "用户不喜欢%v。", "你不喜欢%v"},
	{slotLike, english, "The user likes %v.", "you like %v"},
	{slotLike, chinese, "用户喜欢%v。", "你喜欢%v"},
	{slotAllergy, english, "The user is allergic to %v.", "you are allergic to %v"},
	{slotAllergy, chinese, "用户对%v过敏。", "你对%v过敏"},
	{slotHas, english, "The user has %v.", "you have %v"},
	{slotHas, chinese, "用户有%v。", "你有%v"},
	{slotNote, english, "The user says: %v", "you said: %v"},
	{slotNote, chinese, "用户说：%v", "你说过：%v"},
	{slotOf, english, "The user's %t is %v.", "your %t is %v"},
	{slotOf, chinese, "用户的%t是%v。", "你的%t是%v"},
	{slotCannot, english, "The user can't or won't %v.", "you can't or won't %v"},
	{slotCannot, chinese, "用户%v。", "你%v"},
}

// write renders a fact by a form.
func (f fact) write(pattern string) string {
	return strings.NewReplacer("%t", f.thing, "%v", f.value).Replace(pattern)
}

// line is the fact as working context holds it, in the language in which it was said.
func (f fact) line() string { return f.write(formOf(f.slot, f.lang).line) }

// tell is the fact as it is said to the user.
func (f fact) tell(l lang) string {
	if l != f.lang && f.slot == slotCannot {
		return strings.TrimRight(f.line(), ".。")
	}
	return f.write(formOf(f.slot, l).reply)
}

func formOf(s slot, l lang) form {
	for _, f := range factForms {
		if f.slot == s && f.lang == l {
			return f
		}
	}
	return form{line: "%v", reply: "%v"}
}

// single tells whether the user has one of these only, so that a new one replaces the old.
func (f fact) single() bool {
	switch f.slot {
	case slotLike, slotDislike, slotAllergy, slotCannot, slotHas, slotNote:
		return false
	}
	return true
}

// same tells whether two facts are about the same thing.
func (f fact) same(g fact) bool {
	if f.slot != g.slot {
		return false
	}
	return f.thing == "" && g.thing == "" || sameThing(f.thing, g.thing)
}

// equal tells whether two facts say the same.
func (f fact) equal(g fact) bool {
	return f.same(g) && strings.EqualFold(strings.TrimSpace(f.value), strings.TrimSpace(g.value))
}

// sameThing compares names of things, over both languages where the words are everyday ones.
func sameThing(a, b string) bool {
	a, b = strings.ToLower(strings.TrimSpace(a)), strings.ToLower(strings.TrimSpace(b))
	if a == b || root(a) == root(b) {
		return true
	}
	for _, other := range synonyms[root(a)] {
		if root(other) == root(b) {
			return true
		}
	}
	return false
}

// isKind tells whether a thing is one of what a wider word means.
func isKind(thing, wider string) bool {
	return kinds[root(strings.TrimSpace(wider))][root(strings.TrimSpace(thing))]
}

// grammar holds the compiled rules.
type grammar struct {
	lines    []lineRule
	facts    [2][]factRule // by language
	asks     [2][]askRule  // by language
	remember [2]*regexp.Regexp
}

type lineRule struct {
	slot slot
	lang lang
	re   *regexp.Regexp
}

// newGrammar compiles the rules.
func newGrammar() (*grammar, error) {
	g := &grammar{}
	for _, f := range factForms {
		re, err := regexp.Compile(linePattern(f.line))
		if err != nil {
			return nil, err
		}
		g.lines = append(g.lines, lineRule{f.slot, f.lang, re})
	}
	return g, g.compileTalk()
}

// linePattern turns the form of a line into an expression that reads it back.
func linePattern(line string) string {
	line = regexp.QuoteMeta(strings.TrimRight(line, ".。"))
	line = strings.NewReplacer("%t", "(?P<t>.{1,40}?)", "%v", "(?P<v>.+?)").Replace(line)
	return `(?i)^` + line + `[.。]?$`
}

// read reads a line of working context: what this package wrote there, and what others write in plain words.
func (g *grammar) read(line string) (fact, bool) {
	line = strings.TrimSpace(strings.TrimLeft(line, "-*• \t"))
	for _, r := range g.lines {
		if m := r.re.FindStringSubmatch(line); m != nil {
			return fact{slot: r.slot, thing: group(r.re, m, "t"), value: group(r.re, m, "v"), lang: r.lang}, true
		}
	}
	for _, label := range []string{"name:", "first name:", "user name:", "username:", "姓名：", "姓名:", "名字：", "名字:"} {
		if len(line) > len(label) && strings.EqualFold(line[:len(label)], label) {
			return fact{slot: slotName, value: strings.TrimSpace(line[len(label):]), lang: langOf(line)}, true
		}
	}
	if found := g.stated(line); len(found) > 0 {
		return found[0], true
	}
	return fact{}, false
}

// group returns a named group of a match, "" when the expression has none of the name.
func group(re *regexp.Regexp, m []string, name string) string {
	if i := re.SubexpIndex(name); i >= 0 && i < len(m) {
		return strings.TrimSpace(m[i])
	}
	return ""
}

// known reads what working context says about the user, with the lines.
func (g *grammar) known(blocks []block) ([]fact, []string) {
	var facts []fact
	var lines []string
	for _, b := range blocks {
		if b.label == personaLabel {
			continue
		}
		for _, line := range strings.Split(b.value, "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			lines = append(lines, line)
			if f, ok := g.read(line); ok {
				facts = append(facts, f)
			}
		}
	}
	return facts, lines
}

const (
	humanLabel   = "human"
	personaLabel = "persona"
	maxValue     = 300 // bytes of a fact's value; more is no fact but a story
)

// clean trims what does not belong to a value.
func clean(v string) string {
	v = strings.Trim(v, " \t\r\n.,;:!?。，；：！？、\"“”‘’「」")
	for _, tail := range []string{" now", " please", " too", " by the way", " as well", " instead"} {
		v = strings.TrimSuffix(v, tail)
	}
	for _, tail := range []string{"了", "哦", "啊", "呢", "吧", "的"} {
		if r := strings.TrimSuffix(v, tail); memgpt.Runes(r) > 1 {
			v = r
		}
	}
	return strings.TrimSpace(v)
}
