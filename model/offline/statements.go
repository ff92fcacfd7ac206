package offline

import (
	"regexp"
	"strings"

	"memgpt"
)

// factRule reads a clause in which a user states something about himself: t is the group of the thing, v of the value.
type factRule struct {
	slot slot
	re   *regexp.Regexp
}

type pattern struct {
	slot slot
	text string
}

// The rules are tried in order, the special ones first. Clauses come without the fillers at their beginning.
var englishFacts = []pattern{
	{slotName, `^(?:my (?:full |first |real |nick)?name(?:'s| is)(?: now| actually| really)? |(?:i'm|i am|i'm now|i was) called |(?:please |just |you can )?call me |i go by )(?P<v>.{1,60})$`},
	{slotCalled, `^my (?P<t>[^,]{2,40}?)(?: is|'s| are) (?:now )?(?:called|named) (?P<v>.+)$`},
	{slotCalled, `^my (?P<t>[^,]{2,40}?)(?:'s|s') names? (?:is|are) (?P<v>.+)$`},
	{slotCalled, `^the names? of my (?P<t>[^,]{2,40}?) (?:is|are) (?P<v>.+)$`},
	{slotCalled, `^(?:i have|i've got|i got|i own|we have|we've got) (?:an?|one|two|three) (?P<t>.{2,40}?) (?:called|named) (?P<v>.+)$`},
	{slotFavourite, `^my fav(?:ou?)rite (?P<t>.{2,40}?)(?: is|'s| are) (?P<v>.+)$`},
	{slotHome, `^(?:i|we) (?:now |currently |still )?live (?:in|at|on|near) (?P<v>.+)$`},
	{slotHome, `^(?:i'm|i am|we're) (?:now |currently )?living (?:in|at) (?P<v>.+)$`},
	{slotHome, `^(?:i|i've|i have|we|we've) (?:just |recently )?moved to (?P<v>.+)$`},
	{slotOrigin, `^(?:i'm|i am|i come) (?:originally )?from (?P<v>.+)$`},
	{slotAge, `^(?:i'm|i am|my age is) (?:now )?(?P<v>\d{1,3})(?: years? old)?$`},
	{slotBirthday, `^my birthday(?:'s| is) (?:on |in )?(?P<v>.+)$`},
	{slotBirthday, `^i was born (?:on|in) (?P<v>.*\d.*)$`},
	{slotOrigin, `^i was born in (?P<v>.+)$`},
	{slotJob, `^i (?:now )?work as (?:an? |the )?(?P<v>.+)$`},
	{slotEmployer, `^i (?:now )?work (?:at|for|in) (?P<v>.+)$`},
	{slotJob, `^my (?:job|profession|occupation) is (?:to be )?(?:an? )?(?P<v>.+)$`},
	{slotLike, `^(?:i'm|i am) a (?:big |huge |great )?fan of (?P<v>.+)$`},
	{slotAllergy, `^(?:i'm|i am) (?:very |severely |also )?allergic to (?P<v>.+)$`},
	{slotAllergy, `^i have an? (?P<v>.{2,30}) allergy$`},
	{slotJob, `^(?:i'm|i am) an? (?P<v>.+)$`},
	{slotDislike, `^i (?:really |also )?(?:don't|do not|dont) (?:really )?(?:like|enjoy) (?P<v>.+)$`},
	{slotDislike, `^i (?:really |also )?(?:hate|dislike|can't stand|cannot stand) (?P<v>.+)$`},
	{slotLike, `^i (?:really |also |absolutely |still )?(?:like|love|enjoy|adore|prefer) (?P<v>.+)$`},
	{slotCannot, `^i (?:really |also )?(?:can't|cannot|can not|mustn't|must not|shouldn't|don't|do not|never) (?P<v>(?:eat|drink|have|take|use|drive|swim|smoke|touch)\b.*)$`},
	{slotOf, `^my (?P<t>[^,]{2,40}?)(?:'s| is| are)(?: now| actually)? (?P<v>.+)$`},
	{slotHas, `^(?:i have|i've got|i own|we have|we've got) (?P<v>(?:an?|one|two|three|four|five|\d+) .+)$`},
	{slotNote, `^(?P<v>my \w+(?: \w+)? (?:likes?|loves?|lives?|works?|hates?|studies|plays?|was born|moved|can't|cannot|has|speaks) .+)$`},
}

var chineseFacts = []pattern{
	{slotName, `^(?:(?:请)?把我的?(?:名字|姓名)改(?:成|为))(?P<v>.+)$`},
	{slotCalled, `^(?:请)?把我的?(?P<t>.{1,8}?)的名字改(?:成|为)(?P<v>.+)$`},
	{slotOf, `^(?:请)?把我的?(?P<t>.{1,8}?)改(?:成|为)(?P<v>.+)$`},
	{slotName, `^我的(?:全名|真名|名字|姓名|大名|小名)(?:现在)?(?:叫做|叫|是|改成了?|改为)(?P<v>.{1,30})$`},
	{slotName, `^(?:我(?:现在|其实)?(?:名叫|叫做|叫)|(?:请|可以|你可以|大家都)?(?:叫|称呼)我|我姓名是)(?P<v>.{1,20})$`},
	{slotCalled, `^我(?:们)?(?:家)?(?:有|养了?)(?:一|两|三)?(?:只|条|个|匹|位|头)?(?P<t>.{1,6}?)(?:名字叫|名叫|叫做|叫)(?P<v>.{1,30})$`},
	{slotCalled, `^我(?:们)?(?:家)?(?:的)?(?P<t>[^，,对]{1,8}?)(?:的?名字)?(?:名叫|叫做|叫|的名字是|名字是)(?P<v>.{1,30})$`},
	{slotHome, `^我(?:们|家|现在|目前|已经|一直|最近|刚刚|刚)*(?:居住在|住在|住|搬家到了?|搬到了?|搬去了?)(?P<v>.+)$`},
	{slotOrigin, `^我(?:是)?来自(?P<v>.+)$`},
	{slotOrigin, `^我是(?P<v>.{2,8})人$`},
	{slotAge, `^我(?:今年|现在|已经)*(?P<v>\d{1,3}|[一二三四五六七八九十]{1,3})岁了?$`},
	{slotBirthday, `^我(?:的)?生日(?:是在|是|在)?(?P<v>.+)$`},
	{slotBirthday, `^我(?:出生于|生于)(?P<v>.+)$`},
	{slotEmployer, `^我(?:现在|目前)?在(?P<v>.+?)(?:工作|上班|任职)$`},
	{slotJob, `^我(?:现在)?是(?:一名|一位|一个|名|位|个)(?P<v>.+)$`},
	{slotJob, `^我的(?:工作|职业)是(?P<v>.+)$`},
	{slotFavourite, `^我最(?:喜欢|爱)的(?P<t>.{1,10}?)是(?P<v>.+)$`},
	{slotAllergy, `^我对(?P<v>.+?)(?:会|很|严重)?过敏$`},
	{slotDislike, `^我(?:也|很|最|特别|非常|真的)*(?:不喜欢|讨厌|不爱|不太喜欢)(?P<v>.+)$`},
	{slotLike, `^我(?:也|很|最|特别|非常|真的|一直|超|比较|都)*(?:喜欢|热爱|喜爱|偏爱|爱)(?P<v>.+)$`},
	{slotCannot, `^我(?:从来|一直|都|也)*(?P<v>(?:不能|不可以|不会|从不|不)(?:吃|喝|抽|碰|开|用|坐).+)$`},
	{slotOf, `^我的(?P<t>[^，,]{1,12}?)(?:现在)?(?:改成了?|改为|换成了?|变成了?|是|在)(?P<v>.+)$`},
	{slotOf, `^我(?:家)?(?P<t>女儿|儿子|妈妈|爸爸|老婆|老公|妻子|丈夫|太太|姐姐|哥哥|弟弟|妹妹|老板|电话|手机号|邮箱|地址)(?:是|在)(?P<v>.+)$`},
	{slotHas, `^我(?:们)?(?:家)?(?:有|养了?)(?P<v>(?:一|两|三|四|五|几|\d+)(?:只|条|个|匹|位|辆|台|套|间|头).+)$`},
}

// rememberPatterns read a request to keep something in mind; v is what.
var rememberPatterns = [2]string{
	`(?i)^(?:(?:can|could|will|would) you )?(?:please )?(?:remember|memori[sz]e|don't forget|do not forget|keep in mind|note|save|make a note)(?: this| the following)?(?: that\b|:|,| for me:?)? ?(?P<v>.+)$`,
	`^(?:请|麻烦)?(?:你)?(?:帮我|一定要|要)?(?:记住|记下来|记下|牢记|记得|别忘了|不要忘了|记一下|记着)(?:一下)?[，,：:\s]*(?P<v>.+)$`,
}

// compileTalk compiles the rules for what users say.
func (g *grammar) compileTalk() error {
	for l, list := range [2][]pattern{englishFacts, chineseFacts} {
		for _, p := range list {
			re, err := regexp.Compile(`(?i)` + p.text)
			if err != nil {
				return err
			}
			g.facts[l] = append(g.facts[l], factRule{p.slot, re})
		}
	}
	for l, p := range rememberPatterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return err
		}
		g.remember[l] = re
	}
	return g.compileAsks()
}

// stated returns the facts that a text states about its speaker.
func (g *grammar) stated(text string) []fact {
	facts, _ := g.keep(text)
	return facts
}

// keep returns what a user's text gives to keep: facts about himself, and other things that he asked to remember.
func (g *grammar) keep(text string) (facts []fact, notes []string) {
	text = joinClauses(strings.ReplaceAll(text, "’", "'"))
	for _, sentence := range sentences(text) {
		body, asked := g.asked(sentence)
		if !asked && isQuestion(sentence) {
			continue
		}
		found := g.clauses(body)
		if len(found) == 0 && asked && len(body) <= maxNote {
			if l := langOf(body); aboutSpeaker(body) {
				found = []fact{{slot: slotNote, value: clean(body), lang: l}}
			} else {
				notes = append(notes, strings.TrimSpace(body))
			}
		}
		facts = appendNew(facts, found)
	}
	return facts, notes
}

// maxNote is the size of what is kept verbatim on request, in bytes.
const maxNote = 2000

// asked tells whether a sentence asks to remember something, and returns what.
func (g *grammar) asked(sentence string) (string, bool) {
	bare := strip(sentence)
	for _, re := range g.remember {
		if m := re.FindStringSubmatch(bare); m != nil {
			body := group(re, m, "v")
			if memgpt.Runes(body) > 1 && !isQuestion(strings.TrimRight(body, "?？")) {
				return body, true
			}
		}
	}
	return sentence, false
}

func appendNew(list, more []fact) []fact {
	for _, f := range more {
		known := false
		for _, g := range list {
			known = known || f.equal(g)
		}
		if !known {
			list = append(list, f)
		}
	}
	return list
}

// clauses returns the facts of the clauses of a sentence.
func (g *grammar) clauses(sentence string) []fact {
	var facts []fact
	subject := false
	for _, clause := range splitClauses(sentence) {
		clause = strip(strings.TrimRight(clause, " .,;!。，；！"))
		if subject && dropsSubject(clause) {
			clause = "我" + strings.TrimLeft(clause, "也还而且")
		}
		f, ok := g.clause(clause)
		if ok {
			facts = append(facts, f)
		}
		subject = subject && dropsSubject(clause) || speaksOfSelf(clause)
		subject = subject && (!ok || f.thing == "") // what follows "my cat is called Mimi" is about the cat
	}
	return facts
}

// speaksOfSelf reports whether the speaker, and not something of his, is the subject of a clause.
func speaksOfSelf(clause string) bool {
	return strings.HasPrefix(clause, "我") && !strings.HasPrefix(clause, "我的") && !strings.HasPrefix(clause, "我家")
}

func (g *grammar) clause(clause string) (fact, bool) {
	if len(clause) > maxValue+100 { // a story, and slow to read
		return fact{}, false
	}
	for _, l := range []lang{english, chinese} {
		for _, r := range g.facts[l] {
			m := r.re.FindStringSubmatch(clause)
			if m == nil {
				continue
			}
			f := fact{slot: r.slot, thing: group(r.re, m, "t"), value: clean(group(r.re, m, "v")), lang: l}
			if f.plausible() {
				return f.settle(), true
			}
		}
	}
	return fact{}, false
}

// settle gives things that have a slot of their own that slot.
func (f fact) settle() fact {
	f.thing = strings.TrimSuffix(strings.TrimSpace(f.thing), "的")
	if f.slot != slotOf {
		return f
	}
	switch strings.ToLower(f.thing) {
	case "name", "名字", "姓名":
		f.slot, f.thing = slotName, ""
	case "job", "profession", "工作", "职业":
		f.slot, f.thing = slotJob, ""
	case "age", "年龄":
		f.slot, f.thing = slotAge, ""
	case "birthday", "生日":
		f.slot, f.thing = slotBirthday, ""
	case "home", "家", "住处":
		f.slot, f.thing = slotHome, ""
	}
	return f
}

// idle are words that make a clause talk and no fact, where they stand as thing or at the beginning of a value.
var (
	idleThings = set(`question guess point problem issue idea opinion bad apologies concern goodness god turn pleasure fault worry
		问题 意思 想法 看法 天 错 意见 建议 目的`)
	idleValues = set(`it that this you them him her your to what how when where why if bit little lot few not sure so very
		question idea problem feeling cold headache meeting look fan mess person`)
	idleHeads = []string{"了", "你", "您", "他", "她", "它", "这", "那", "什么", "外卖", "车", "个", "不", "过", "谁", "哪", "上了"}
)

// plausible rules out clauses that only look like a fact.
func (f fact) plausible() bool {
	if f.value == "" || len(f.value) > maxValue || idleThings[strings.ToLower(f.thing)] || strings.Contains(f.value, "什么") {
		return false
	}
	words := strings.Fields(strings.ToLower(f.value))
	for len(words) > 1 && (words[0] == "a" || words[0] == "an") {
		words = words[1:]
	}
	if f.lang == english && f.slot != slotNote && f.slot != slotCannot && idleValues[words[0]] {
		return false
	}
	if f.slot == slotName && f.lang == english {
		return len(words) <= 5
	}
	if f.lang == chinese && f.slot != slotCannot {
		for _, head := range idleHeads {
			if strings.HasPrefix(f.value, head) {
				return false
			}
		}
	}
	return true
}
