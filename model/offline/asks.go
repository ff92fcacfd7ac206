package offline

import (
	"regexp"
	"strings"
	"unicode"
)

// askRule reads a question about the user himself: t is the group of the thing.
type askRule struct {
	slot slot
	re   *regexp.Regexp
}

var englishAsks = []pattern{
	{slotCalled, `\bwhat(?:'s| is| are| was| were) my (?P<t>[^,?]{2,40}?) (?:called|named)\b`},
	{slotCalled, `\bwhat(?:'s| is| are| was| were) my (?P<t>[^,?]{2,40}?)(?:'s|s') names?\b`},
	{slotCalled, `\bnames? of my (?P<t>[^,?.]{2,40})`},
	{slotFavourite, `\bmy fav(?:ou?)rite (?P<t>[^,?.]{2,40})`},
	{slotName, `\b(?:what(?:'s| is| was)|remember|know|recall|tell me|say) my (?:full |first |real |nick)?name\b|\bwho am i\b|\bwhat am i called\b`},
	{slotHome, `\bwhere (?:do|did) i (?:now |currently )?live\b|\b(?:which|what) (?:city|town|country|place) do i live\b|\bwhere(?:'s| is) my home\b|\bwhere am i living\b`},
	{slotOrigin, `\bwhere (?:am i (?:originally )?from|do i come from|was i born)\b`},
	{slotAge, `\bhow old am i\b|\bmy age\b`},
	{slotBirthday, `\bmy birthday\b|\bwhen was i born\b`},
	{slotEmployer, `\bwhere do i work\b|\bwho do i work for\b|\bwhich company do i work\b`},
	{slotJob, `\bwhat do i do (?:for|as)\b|\bwhat do i do\?|\bwhat(?:'s| is) my (?:job|profession|occupation|work)\b|\bwhat do i work as\b`},
	{slotDislike, `\bwhat (?:do i (?:dislike|hate|not like)|don't i like|do i not like)\b`},
	{slotLike, `\bwhat (?:\w+ )?do i (?:like|love|enjoy|prefer)\b|\bwhat are my (?:hobbies|interests)\b`},
	{slotAllergy, `\bam i allergic\b|\bwhat am i allergic to\b|\bmy allerg(?:y|ies)\b|\bany allergies\b`},
	{slotCannot, `\bwhat (?:can't i|can i not|cannot i|must i not|shouldn't i|should i not)\b`},
	{slotAll, `\bwhat (?:do|did) you (?:know|remember|learn) about me\b|\bwhat have (?:i told you|you (?:noted|learned|remembered)) about (?:me|myself)\b|\btell me (?:all|everything|what) you know about me\b`},
	{slotOf, `\bwhat(?:'s| is| are| was) my (?P<t>[^,?]{2,40}?)(?: again)?\s*(?:\?|$)`},
	{slotOf, `\bwho(?:'s| is| are| was) my (?P<t>[^,?]{2,40}?)(?: again)?\s*(?:\?|$)`},
}

var chineseAsks = []pattern{
	{slotName, `我(?:现在|到底|究竟)?(?:叫|名叫)(?:做)?(?:什么|啥)|我的(?:名字|姓名)|我是谁|我姓什么|我姓啥`},
	{slotFavourite, `我最(?:喜欢|爱)的(?P<t>.{1,10}?)(?:是|叫)(?:什么|哪|谁|啥)`},
	{slotCalled, `我(?:们)?(?:家)?(?:的)?(?P<t>[^，。？的]{1,8}?)(?:的?名字)?(?:叫|是)(?:做)?(?:什么|啥)名`},
	{slotCalled, `我(?:们)?(?:家)?(?:的)?(?P<t>[^，。？]{1,8}?)(?:的?名字(?:是|叫)|叫做|叫)(?:什么|啥)`},
	{slotHome, `我(?:们|家|现在|目前)*(?:居)?(?:住在|住)(?:在)?(?:哪|什么)|我(?:的)?家在哪`},
	{slotOrigin, `我(?:是)?来自(?:哪|什么)|我是哪(?:里|儿|国)?的?人|我是哪里的`},
	{slotAge, `我(?:今年|现在)*(?:是)?(?:几岁|多大|多少岁)|我的年龄`},
	{slotBirthday, `我(?:的)?生日|我(?:是)?(?:什么时候|哪天|哪年)出生`},
	{slotEmployer, `我(?:现在)?在(?:哪|什么)(?:.{0,6})(?:工作|上班)`},
	{slotJob, `我(?:现在)?(?:是)?(?:做|干)什么(?:工作|的)|我的(?:工作|职业)(?:是|$|？)|我从事什么`},
	{slotDislike, `我(?:最)?(?:不喜欢|讨厌|不爱)(?:.{0,2})(?:什么|哪|谁)`},
	{slotLike, `我(?:最|都|平时)?(?:喜欢|爱)(?:.{0,2})(?:什么|哪|谁)|我(?:有(?:什么|哪些))(?:爱好|兴趣)|我的(?:爱好|兴趣)`},
	{slotAllergy, `我(?:会)?对(?:什么|哪)(?:.{0,4})过敏|我有(?:什么|哪些|没有).{0,4}过敏`},
	{slotCannot, `我不(?:能|可以)(?:吃|喝|碰|用|做)(?:什么|哪|啥)`},
	{slotAll, `(?:知道|记得|了解|记住了?)(?:关于)?我(?:的)?(?:什么|哪些|多少)|你对我(?:了解|知道)`},
	{slotOf, `我的(?P<t>[^，。？]{1,12}?)(?:是(?:什么|多少|谁|哪|几)|在(?:哪|什么))`},
	{slotOf, `我(?P<t>女儿|儿子|妈妈|爸爸|老婆|老公|妻子|丈夫|太太|姐姐|哥哥|弟弟|妹妹|老板|电话|手机号|邮箱|地址)(?:是(?:什么|多少|谁|哪|几)|在(?:哪|什么))`},
}

// compileAsks compiles the rules for questions about the user.
func (g *grammar) compileAsks() error {
	for l, list := range [2][]pattern{englishAsks, chineseAsks} {
		for _, p := range list {
			re, err := regexp.Compile(`(?i)` + p.text)
			if err != nil {
				return err
			}
			g.asks[l] = append(g.asks[l], askRule{p.slot, re})
		}
	}
	return nil
}

// wants tells which fact about the user a question asks for: a fact without value.
func (g *grammar) wants(question string) (fact, bool) {
	question = strings.ReplaceAll(question, "’", "'")
	for _, l := range []lang{english, chinese} {
		for _, r := range g.asks[l] {
			if m := r.re.FindStringSubmatch(question); m != nil {
				return fact{slot: r.slot, thing: group(r.re, m, "t"), lang: l}.settle(), true
			}
		}
	}
	return fact{}, false
}

// slotWords are words by which statements of a slot are found, for questions whose own words say nothing.
var slotWords = map[slot][2]string{
	slotName:     {"my name called", "我叫 名字"},
	slotHome:     {"live living moved", "住在 搬到"},
	slotOrigin:   {"from born", "来自"},
	slotAge:      {"years old age", "岁 今年"},
	slotBirthday: {"birthday born", "生日"},
	slotEmployer: {"work company", "工作 上班"},
	slotJob:      {"work job", "工作 职业"},
	slotLike:     {"like love enjoy", "喜欢"},
	slotDislike:  {"hate dislike", "不喜欢 讨厌"},
	slotAllergy:  {"allergic allergy", "过敏"},
	slotCannot:   {"cannot never", "不能"},
}

var (
	asksEnglish = regexp.MustCompile(`(?i)^(?:what|who|whom|whose|where|when|why|how|which|(?:is|are|was|were|do|does|did|can|could|would|will|has|should|may)\s+\w+|(?:have|had)\s+(?:you|i|we|they|he|she|it)|tell me|find|search|look\s+\w+|follow|show me|quote)\b`)
	asksChinese = regexp.MustCompile(`什么|谁|哪|几岁|几个|几点|几号|几次|几只|多少|多大|多久|怎么|怎样|如何|为什么|吗|呢$|是不是|有没有|是否|告诉我|查一?下|查找|查询|找一?下|搜索|记不记得|啥|能不能|会不会`)
)

// isQuestion tells whether a sentence asks for something that may be looked up.
func isQuestion(sentence string) bool {
	s := strip(sentence)
	if strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") {
		return true
	}
	return asksEnglish.MatchString(s) || asksChinese.MatchString(strings.TrimRight(s, "。！!. "))
}

// questionOf returns the asking sentences of a text, "" when there are none.
func questionOf(text string) string {
	var asked []string
	for _, s := range sentences(text) {
		if isQuestion(s) {
			asked = append(asked, s)
		}
	}
	return strings.Join(asked, " ")
}

// talk is a kind of small talk.
type talk int

const (
	noTalk talk = iota
	greeting
	thanks
	farewell
	wellbeing
	identity
	agreement
)

var talkRules = []struct {
	talk talk
	re   *regexp.Regexp
}{
	{wellbeing, regexp.MustCompile(`(?i)^how (?:are|'re) you(?: doing| today)*$|^how(?:'s| is) it going$|^what's up$|^你(?:今天)?(?:还)?好吗$|^最近(?:怎么样|好吗)$|^你怎么样$`)},
	{identity, regexp.MustCompile(`(?i)^(?:who|what) are you$|^what can you do$|^what(?:'s| is) your name$|^你是谁$|^你叫什么(?:名字)?$|^你(?:会|能)(?:做|干)?什么$`)},
	{greeting, regexp.MustCompile(`(?i)^(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening)|greetings|is (?:anyone|anybody) there)(?: there| again| everyone)*$|^(?:你好|您好|嗨|哈喽|早上好|早安|早|下午好|晚上好|在吗|大家好)[呀啊]?$`)},
	{thanks, regexp.MustCompile(`(?i)^(?:many )?(?:thanks|thank you|thx|cheers)(?: a lot| so much| very much| again)*$|^(?:谢谢|多谢|感谢|谢了|非常感谢)(?:你|您|啦)?$`)},
	{farewell, regexp.MustCompile(`(?i)^(?:bye|goodbye|bye bye|see you|see you (?:later|soon|tomorrow)|good night)$|^(?:再见|拜拜|晚安|回头见|明天见)$`)},
	{agreement, regexp.MustCompile(`(?i)^(?:ok|okay|fine|great|good|cool|nice|yes|no|sure|alright|got it|i see)$|^(?:好的?|行|可以|嗯+|知道了|明白了?|没问题|不错|是的?|对)$`)},
}

// talkOf tells which kind of small talk a text is; noTalk when it is more than that.
func talkOf(text string) talk {
	trim := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	kind := noTalk
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(text, "’", "'"), func(r rune) bool {
		return strings.ContainsRune(".,!?;:。，！？；：\n", r)
	}) {
		if part = strings.TrimFunc(part, trim); part == "" {
			continue
		}
		found := noTalk
		for _, r := range talkRules {
			if r.re.MatchString(part) {
				found = r.talk
				break
			}
		}
		if found == noTalk {
			return noTalk
		}
		kind = max(kind, found)
	}
	return kind
}
