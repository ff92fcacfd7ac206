package retrieve

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// This file tells questions that ask for a time and nothing else, "what happened last May?", from those that ask for a
// thing of that time. Their other words say nothing of what is looked for, and would only bring what happens to hold them.

// fillerWords are English words that, beside stop words, are left of such a question.
var fillerWords = stopSet(`
ago am any anybody anyone anything around back bring brought came chat chatted come conversation conversations day days
describe did discuss discussed discussing discussion discussions else event events everything exactly find gave get give
gone got happen happened happening happens hear heard important interesting know learn learned list log logged look made
make many memories mention mentioned message messages much new news note noted notes notable occur occurred one part
past period please recall recap recent record recorded remember remembered remind said say saying says see show someone
something speak spoke spoken stuff sum summarise summarize summary take talk talked talking tell thing things think thought
time times today told took topic topics up went whats whos worth write written wrote`)

// eastFiller is what is left of such a question in Chinese and Japanese, in simplified characters.
var eastFiller = sync.OnceValue(func() *regexp.Regexp {
	list := strings.Fields(`
		发生 出现 经历 什么 甚么 啥 哪些 哪个 哪样 怎么样 怎样 如何 怎么 多少 几件 一些 些 一下 一点 有些 任何 所有 全部 都 也 还 又 再 就 才
		我 你 您 他 她 它 咱 们 大家 自己 俩 这 那 哪 里 个 时候 时 期间 当时 当天 那天 那时 这天 段时间 时间 的 地 得 了 过 着 吗 嘛 呢 吧 啊 呀 么 是 有 没 没有
		不 在 于 和 跟 与 对 把 被 给 让 到 从 自 向 以 为 事情 事件 事儿 事 情况 东西 内容 话题 消息 记录 对话 聊天 谈话 谈 聊 说 讲 讨论
		提到 提起 提及 提 告诉 问 做 干 弄 搞 忙 去 来 记得 记住 记下 记 回忆 回顾 总结 列出 列举 找出 找 查 看看 看 想想 想 知道 请 帮 能 可以 会 要 重要 有趣
		来着 哦 哈 呃 嗯 所 之 而 且 但 只 某 另 此 曾 已 正 究竟 到底 大概 具体 主要 有关 关于 相关 同 各 咱 特别 新 好玩 值得 总共 一共 件
		何 なに なん どんな どの どう どれ いつ こと もの 事 が は を に で と も の か ね よ な へ や から まで です でした ました ます ましたか ありました
		ありましたか あった あり あって 起きた 起きました 起こった 起こりました 起き 起こっ した して していた しました し する いた いました いる い た て だ だった 私達 私 俺 僕 あなた
		君 たち 達 话した 话しました 话し 话 言った 言いました 言い 言っ 教えて 教え ください 下さい 思い出 出来事 について つい くれ くれた 何か 覚えて 覚え 特に 新しい 大切 大事`)
	for i, word := range list {
		list[i], _ = plainDates(word, maxDateText)
	}
	return regexp.MustCompile("^" + alternatives(list) + "*$")
})

// calendarNames find the names of dates that a text may hold as they are: holidays, seasons, weekdays, months but those
// that are words too.
var calendarNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(expand(`\b(?:{holiday}|{season}|january|february|april|june|july|august|september|october|` +
		`november|december)\b|` + holidayNames(false) + `|[春夏秋冬][天季]|[一二三四五六七八九十]{1,2}月|` +
		`{wd}|(?:周|星期|礼拜)[一二三四五六日天]`))
})

// only reports whether a question that names these spans asks for nothing else. What it calls the authors counts as nothing.
func (list spans) only(q string, authors []string) bool {
	if len(list) == 0 || len(q) > maxDateText {
		return false
	}
	var rest strings.Builder
	end := 0
	for _, s := range list {
		if s.at >= end {
			rest.WriteString(q[end:s.at] + " ")
			end = s.at + len(s.text)
		}
	}
	rest.WriteString(q[end:])
	text, _ := plainDates(rest.String(), maxDateText)
	for _, name := range authors[:min(len(authors), maxAuthors)] {
		for _, part := range strings.Fields(name[:min(len(name), nameSize)]) {
			if part, _ = plainDates(part, nameSize); len(part) > 2 && holds(text, part) {
				text = strings.ReplaceAll(text, part, " ")
			}
		}
	}
	return saysNothing(text)
}

var sayings = regexp.MustCompile(`[a-z0-9']+|[^\x00-\x7f\pP\pS\pZ]+`)

// saysNothing reports whether a text in plain form is made of words without a subject.
func saysNothing(text string) bool {
	for _, word := range sayings.FindAllString(text, -1) {
		if word[0] < utf8.RuneSelf {
			word = strings.ReplaceAll(word, "'", "")
			if word != "" && !stopWords[word] && !fillerWords[word] {
				return false
			}
		} else if !eastFiller().MatchString(word) {
			return false
		}
	}
	return true
}

// asked analyses the query. Of one that asks for a time alone the groups are the names of that time; what is said at it is
// found by its date.
func (s *Searcher) asked(list owners) *query {
	w := list[0] // only an agent's messages have authors
	q := s.analyzer.parse(w.Text)
	if s.recipe.day == 0 || q.quoted || !w.dates.only(w.Text, w.meta.Authors) {
		return q
	}
	named := &query{known: map[string]int{}, dated: true}
	for _, span := range w.dates {
		for _, d := range span.dates() {
			named.add(group{terms: span.sayable(dateTerms(d))})
		}
		text, _ := plainDates(span.text, maxDateText)
		for _, name := range calendarNames().FindAllString(text, maxSpans) {
			for _, g := range s.analyzer.parse(name).groups {
				named.add(group{terms: span.sayable(g.terms)})
			}
		}
	}
	surest := w.dates.surest()
	for _, w := range list {
		w.dates = surest
	}
	return named
}

// surest returns the spans with their weights raised, so that the greatest is 1: beside nothing else, a doubtful time is all
// there is.
func (list spans) surest() spans {
	most := 0.
	for _, s := range list {
		most = max(most, s.weight)
	}
	out := make(spans, len(list))
	for i, s := range list {
		s.weight /= most
		out[i] = s
	}
	return out
}

// dates returns the dates by which a text can name the span, if it is a day, month or year of the calendar.
func (s span) dates() []date {
	y, mon, d := s.from.Date()
	is := func(years, months, days int) bool { return s.from.AddDate(years, months, days).Equal(s.to) }
	switch {
	case s.from.Hour() != 0:
	case is(0, 0, 1):
		return []date{{y, int(mon), d}, {month: int(mon), day: d}}
	case d == 1 && is(0, 1, 0):
		return []date{{year: y, month: int(mon)}, {month: int(mon)}}
	case d == 1 && mon == time.January && is(1, 0, 0):
		return []date{{year: y}}
	}
	return nil
}

// sayable returns the terms that texts of the span have. Only where it leaves open which year or week is meant are those
// among them that tell when a text was said: another May is another answer then.
func (s span) sayable(terms []string) []string {
	if s.weight < narrowness(s.to.Sub(s.from)) {
		return terms
	}
	return slices.DeleteFunc(terms, func(t string) bool { return t != "" && t[0] == prefixSaid })
}
