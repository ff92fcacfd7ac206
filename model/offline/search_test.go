package offline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"memgpt"
)

// told adds a message to recall that is not in the queue.
func (s *sim) told(name, text string) {
	s.log = append(s.log, hit{ID: fmt.Sprint("message-", len(s.log)), Kind: "message", Role: "user", Name: name, Time: "2023-05-08T13:56:00Z", Text: text})
}

func TestSearchAnswersWithDateAndSpeaker(t *testing.T) {
	s := newSim(t)
	s.told("Orla", "I repaired the greenhouse roof with Ben.")
	s.told("Ben", "The ferry to Skye leaves at 9:40.")
	s.told("小王", "我们上周去黄山看了日出。")
	wants(t, s.user("When does the ferry to Skye leave?"), "2023-05-08", "Ben", "“The ferry to Skye leaves at 9:40.”")
	wants(t, s.user("Who repaired the greenhouse roof?"), "Orla", "2023-05-08")
	wants(t, s.user("谁去黄山看了日出？"), "小王说", "2023-05-08", "黄山")
	for _, c := range s.calls {
		if _, ok := c.args["request_heartbeat"]; c.name != "send_message" && !ok {
			t.Errorf("%s asked for no heartbeat", c.name)
		}
	}
}

func TestBothStoresAreCombined(t *testing.T) {
	s := newSim(t)
	s.told("Orla", "The kiln arrives in October.")
	s.archive = append(s.archive, hit{ID: "passage-x", Kind: "passage", Time: "2023-01-02T03:04:05Z", Text: "Warranty of the kiln: seven years."})
	wants(t, s.user("When does the kiln arrive and what is its warranty?"), "October", "seven years")
	if s.called(toolRecall) == 0 || s.called(toolArchive) == 0 {
		t.Errorf("calls %v", s.calls)
	}
}

func TestPagesOn(t *testing.T) {
	s := newSim(t)
	for i := range 12 {
		s.told("", fmt.Sprintf("harbour harbour note %d", i))
	}
	s.log = append(s.log, hit{ID: "message-z", Kind: "message", Role: "user", Time: "2023-07-01T00:00:00Z", Text: "The lantern festival is in the harbour."})
	slices.Reverse(s.log[:12])
	s.size = 3
	// The simulator's search finds one word only of each, so that the text with both would come first; hide its rank.
	s.log[12].Text = "The lanterns float in the harbour basin."
	got := s.user("What about the harbor lantern basin harbour?")
	wants(t, got, "lanterns float")
	s.log = s.log[:12]
	got = s.user("Which harbour note has a zeppelin?")
	if n := s.called(toolRecall); n < maxPages {
		t.Errorf("only %d searches of a store with more pages", n)
	}
	_ = got
}

func TestPagesOnToTheAnswer(t *testing.T) {
	s := newSim(t)
	s.size = 2
	for i := range 5 {
		s.told("", fmt.Sprintf("Was the violin tuned, violin %d? violin tuned?", i))
	}
	s.told("", "Marek tuned the violin in Gdansk.")
	wants(t, s.user("Who tuned the violin?"), "Marek", "Gdansk")
	paged := false
	for _, c := range s.calls {
		n, _ := c.args["page"].(float64)
		paged = paged || n > 0
	}
	if !paged {
		t.Errorf("no second page was read: %v", s.calls)
	}
}

func TestOtherWordsAfterAMiss(t *testing.T) {
	s := newSim(t)
	s.told("Ada", "Our physician: Dr. Moreau.")
	wants(t, s.user("Who is Ada's doctor?"), "Moreau")
	if len(s.asked) < 3 || !strings.Contains(strings.Join(s.asked, "|"), "physician") {
		t.Errorf("queries %q", s.asked)
	}
	s.told("", "爸爸买了一辆摩托车")
	wants(t, s.user("父亲购买了什么？"), "摩托车")
}

// TestFoundByMeaning: what a search finds without a word of the question is shown as what comes nearest, from the queue and
// from what left it; a question that asks for a code, and what nothing is found of, is answered with no.
func TestFoundByMeaning(t *testing.T) {
	for _, c := range []struct{ told, question, says string }{
		{"Our vessel carries two masts.", "How many sails are on my yacht?", "comes nearest: On 2023-05-08 you said: “Our vessel carries two masts.”"},
		{"奶奶留下的钟每小时慢五分钟", "祖母传给我的手表准吗？", "最接近的是：2023-05-08 你说：“奶奶留下的钟每小时慢五分钟”"},
	} {
		for _, inQueue := range []bool{false, true} {
			s := newSim(t)
			if inQueue {
				s.user(c.told)
			}
			s.told("", c.told)
			s.near = []hit{{ID: "message-q", Kind: "message", Role: "user", Time: "2023-05-08T00:00:00Z", Text: c.question}, s.log[len(s.log)-1]}
			wants(t, s.user(c.question), c.says)
		}
	}
	s := newSim(t)
	s.user("Our vessel carries two masts.")
	if got := s.user("How many sails are on my yacht?"); !admits(got) {
		t.Errorf("nothing was found, and it says %q", got)
	}
	s.near = []hit{{ID: "message-c", Kind: "message", Role: "user", Text: "The door opens with KX-7310."}}
	if got := s.user("What is the value of code ZU-4419?"); !admits(got) {
		t.Errorf("another code is shown: %q", got)
	}
}

// TestKinds: who asks for his pet means the cat and the dog that he has; who asks for his cat does not mean the dog.
func TestKinds(t *testing.T) {
	s := newSim(t)
	s.user("My cat is called Mimi.")
	wants(t, s.user("我的宠物叫什么名字"), "Mimi")
	s.user("My dog is called Rex.")
	wants(t, s.user("What is the name of my pet?"), "Mimi", "Rex")
	if got := s.user("What is my cat called?"); strings.Contains(got, "Rex") {
		t.Error(got)
	}
	s = newSim(t)
	s.user("我有一只猫叫咪咪")
	s.human, s.queue = "", nil // it left the context
	s.near = []hit{s.log[0]}
	wants(t, s.user("我的宠物叫什么名字"), "你的猫叫咪咪")
}

func TestAdmits(t *testing.T) {
	s := newSim(t)
	s.told("", "Nothing of the kind.")
	got := s.user("Which submarine did Professor Quill paint?")
	if !admits(got) {
		t.Errorf("got %q", got)
	}
	if n := searches(s.pagesOf()); n > maxSearches || n < 4 {
		t.Errorf("%d searches", n)
	}
	wants(t, s.user("潜水艇是什么颜色的？"), nothingChinese)
	// What it admitted is no answer to the next question of the kind.
	if got := s.user("Which submarine did Professor Quill paint?"); !admits(got) || strings.Contains(got, "I said") {
		t.Errorf("got %q", got)
	}
}

// pagesOf makes pages of the last turn's searches.
func (s *sim) pagesOf() []page {
	var list []page
	for _, c := range s.calls {
		if c.name == toolRecall || c.name == toolArchive {
			list = append(list, page{call: c})
		}
	}
	return list
}

func TestSearchesAreBounded(t *testing.T) {
	s := newSim(t)
	s.size = 1
	for i := range 60 {
		s.told("", fmt.Sprintf("lighthouse %d", i))
		s.archive = append(s.archive, hit{ID: fmt.Sprint("passage-", i), Kind: "passage", Text: fmt.Sprintf("lighthouse %d", i)})
	}
	s.user("Which lighthouse keeper collected porcelain elephants in Valparaiso?")
	if n := searches(s.pagesOf()); n > maxSearches {
		t.Errorf("%d searches", n)
	}
	s.fail[toolRecall], s.fail[toolArchive] = "the index is broken", "the index is broken"
	if got := s.user("Which lighthouse keeper collected silver spoons?"); got == "" || s.steps > maxSearches {
		t.Errorf("got %q in %d steps", got, s.steps)
	}
	for i, c := range s.calls {
		for _, d := range s.calls[:i] {
			if encodeArgs(c.args) == encodeArgs(d.args) && c.name == d.name {
				t.Errorf("%s was called twice with %v", c.name, c.args)
			}
		}
	}
}

func TestReadsOn(t *testing.T) {
	s := newSim(t)
	s.cut = 60
	s.archive = append(s.archive, hit{ID: "passage-long", Kind: "passage", Time: "2023-02-03T00:00:00Z",
		Text: "Minutes of the beekeepers. " + strings.Repeat("They drank tea. ", 5) + "The treasurer Ilse bought twelve smokers."})
	wants(t, s.user("Who bought smokers for the beekeepers?"), "Ilse")
	if n := s.called(toolRead); n == 0 || n > maxReads {
		t.Errorf("%d readings", n)
	}
}

func TestAnswersFromTheQueue(t *testing.T) {
	s := newSim(t)
	s.user("The plumber Kovacs comes on Friday at noon.")
	wants(t, s.user("When does the plumber Kovacs come?"), "Friday")
	if s.called(toolRecall) != 0 {
		t.Errorf("searched for what stood in the queue: %v", s.calls)
	}
	wants(t, s.user("What is the plumber's telephone number?"), "")
	if s.called(toolRecall) == 0 {
		t.Error("did not search for what the queue lacks")
	}
}

func TestAnswersFromPrefetch(t *testing.T) {
	s := newSim(t)
	s.queue = append(s.queue, envelope(memgpt.EventPrefetch, "Found for the next message:\n"+
		`{"id":"message-p","kind":"message","time":"2023-08-09T00:00:00Z","role":"user","name":"Ida","text":"Ida planted quinces in the orchard."}`, "2024-05-01T10:00:00Z", ""))
	wants(t, s.user("What did Ida plant in the orchard?"), "quinces", "2023-08-09")
	if s.called(toolRecall) != 0 {
		t.Errorf("calls %v", s.calls)
	}
}

func TestAnswersFromGroupsOfPrefetch(t *testing.T) {
	for line, want := range map[string]string{
		"2023-08-09 Wed, conversation main\n" + `{"id":"m","by":"Ida","text":"I planted quinces in the orchard."}`:        "On 2023-08-09 Ida said: “I planted quinces",
		"2023-08-09 Wed, conversation main\n" + `{"id":"m","by":"user","text":"I planted quinces in the orchard."}`:       "On 2023-08-09 you said: “I planted quinces",
		"2023-08-09 Wed, conversation x, y\n" + `{"id":"m","by":"assistant","text":"Ida planted quinces, orchard."}`:      "On 2023-08-09 I said: “Ida planted quinces",
		"2023-08-09 Wed, document trees.md\n" + `{"id":"p","text":"Ida planted quinces in the orchard."}`:                 "From the archive (trees.md), 2023-08-09: “Ida planted quinces",
		"undated, archive\n" + `{"id":"p","text":"2023-08-09 Wed, archive: Ida planted quinces in the orchard, in May."}`: "From the archive, ?: “2023-08-09 Wed, archive: Ida planted quinces",
	} {
		s := newSim(t)
		s.queue = append(s.queue, envelope(memgpt.EventPrefetch, "The system looked this up.\n"+line, "2024-05-01T10:00:00Z", ""))
		wants(t, s.user("What did Ida plant in the orchard?"), want) // nowhere else does it stand
	}
}

func TestFactsFromRecall(t *testing.T) {
	s := newSim(t)
	s.told("", "By the way, I live in Tromsø")
	wants(t, s.user("Where do I live?"), "You live in Tromsø.", "2023-05-08")
	s.told("", "我叫小林，我的狗叫旺财")
	wants(t, s.user("我叫什么？"), "你叫小林。", "2023-05-08")
	wants(t, s.user("我的狗叫什么？"), "旺财")
}

func TestContentTerms(t *testing.T) {
	for _, x := range [][2]string{
		{"What did Caroline paint in May 2023?", "Caroline paint May 2023"},
		{"Where is the key a1b2-c3 kept?", "key a1b2-c3 kept"},
		{"小林的猫喜欢吃什么鱼？", "小林 猫 喜欢 吃 鱼"},
		{"请问上次说过的餐厅在哪里", "餐厅"},
		{"Bart在学校做什么", "Bart 学校"},
		{"the of and", ""},
	} {
		if got := join(contentTerms(x[0])); got != x[1] {
			t.Errorf("%s: got %q, want %q", x[0], got, x[1])
		}
	}
}

func TestRoot(t *testing.T) {
	for _, x := range [][2]string{{"hobbies", "hobby"}, {"painting", "paint"}, {"running", "run"}, {"hiked", "hike"}, {"children", "child"},
		{"bought", "buy"}, {"classes", "class"}, {"Mel's", "mel"}, {"went", "go"}, {"making", "make"}, {"boxes", "box"}} {
		if root(x[0]) != root(x[1]) {
			t.Errorf("root(%s) = %s, root(%s) = %s", x[0], root(x[0]), x[1], root(x[1]))
		}
	}
}
