package offline

import (
	"strings"
	"testing"

	"memgpt"
)

func TestTalkEnglish(t *testing.T) {
	s := newSim(t)
	wants(t, s.user("Hi! My name is Xiao Lin and I live in Hangzhou. My cat is called Mimi."), "Xiao Lin", "Hangzhou", "Mimi")
	if want := "The user's name is Xiao Lin.\nThe user lives in Hangzhou.\nThe user's cat is called Mimi."; s.human != want {
		t.Errorf("human is %q, want %q", s.human, want)
	}
	s.queue = nil // a new process: working context is all there is
	for _, x := range [][2]string{
		{"What is my name?", "Your name is Xiao Lin."},
		{"what's my cat called?", "Your cat is called Mimi."},
		{"What is the name of my cat?", "Your cat is called Mimi."},
		{"Where do I live?", "You live in Hangzhou."},
		{"我叫什么？", "你叫Xiao Lin。"},
		{"我的猫叫什么名字？", "你的cat叫Mimi。"},
	} {
		if got := s.user(x[0]); got != x[1] {
			t.Errorf("%s: got %q, want %q", x[0], got, x[1])
		}
	}
	wants(t, s.user("Actually my name is Lin Xiao."), "Lin Xiao")
	if s.called(toolReplace) != 1 || strings.Contains(s.human, "Xiao Lin") {
		t.Errorf("the name was not corrected: %q", s.human)
	}
	before := s.human
	wants(t, s.user("I live in Hangzhou"), "noted", "Hangzhou")
	if s.human != before {
		t.Errorf("a line was stored twice: %q", s.human)
	}
}

func TestTalkChinese(t *testing.T) {
	s := newSim(t)
	wants(t, s.user("你好，我叫小林，住在上海。我的猫叫咪咪，我不能喝酒！"), "记住", "小林", "上海", "咪咪", "不能喝酒")
	if want := "用户叫小林。\n用户住在上海。\n用户的猫叫咪咪。\n用户不能喝酒。"; s.human != want {
		t.Errorf("human is %q, want %q", s.human, want)
	}
	s.queue = nil
	for _, x := range [][2]string{
		{"我叫什么？", "你叫小林。"}, {"我叫什么名字", "你叫小林。"}, {"你还记得我的名字吗？", "你叫小林。"},
		{"我的猫叫什么名字？", "你的猫叫咪咪。"}, {"我住在哪里？", "你住在上海。"}, {"我不能喝什么？", "你不能喝酒。"},
		{"what is my name?", "Your name is 小林."}, {"What is my cat called?", "Your 猫 is called 咪咪."},
	} {
		if got := s.user(x[0]); got != x[1] {
			t.Errorf("%s: got %q, want %q", x[0], got, x[1])
		}
	}
	wants(t, s.user("把我的名字改成大林"), "大林")
	if !strings.Contains(s.human, "用户叫大林。") || strings.Contains(s.human, "小林") {
		t.Errorf("the name was not corrected: %q", s.human)
	}
	wants(t, s.user("我能喝酒吗？"), "不能喝酒")
}

func TestStated(t *testing.T) {
	g, err := newGrammar()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ text, lines string }{
		{"my name is Xiao Lin", "The user's name is Xiao Lin."},
		{"I'm called Sam.", "The user's name is Sam."},
		{"Call me Ishmael", "The user's name is Ishmael."},
		{"I’m allergic to peanuts", "The user is allergic to peanuts."},
		{"I really like green tea, and I hate coffee", "The user likes green tea.|The user dislikes coffee."},
		{"I have a dog called Rex", "The user has|The user's dog is called Rex."},
		{"I have a dog, his name is Rex", "The user's dog is called Rex."},
		{"My favourite colour is blue.", "The user's favourite colour is blue."},
		{"I work as a nurse and live in Oslo", "The user's job is nurse.|The user lives in Oslo."},
		{"I'm 34 years old", "The user is 34 years old."},
		{"My birthday is on March 5", "The user's birthday is March 5."},
		{"My phone number is 555-0134", "The user's phone number is 555-0134."},
		{"I can't eat pork", "The user can't or won't eat pork."},
		{"Please remember that my locker code is 4711", "The user's locker code is 4711."},
		{"Can you remember that I keep bees?", "The user says: I keep bees"},
		{"My sister lives in Paris", "The user says: My sister lives in Paris"},
		{"我叫小林", "用户叫小林。"}, {"我的名字是王小明。", "用户叫王小明。"}, {"叫我阿强吧", "用户叫阿强。"},
		{"我养了一只猫，叫咪咪", "用户的猫叫咪咪。"}, {"我女儿叫小美", "用户的女儿叫小美。"},
		{"我今年三十岁", "用户三十岁。"}, {"我的生日是5月8日", "用户的生日是5月8日。"}, {"我是一名护士", "用户的职业是护士。"},
		{"我在银行工作", "用户在银行工作。"}, {"我喜欢喝茶，不喜欢咖啡", "用户喜欢喝茶。|用户不喜欢咖啡。"},
		{"我对花生过敏", "用户对花生过敏。"}, {"请牢记，我不能喝酒 🍷", "用户不能喝酒 🍷。"},
		{"请记住我的门牌号是302", "用户的门牌号是302。"}, {"我最喜欢的电影是活着", "用户最喜欢的电影是活着。"},
		{"我来自四川", "用户来自四川。"}, {"我叫 Alexander Johnson", "用户叫Alexander Johnson。"},
		{"My name is 小林", "The user's name is 小林."},
	} {
		var got []string
		for _, f := range g.stated(x.text) {
			got = append(got, f.line())
		}
		all := strings.Join(got, "|")
		if x.lines = strings.TrimPrefix(x.lines, "The user has|"); all != x.lines {
			t.Errorf("%s: got %q, want %q", x.text, all, x.lines)
		}
		for _, line := range got {
			if f, ok := g.read(line); !ok || f.line() != line {
				t.Errorf("the line %q reads back as %+v", line, f)
			}
		}
	}
}

func TestStatesNothing(t *testing.T) {
	g, err := newGrammar()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"What is my name?", "Do you remember that I like tea?", "I like it", "my question is hard", "I am a bit tired",
		"I have a question", "How are you", "我叫什么？", "我的猫叫什么名字", "我喜欢什么", "我叫了外卖", "我喜欢你", "你记得我住在哪里吗", "", "今天天气不错",
		"I was thinking about the trip", "我的意思是明天再说", "我喜欢茶吗？", "My name is Bob?"} {
		if got := g.stated(text); len(got) > 0 {
			t.Errorf("%q states %+v", text, got)
		}
	}
}

func TestGeneralFactsGoToTheArchive(t *testing.T) {
	s := newSim(t)
	wants(t, s.user("Remember that the boiler was serviced on 3 March 2024 by Orla."), "archive")
	if len(s.archive) != 1 || s.archive[0].Text != "the boiler was serviced on 3 March 2024 by Orla." || s.human != "" {
		t.Fatalf("archive %v, human %q", s.archive, s.human)
	}
	s.queue, s.log = nil, nil
	wants(t, s.user("When was the boiler serviced?"), "3 March 2024", "archive")
	wants(t, s.user("记住：备用钥匙在蓝色花盆下面"), "档案")
	s.queue, s.log = nil, nil
	wants(t, s.user("备用钥匙在哪里？"), "蓝色花盆")
}

func TestFullBlock(t *testing.T) {
	s := newSim(t)
	s.limit, s.human = 60, "The user's name is Ann.\nThe user likes very old tin toys."
	wants(t, s.user("I live in Llanfairpwllgwyngyll"), "no room", "Llanfairpwllgwyngyll")
	if s.called(toolAppend) != 0 || len(s.archive) != 1 {
		t.Errorf("calls %v", s.calls)
	}
	s.limit = 2000
	s.fail[toolAppend] = "the block is read-only"
	wants(t, s.user("I live in Porto. My dog is called Rex"), "no room", "Rex")
	if s.called(toolAppend) > 1 || s.called(toolInsert) != 1 {
		t.Errorf("calls %v", s.calls)
	}
	s.fail[toolInsert] = "the disk is full"
	wants(t, s.user("My parrot is called Kiwi"), "could not store")
}

func TestSmallTalk(t *testing.T) {
	s := newSim(t)
	s.human = "用户叫小林。"
	for _, x := range [][2]string{{"hi", "Hello, 小林!"}, {"Thanks a lot!", "You're welcome"}, {"你好！", "你好，小林！"}, {"谢谢你", "不客气"},
		{"bye", "Goodbye"}, {"再见", "再见"}, {"How are you?", "fine"}, {"你是谁？", "替身"}, {"ok", "All right"}} {
		wants(t, s.user(x[0]), x[1])
		if s.steps != 1 || s.called(toolRecall) != 0 {
			t.Errorf("%s took %d steps: %v", x[0], s.steps, s.calls)
		}
	}
}

func TestOtherEvents(t *testing.T) {
	s := newSim(t)
	if got := s.event(memgpt.EventLogin, "The user logged in."); got == "" {
		t.Error("no opening")
	}
	s.human = "The user's name is Xiao Lin.\nThe user likes chess."
	s.queue = nil
	wants(t, s.event(memgpt.EventLogin, "The user logged in after 3 days."), "Welcome back, Xiao Lin", "you like chess")
	s.human = "I keep bees on the roof.\nI have a red kayak."
	wants(t, s.event(memgpt.EventLogin, "The user logged in."), "Welcome back", "bees on the roof", "red kayak")
	s.human, s.queue = "The user's name is Xiao Lin.\nThe user likes chess.", nil
	s.user("I watched the comet last night")
	wants(t, s.event(memgpt.EventLogin, "The user logged in."), "Xiao Lin", "comet")
	s.human, s.queue = "用户叫小林。", nil
	wants(t, s.event(memgpt.EventLogin, "登录"), "小林，欢迎回来")
	for _, typ := range []memgpt.EventType{memgpt.EventTimer, memgpt.EventDocument, memgpt.EventNotice, memgpt.EventAgent, "unheard_of"} {
		if got := s.event(typ, "my name is Mallory. What is my name?"); got != "" || s.called("yield") != 1 {
			t.Errorf("%s was answered %q, calls %v", typ, got, s.calls)
		}
	}
	if s.human != "用户叫小林。" {
		t.Errorf("an event of the system changed working context: %q", s.human)
	}
}

// TestWhoseAge takes what a clause without a subject says of somebody else for no fact about the speaker.
func TestWhoseAge(t *testing.T) {
	for text, want := range map[string]string{
		"我家的猫叫咪咪，今年三岁": "", "我的女儿在学钢琴，今年五岁": "", "我叫小林，今年三十岁": "三十岁", "我住在上海，今年30岁了": "30岁",
	} {
		s := newSim(t)
		s.user(text)
		if has := strings.Contains(s.human, "岁"); has != (want != "") || !strings.Contains(s.human, want) {
			t.Errorf("%s: human is %q, want %q in it", text, s.human, want)
		}
	}
}
