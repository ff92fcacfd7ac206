package retrieve

import (
	"strings"
	"unicode/utf8"
)

// lexeme is a word that a comparison knows. Words with one key are the same to it.
type lexeme struct {
	key   string
	sense sense
}

// keyOf returns the key, which is the word itself where the list gives none.
func (l lexeme) keyOf(word string) string {
	if l.key == "" {
		return word
	}
	return l.key
}

// keyNot is the key of plain negations: in which words something is denied makes no difference, whether it is does.
const keyNot = "not"

var (
	nearWords = lexicon(map[sense]string{
		senseNegation: keyNot + `=not no never none neither nor without cannot nt dont doesnt didnt isnt
			arent wasnt werent wont wouldnt cant couldnt shouldnt hasnt havent hadnt aint mustnt neednt mightnt shant hardly
			barely almost nearly nicht kein keine keinen nie niemals pas jamais nunca jamás нет не никогда;
			nobody;nothing;nowhere;used=used;former=former formerly;ex=ex;if=if unless would could might may maybe perhaps possibly should wish`,
		sensePronoun: `1=i me my mine myself;1p=we us our ours ourselves;2=you your yours yourself yourselves;
			3m=he him his himself;3f=she her hers herself;3p=they them their theirs themselves`,
		senseContent: `out off up down`, // of verbs: to work out is not to work
		senseFiller: `really very quite just currently now also still actually definitely indeed much lot lots so please note
			remember basically certainly truly absolutely simply rather always usually generally well oh ok okay yes btw too
			longer anymore yet say says said mention mentioned mentions tell tells told however nowadays presently especially particularly`,
		senseStop: `gonna get gets got`,
		sensePerson: `mother=mother mothers mom mum mama mothers;father=father fathers dad papa;sister=sister sisters;
			brother=brother brothers;wife=wife;husband=husband;son=son sons;daughter=daughter daughters;friend=friend friends;
			boss=boss;colleague=colleague colleagues coworker;neighbour=neighbour neighbor neighbours neighbors;
			girlfriend=girlfriend;boyfriend=boyfriend;partner=partner;parents=parents parent;child=child children kid kids;
			uncle=uncle;aunt=aunt;cousin=cousin cousins;grandmother=grandmother grandma;grandfather=grandfather grandpa;
			dog=dog dogs;cat=cat cats;teacher=teacher;doctor=doctor`,
		senseNumber: `0=zero;1=one;2=two;3=three;4=four;5=five;6=six;7=seven;8=eight;9=nine;10=ten;11=eleven;12=twelve;
			13=thirteen;14=fourteen;15=fifteen;20=twenty;30=thirty;40=forty;50=fifty;100=hundred;1000=thousand;
			once=once;twice=twice;half=half;dozen=dozen;more;less=less fewer;least;most`,
		senseDate: `today;tomorrow;yesterday;tonight;next;last;previous;spring;summer;autumn=autumn fall;winter;morning;
			afternoon;evening;night;noon;midnight;weekend=weekend weekends;
			monday=mondays;tuesday=tuesdays;wednesday=wednesdays;thursday=thursdays;friday=fridays;saturday=saturdays;sunday=sundays`,
	})

	nearHan = lexicon(map[sense]string{
		senseNegation: keyNot + `=不 没 沒 没有 沒有 未 无 無 非 别 別 勿 莫 甭 否 不再 不是 不会 不會 不用 不能 不要 不想 从不 從不
			从未 從未 从来不 從來不 从没 從沒 并不 並不 并非 並非 没能 ない ません なかった なくて ないで まい ませんでした なく;
			以前=以前 曾经 曾經 从前 從前`,
		sensePronoun: `1=我 私 僕 俺;2=你 您 妳 あなた;3m=他 彼;3f=她 彼女;it=它;1p=我们 我們 咱们 咱們 私たち 僕たち;
			2p=你们 你們 您们;3p=他们 他們 她们 她們 它们 彼ら`,
		senseFiller: `非常 特别 特別 十分 真的 其实 其實 确实 確實 现在 現在 目前 一直 总是 總是 经常 經常 常常 有点 有點 比较 比較
			还是 還是 已经 已經 也 都 就 很 太 挺 蛮 最近 差不多 平时 平時 一般 とても 本当に すごく かなり 今は また`,
		senseStop: `的 了 是 在 有 吗 嗎 呢 吧 啊 呀 着 著 过 過 地 得 把 被 和 与 與 及 这 這 那 个 個 之 其 为 為 而 但 所以 因为
			因為 于 於 对 對 会 會 要 还 還 又 再 才 只 位 名 种 種 们 們 不过 不過 不但 不仅 不僅 不管 无论 無論 是不是 会不会
			要不要 不得不 一起 一样 一樣 一些 一下 一定 一切 一共 一边 一旦 一 一个 一個 一只 一隻 一位 一名 一种 一條 一条 因此
			は が を に で と も の へ です ます でした ました だった ではあり では じゃあり じゃ している しています していた でいる でいます でいた ている ていた
			ています ている だけでなく だけではなく かもしれない かもしれません なければならない なければなりません があります がある`,
		sensePerson: `妈=妈妈 媽媽 母亲 母親 母 はは 母さん;爸=爸爸 父亲 父親 父 ちち 父さん;姐=姐姐 姉;妹=妹妹 妹;哥=哥哥 兄;弟=弟弟 弟;
			妻=妻子 老婆 太太 妻;夫=丈夫 老公 先生 夫;儿=儿子 兒子 息子;女儿=女儿 女兒 娘;朋友=朋友 友達 友人;同事=同事 同僚;老板=老板 老闆;
			别人=别人 別人 他人;邻居=邻居 鄰居;老师=老师 老師;医生=医生 醫生;男友=男朋友 男友;女友=女朋友 女友`,
		senseDate: `今天=今天 今日;明天=明天 明日;昨天=昨天 昨日;后天=后天 後天;前天=前天;今年;明年=明年 来年;去年=去年 昨年;上午;下午;早上=早上
			早晨 朝;晚上=晚上 夜;中午=中午 昼;上周=上周 上週 先週;下周=下周 下週 来週;本周=本周 本週 这周 今週;上个月=上个月 先月;下个月=下个月 来月;
			w1=星期一 周一 週一 礼拜一 月曜 月曜日;w2=星期二 周二 週二 礼拜二 火曜 火曜日;w3=星期三 周三 週三 礼拜三 水曜 水曜日;
			w4=星期四 周四 週四 礼拜四 木曜 木曜日;w5=星期五 周五 週五 礼拜五 金曜 金曜日;w6=星期六 周六 週六 礼拜六 土曜 土曜日;
			w0=星期日 星期天 周日 周天 週日 礼拜天 日曜 日曜日;春;夏;秋;冬`,
		senseContent: `不错=不错 不錯;不久;不同;未来=未来 未來;区别=区别 區別;分别=分别 分別;个别=个别 個別;性别=性别 性別;类别=类别;级别=级别;
			告别=告别 告別;别墅=别墅 別墅;没错=没错;对不起=对不起;別の;少ない;危ない;切ない;思議=不思議;動産=不動産;万一=万一 萬一;千万=千万`,
	})

	hanDigits = map[string]string{"〇": "0", "零": "0", "二": "2", "两": "2", "兩": "2", "三": "3", "四": "4", "五": "5",
		"六": "6", "七": "7", "八": "8", "九": "9", "十": "10", "十一": "11", "十二": "12", "百": "100", "一百": "100"}

	// yearBefore are words after which a number of four digits is a year.
	yearBefore = stopSet(`in since of year from until till by before after around during late early and to`)

	// opposites turn a statement around where one side has a word of one set, the other side of the other.
	opposites = [][2]map[string]bool{
		{stopSet(`before`), stopSet(`after`)}, {stopSet(`above over up`), stopSet(`below under down`)},
		{stopSet(`in on at over`), stopSet(`out off under below without`)}, {stopSet(`from`), stopSet(`to`)}, {stopSet(`for`), stopSet(`against`)},
		{stopSet(`with`), stopSet(`without`)}, {stopSet(`all both each`), stopSet(`some few`)},
		{stopSet(`from`), stopSet(`in at on`)}, {stopSet(`did`), stopSet(`do does`)}, {stopSet(`had`), stopSet(`have has`)},
		{stopSet(`am is are`), stopSet(`was were`)}, {stopSet(`am is are was were be been`), stopSet(`have has had`)},
		{stopSet(`will`), stopSet(`was were did had`)}, {stopSet(`can could`), stopSet(`should must shall`)},
		{stopSet(`always`), stopSet(`rarely seldom sometimes usually`)}, {stopSet(`this these here`), stopSet(`that those there`)},
		{stopSet(`still`), stopSet(`once previously`)}, {stopSet(`about will`), stopSet(`just already`)}, {stopSet(`再 还 還`), stopSet(`才`)}, {stopSet(`会 會 要`), stopSet(`了 过 過`)},
		{stopSet(`です ます`), stopSet(`でした ました だった`)}, {stopSet(`这 這`), stopSet(`那`)}, {stopSet(`都 总是 總是`), stopSet(`有点 有點`)},
	}

	// adding are words that bring in one thing more.
	adding = stopSet(`and or plus as 和 与 與 及 跟 还有 と や`)

	// denying are prefixes that turn a word into its opposite.
	denying = []string{"un", "in", "im", "ir", "il", "dis", "non", "mis"}
)

// lexicon reads lists of words: groups with semicolons between them, words with spaces, "key=" before the words that
// share a key, which for numbers are the digits. A word without a key is its own.
func lexicon(lists map[sense]string) map[string]lexeme {
	words := map[string]lexeme{}
	for as := senseContent; as <= senseNegation; as++ { // in order, so that the last list wins
		for group := range strings.SplitSeq(lists[as], ";") {
			key, rest, keyed := strings.Cut(group, "=")
			key = strings.TrimSpace(key)
			switch {
			case !keyed:
				key, rest = "", group
			case as != senseNumber:
				key = "\x01" + key // not to be met in a text
			}
			for _, w := range strings.Fields(rest) {
				words[w] = lexeme{key, as}
			}
		}
	}
	return words
}

// maxHan bounds the characters of a word in nearHan.
const maxHan = 10

// longestHan returns the longest word of nearHan at the head of a run and its length in bytes, 0 if there is none.
func longestHan(run []byte) (n int, found lexeme) {
	for i, k := 0, 0; i < len(run) && k < maxHan; k++ {
		_, size := utf8.DecodeRune(run[i:])
		i += size
		if l, ok := nearHan[string(run[:i])]; ok {
			n, found = i, l
			found.key = l.keyOf(string(run[:i]))
		}
	}
	return n, found
}

// opposite reports whether two words say opposite things.
func opposite(a, b string) bool {
	for _, o := range opposites {
		if o[0][a] && o[1][b] || o[1][a] && o[0][b] {
			return true
		}
	}
	return denies(a, b) || denies(b, a)
}

// denies reports whether a is b with a prefix that denies it.
func denies(a, b string) bool {
	for _, p := range denying {
		if len(b) > 2 && len(a) == len(p)+len(b) && strings.HasPrefix(a, p) && strings.HasSuffix(a, b) {
			return true
		}
	}
	return false
}
