package kernel

import "strings"

// The closed classes by which a message is known that leans on nothing stored. They are words, not messages: greetings,
// thanks, agreement, apology and small talk are made of them in any order and number.

// phaticEnglish are those words of English, with what glues them together.
const phaticEnglish = `
hi hello hey hiya heya howdy yo greetings welcome morning afternoon evening night goodnight goodbye bye cya cheers ciao hola
good great nice fine well okay ok okey k kk alright right sure yes yeah yep yup no nope nah not maybe indeed exactly np gm gn
absolutely certainly definitely totally agreed agree perfect excellent awesome amazing wonderful brilliant fantastic lovely
cool sweet super superb splendid neat wow oh ah aha ooh hm hmm mm mhm huh haha hahaha hehe lol lmao rofl xd yay hooray oops
whoops ouch thanks thank thx ty tysm thankful grateful appreciate appreciated obliged please pls plz sorry apologies omg brb
apologize pardon excuse bad mistake fault worries worry problem prob trouble deal matter mind never nevermind understood ttyl
understand got gotcha roger noted copy see makes make sense sounds sound looks like plan point true fair enough correct
interesting funny hilarious kind helpful help helped helps useful job work works done congrats congratulations bravo luck rock
happy merry new year years birthday christmas easter holidays holiday weekend day days week today tonight tomorrow soon later
now then time long safe sleep tight dreams trip travels flight care rest enjoy have has had having hope wish wishing be been
being meet meeting met seeing talk talking speak chat catch up pleasure glad welcome love loved best better fun owe patience
weather sunny warm cold hot beautiful outside isn't bed off heading leaving gotta bye-bye whatever course
how how's what what's whats who sup things everything everybody everyone anyone all going doing feeling hear here there ready
a an the and or but so very much many lots lot ton really just too also quite pretty that that's this it it's its is are was
were i i'm i'll im you you're you've ur your yours me to of for in on at with from as if will would do does did don't don
again back some any other another guys guy folks friend friends buddy pal mate dude partner team sir madam assistant one two
more less say saying said bit little let's lets let go start begin can could may might shall should anytime can't cant wait
first next same take keep stay until till by am out moving way need want know think guess`

// leaningEnglish refer to what was, or to what belongs to who speaks.
const leaningEnglish = `
my mine our ours we've we'd i've i'd yesterday ago usual usually recently lately remember recall forgot forgotten told mentioned
talked discussed promised decided favorite favourite preferred normally whose ourselves myself used-to previously`

// weakLeaningEnglish do so unless they point into the text at hand: "delete the last line".
const weakLeaningEnglish = `last previous before earlier always`

const atHandEnglish = `line word sentence paragraph page step part message answer reply question item one row column section slide image picture example`

// pleasantries are words that follow "my" without owning anything.
const pleasantries = `pleasure bad friend friends dear god goodness apologies mistake fault thanks regards best man gosh lord`

// askingEnglish open questions.
const askingEnglish = `
what what's whats when where where's why which who who's whom whose how how's is are was were do does did has have had can could
will would should shall may am isn't aren't wasn't didn't doesn't don't any`

// lookingEnglish are verbs of requests whose answer depends on what is known of the user: choosing, finding, and what is
// done with people.
const lookingEnglish = `
recommend suggest choose book reserve order plan find buy invite visit ask call phone text email message meet remind contact
advise propose arrange prepare pack organise organize schedule cook`

// writingEnglish are verbs of requests that may be meant for a person.
const writingEnglish = `send write draft compose mail forward address deliver give`

// commandEnglish begin a request that says all that it needs; others are known by what follows the verb.
const commandEnglish = `
stop pause resume continue proceed go start restart begin end quit exit cancel undo redo abort wait hold hush translate write
rewrite rephrase paraphrase summarize summarise shorten expand elaborate simplify explain define describe calculate compute
count add subtract multiply divide convert sort rank list draw generate create compose make code implement fix correct check
review compare classify tag extract print show read repeat sing tell give answer reply talk use switch change set reset turn
open close lock play skip mute unmute raise lower increase decrease enable disable run install update download upload save
delete remove clear copy paste move rename roll flip type click press scroll zoom search try keep act pretend ignore record
take measure test outline analyze teach insert replace encode decode say speak send pick shut do`

// objectEnglish are words that follow the verb of a request.
const objectEnglish = `a an the this that these those it me them him her us all some one two three four five up down off on in out to into over back every any each`

// subjectEnglish open a statement, not a request.
const subjectEnglish = `i i'm im we we're he he's she she's they they're the a an his her their someone somebody nobody there there's it it's this that these those you you're your`

// phaticEast are words of small talk in Chinese and Japanese, where no space sets them apart.
const phaticEast = `
你好 您好 大家好 各位好 各位 你们好 早上好 上午好 中午好 下午好 晚上好 早安 午安 晚安 早啊 早 好梦 嗨 嘿 哈喽 哈啰 哈罗 喂 在吗 在不在 在么 在嘛
有人吗 忙吗 好吗 好不好 怎么样 咋样 还好吗 吃了吗 吃饭了吗 吃了没 在干嘛 干嘛呢 在忙吗 最近 近来 过得 一切 顺利 都好 好久不见 久违 幸会 久仰
高兴 开心 认识 见到 欢迎 新年 春节 元旦 中秋节 中秋 端午 国庆 圣诞节 圣诞 情人节 生日 节日 节 快乐 愉快 安康 恭喜 发财 祝贺 祝 祝福 恭祝 万事如意 如意
身体 健康 平安 一路 顺风 旅途 路上 小心 注意 安全 保重 休息 好好 加油 周末 假期 今天 今晚 明天 下次 回头 待会 待会儿 一会儿 回 再 见 聊 再聊 再见 再会
拜拜 拜 回见 慢走 走了 先走 谢谢 谢 感谢 多谢 谢了 感激不尽 感激 感恩 万分 由衷 帮助 帮忙 大忙 支持 解答 回答 耐心 辛苦 麻烦 劳烦 劳驾 打扰 费心 有劳 给力
真好 太好了 好的 好吧 好呀 好啊 好滴 好嘞 好哒 好 行 行吧 中 成 可以 没问题 没事 没关系 不要紧 不客气 别客气 不用谢 不用 不谢 不必 客气 应该的 对不起 抱歉
不好意思 失礼 请原谅 原谅 包涵 见谅 错 毛病 知道 明白 清楚 了解 懂 收到 理解 同意 原来如此 原来是这样 这样 如此 是的 是啊 是吧 是 对的 对 没错 正确 当然 嗯嗯
嗯 恩 哦 噢 喔 啊 呀 哇 哎呀 哎 唉 哈 呵 嘻 嘿嘿 啦 咯 哟 呢 吗 么 嘛 吧 了 的 地 得 哒 厉害 牛 棒 赞 优秀 完美 精彩 不错 很好 真不错 有意思 有趣 好玩 搞笑
有道理 说得 道理 聪明 可爱 漂亮 好听 天气 晴朗 暖和 舒服 冷 热 真 太 很 非常 十分 特别 挺 超 超级 好多 多 都 也 就 还 那 这 这就 那就 先 请 个 一下 一点 点 你 您 你们
大家 我 他 说 做 帮 给 让 为 能 会 有 没 不 要 想 得到 听到 看到 到 来 去 走 睡 忙 下线 哪里哪里 过奖 彼此 随便 都行 无所谓 算了 别 急 慢慢 不急 随时 朋友 亲 老师 助手 机器人
小助手 的话 好运 哈哈 嗯哼 期待 每天 一天 天天 心情 一夜 晚 上 下 午 马上 立刻 里 开始
こんにちは こんばんは おはようございます おはよう はじめまして 初めまして やあ もしもし ありがとうございました ありがとうございます ありがとう どうも すみません すいません ごめんなさい
ごめん 申し訳ありません 失礼します 失礼しました はい うん ええ いいえ いえ 了解しました 了解です 了解 わかりました 分かりました わかった 承知しました 承知 かしこまりました なるほど そうですね
そうです そうか そう お疲れ様でした お疲れ様です お疲れ様 お疲れさま お疲れ さようなら さよなら またね また明日 また後で また じゃあね じゃあ バイバイ おやすみなさい おやすみ よろしくお願いします よろしく
お願いします お願い すごい すばらしい 素晴らしい いいね いいですね いい 最高 大丈夫です 大丈夫 問題ありません 元気ですか お元気ですか 元気 いい天気ですね いい天気 です ます ね よ か とても 本当に 本当 助かりました 助かります
楽しい 嬉しい おめでとうございます おめでとう 良い 一日を 週末を`

// leaningEast refer to what was, or to what belongs to who speaks.
const leaningEast = `
我们 咱们 咱 我家 我的 我妈 我爸 我哥 我姐 我弟 我妹 我老 我女 我儿 我太 上次 上回 上周 上个月 上星期 昨天 昨晚 前天 前几天 去年 那次 那天 那个人 那家 当时 当初 之前 以前 从前 刚才 曾经 过去 记得 忘了 忘记 想起
说过 提过 提到 聊过 讲过 问过 告诉过 讨论 答应 约好 老样子 老地方 老位 照旧 平时 平常 通常 常去 最喜欢 最爱 来着 又 私の 僕の 俺の 私たち 前回 昨日 先週 先月 去年 この前 覚えて 言った 話した いつも`

// politeEast are what a request is wrapped in.
const politeEast = `请问 请你 请您 请 麻烦你 麻烦您 麻烦 劳驾 拜托 能不能 可不可以 可否 能否 可以 能 你能 您能 你可以 您可以 你 您 帮我 帮忙 帮 给我 替我 为我 跟我 让我 教我 快点 快 那就 那 现在 再 先 嘿 小助手`

// askingEast make a question; assistantEast are those about the assistant or the clock.
const (
	askingEast    = `吗 么 呢 什么 啥 谁 哪 几 多少 多久 多大 多远 怎么 为什么 为何 有没有 是不是 会不会 要不要 能不能 了没 没有 何 誰 どこ いつ どれ どの なぜ どう いくつ ですか ますか`
	assistantEast = `谁 什么 做什么 会什么 能做什么 叫什么 名字 干什么 哪些 功能 真人 现在 几点 几号 星期几 周几 几月 时间 日期 听得到 听得见 听见 看得到 多少 岁 年`
)

// lookingEast are as lookingEnglish, and verbs of telling about something.
const lookingEast = `推荐 建议 选 挑 订 预订 预约 点菜 买 安排 计划 规划 找 查 约 联系 打给 打电话 发给 寄给 通知 邀请 问 说说 聊聊 讲讲 谈谈 介绍 给小 给老 给阿 给他 给她 写信给 发消息给 发邮件给`

// commandEast are verbs that begin a request that says all that it needs.
const commandEast = `
翻译 译成 写 改写 重写 缩写 扩写 续写 编 画 绘制 算 计算 求 解 总结 概括 归纳 解释 说明 描述 定义 比较 分析 评价 举 停 暂停 继续 接着 开始 重新 重启 重来 结束 取消 撤销 打开 开启 开 关 播放 放 切换 换 改 修改 修正 纠正
润色 校对 优化 检查 设置 设定 设 定 调 音量 亮度 声音 提高 降低 增加 减少 重复 说 讲 唱 读 念 朗读 背 列出 列 给出 生成 创建 新建 制作 做 编写 删除 删掉 清 保存 复制 粘贴 上传 下载 安装 更新 运行 执行 排序 把 将 用 以后用 从
数到 数 等 安静 闭嘴 别 不要 快 慢 大声 小声 短 长 简短 简洁 详细 具体 扮演 假装 教 出 起 猜 转换 换算 转成 提取 分类 标注 拼 造 组词 填 回答 试 模拟 退出 关机 开机 静音 唤醒 打印 截图 拍照 录音 录像 连接 断开 锁定 解锁
刷新 返回 上一 下一 跳过 快进 快退 来 往 输出 输入 搜索 显示 隐藏 提醒`

// aspectEast mark what happened, is or will be: with something said of it, it is news.
const aspectEast = `了 过 在 要 想 会 着 是 有 没 得`

// farewellEast open a leave-taking.
const farewellEast = `我先 我走 我去 我下 我睡 我撤 我忙 我闪 我这就 我得 我要走 我要睡 我要去`

// wordSet makes a set of the words of a list.
func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}
