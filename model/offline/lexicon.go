package offline

import "strings"

// set makes a set of the words of a text.
func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// stopWords are English words that say nothing about what to look for.
var stopWords = set(`a an the this that these those it its it's i me my mine we us our ours you your yours he him his she
her hers they them their theirs who whom whose what which when where why how is are was were be been being am do does did
done doing have has had having will would shall should can could may might must of in on at to from by with about for as
into onto over under between through during after before and or but if then than so because while not no nor only just
also too very any some all each more most other such own same there here again ever did doesn't don't didn't isn't aren't
wasn't weren't i'm i've i'd i'll you're you've he's she's they're we're what's who's where's when's how's let's please tell
know remember recall said say says mention mentioned told talk talked find search look show give many much kind type sort
get got one up out off down me`)

// stopRuns are Chinese phrases that say nothing about what to look for, longest first where one holds another.
var stopRuns = strings.NewReplacer(pairWith(" ", strings.Fields(`什么时候 什么时间 什么地方 什么样 为什么 怎么样 是什么 有什么 干什么 做什么
叫什么 什么 还记得 记不记得 记得 告诉我 告诉 请问 请 知道 是不是 有没有 哪一天 哪一年 哪里 哪儿 哪个 哪些 哪位 哪天 哪年 哪种 哪 多少 几个 几次 几点
怎么 怎样 如何 是否 之前 以前 曾经 上次 说过 提到过 提到 提过 讲过 说的 关于 帮我 查一下 查找 查查 找一下 搜索 一下 我们 你们 他们 她们 它们 咱们
大家 谁 吗 呢 吧 啊 呀 嘛 了 的 我 你 您 他 她 它 是 在 这个 那个 这些 那些 这 那`))...)

// pairWith makes the arguments of a replacer that turns each word into with.
func pairWith(with string, words []string) []string {
	var list []string
	for _, w := range words {
		list = append(list, w, with)
	}
	return list
}

// emptyRuns are Chinese pieces that are left of a question and say nothing alone.
var emptyRuns = set(`有 都 也 就 被 把 和 与 跟 给 对 过 得 地 到 会 能 要 去 来 做 用 年 月 日 号 时 几 多 最 很 个 叫 吃的 时候 可以 应该 想`)

// hollowWords are long words, and Chinese ones of any length, that any talk is full of: texts are not found by them.
var hollowWords = set(`nothing something anything everything nobody somebody anybody everybody someone anyone everyone
somewhere anywhere everywhere nowhere somehow anyway whatever whenever wherever whoever however therefore although though
because without within against towards together another others either neither whether already always usually sometimes
recently lately currently actually really definitely probably certainly absolutely basically especially obviously honestly
hopefully totally completely exactly finally suddenly quickly slowly clearly simply nearly almost perhaps maybe forever
yourself myself himself herself itself ourselves themselves through wonderful amazing awesome fantastic incredible
interesting important different several various certain regular general believe thought thinking wanted looking feeling
getting having becoming making trying started happened happening brought noticed welcome goodbye morning tonight tomorrow
yesterday whatsoever previously meanwhile otherwise indeed course pretty kinda gonna wanna yeah haha okay sorry congrats
congratulations things people moments
没有 不过 但是 因为 所以 如果 虽然 而且 然后 已经 觉得 认为 感觉 东西 事情 今天 明天 昨天 现在 刚刚 刚才 最近 其实 真的 非常 特别 比较 可能 需要 内容
知道 一些 一个 有些 有点 任何 所有 自己 还有 就是 不是 可是 或者 以及 当然 好像 一样 一直 这样 那样 这么 那么 大概 终于 希望`)

// synonyms are groups of everyday words of one meaning, in both languages, so that the second search is in other words.
var synonyms = groups(`
job work profession occupation career 工作 职业 职位
home house flat apartment 家 房子 住处
city town 城市
kid child 孩子 小孩
movie film 电影 影片
buy purchase 买 购买
car vehicle 车 汽车
doctor physician 医生 大夫
photo picture image 照片 相片
gift present 礼物
holiday vacation trip travel journey 旅行 旅游 度假
mother mom mum 妈妈 母亲
father dad 爸爸 父亲
wife 妻子 老婆 太太
husband 丈夫 老公
daughter 女儿
son 儿子
sister 姐姐 妹妹
brother 哥哥 弟弟
friend buddy 朋友
cat kitten kitty 猫 猫咪
dog puppy 狗 小狗
pet animal 宠物
food meal dish 食物 饭菜
dinner supper 晚饭 晚餐
lunch 午饭 午餐
breakfast 早饭 早餐
drink beverage 饮料
phone cellphone mobile telephone 手机 电话
email e-mail 邮箱 邮件
address 地址 住址
birthday 生日
age 年龄
name 名字 姓名
hobby pastime interest 爱好 兴趣
happy glad joyful 开心 高兴 快乐
sad unhappy 难过 伤心
angry mad 生气
sick ill illness 生病
start begin 开始
end finish stop 结束
big large huge
small little tiny
fast quick 快
talk speak chat 聊 谈
like love enjoy 喜欢 爱
book novel 书 小说
song music 歌 音乐
money cash 钱
party celebration 派对 聚会
exercise workout 锻炼 健身
run jog 跑步
teacher 老师 教师
school 学校
study learn 学习
company firm employer 公司
colour color 颜色
meet encounter 见面 遇见
fix repair 修 修理
reason cause 原因
plan intend 计划 打算
restaurant 餐厅 饭店
live reside 住 居住
password passcode 密码
`)

// kinds maps things to what they are: who asks for his pet means his cat too, and not the other way round.
var kinds = kindsOf("pet 宠物", `cat kitten dog puppy rabbit hamster parrot budgie goldfish tortoise turtle guinea-pig
猫 小猫 猫咪 狗 小狗 狗狗 兔子 仓鼠 鹦鹉 金鱼 乌龟`)

func kindsOf(kind, things string) map[string]map[string]bool {
	m := map[string]map[string]bool{}
	for _, k := range strings.Fields(kind) {
		m[root(k)] = map[string]bool{}
		for _, thing := range strings.Fields(things) {
			m[root(k)][root(thing)] = true
		}
	}
	return m
}

// groups maps each word of a line to the other words of its line. Words of letters are stored by their root.
func groups(lines string) map[string][]string {
	m := map[string][]string{}
	for _, line := range strings.Split(lines, "\n") {
		words := strings.Fields(line)
		for _, w := range words {
			key := root(w)
			for _, other := range words {
				if other != w {
					m[key] = append(m[key], other)
				}
			}
		}
	}
	return m
}

// irregular maps forms that no ending explains to the form that root gives the base.
var irregular = forms(`go went gone goes; buy bought; eat ate eaten; mak made making make; tak took taken taking take; see saw
seen; giv gave given giving give; child children kids kid; person people; man men; woman women; get got gotten; writ wrote
written writing write; read reads; run ran running; swim swam swum; driv drove driven driving drive; find found; meet met; tell told;
think thought; teach taught; bring brought; catch caught; feel felt; leav left leaving leave; keep kept; sell sold; win won;
begin began begun; break broke broken; speak spoke spoken; wear wore worn; grow grew grown; know knew known; fly flew flown;
drink drank drunk; sing sang sung; sleep slept; spend spent; build built; los lost losing lose; pay paid; send sent; foot feet;
mous mice mouse; wif wives wife; knif knives knife; lif lives life; tooth teeth; hold held; becom became becoming become;
com came coming come; choos chose chosen choosing choose`)

func forms(list string) map[string]string {
	m := map[string]string{}
	for _, group := range strings.Split(list, ";") {
		words := strings.Fields(group)
		for _, w := range words[1:] {
			m[w] = words[0]
		}
	}
	return m
}
