package offline

import (
	"strings"
	"testing"

	"memgpt"
)

func foldOf(t *testing.T, max int, body string) string {
	t.Helper()
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Generate(t.Context(), &memgpt.Request{Purpose: memgpt.PurposeSummary, MaxTokens: max, Choice: memgpt.ChoiceNone,
		Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "Write the new summary."),
			memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginSystem, body)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Message.Calls()) > 0 {
		t.Error("a summary request was answered with a call")
	}
	return res.Message.Said()
}

const foldEnglish = `Summary so far:
- 2023-05-07 the user: The lease with Brandt ends on 2023-11-30.
Search for: Brandt, lease

Messages that leave now:
2023-05-08T13:56:00Z user: "hi"
2023-05-08T13:56:10Z the agent said: "Hello! What can I do for you?"
2023-05-08T13:57:00Z Caroline: "My flight LH-4711 to Porto is on 12 June.\nI'll be back on Friday."
2023-05-08T13:57:05Z the agent called conversation_search{"query":"flight"}
2023-05-08T13:57:06Z result of conversation_search (OK): "{\"id\":\"message-1\",\"text\":\"zzz\"}"
2023-05-08T13:58:00Z user: "Would you mind telling me something?"`

func TestFold(t *testing.T) {
	got := foldOf(t, 400, foldEnglish)
	wants(t, got, "The lease with Brandt ends on 2023-11-30.", "Caroline: My flight LH-4711 to Porto is on 12 June. I'll be back on Friday.", "2023-05-08")
	last := got[strings.LastIndexByte(got, '\n')+1:]
	if !strings.HasPrefix(last, wordsEnglish) || strings.Count(got, wordsEnglish) != 1 {
		t.Errorf("no line of words at the end: %q", got)
	}
	wants(t, last, "LH-4711", "Brandt")
	for _, no := range []string{"zzz", "conversation_search", "(none)", "Messages that leave", "\": \"hi"} {
		if strings.Contains(got, no) {
			t.Errorf("%q holds %q", got, no)
		}
	}
	again := foldOf(t, 400, "Summary so far:\n"+got+"\n\nMessages that leave now:\n2023-06-01T00:00:00Z user: \"The dentist moved to Elm Street 5.\"")
	wants(t, again, "LH-4711", "2023-11-30", "Elm Street 5")
}

func TestFoldChinese(t *testing.T) {
	got := foldOf(t, 300, "Summary so far:\n(none)\n\nMessages that leave now:\n2024-01-02T08:00:00+08:00 user: \"我的护照号码是 E12345678，三月五日去大理。\"\n2024-01-02T08:00:01+08:00 the agent said: \"好的。\"")
	wants(t, got, "E12345678", "三月五日", "大理", wordsChinese, "用户")
	if strings.Contains(got, "the user") {
		t.Errorf("wrong language: %q", got)
	}
}

func TestFoldKeepsToItsBudget(t *testing.T) {
	var body strings.Builder
	body.WriteString("Summary so far:\n(none)\n\nMessages that leave now:\n")
	for i := range 200 {
		body.WriteString("2024-01-02T08:00:00Z user: \"")
		body.WriteString(strings.Repeat("Ordinary words without end. ", i%7))
		body.WriteString("Invoice 88")
		body.WriteString(strings.Repeat("1", 1+i%5))
		body.WriteString(" went to Lisbon 里斯本的发票。\"\n")
	}
	for _, max := range []int{60, 120, 400, 1000} {
		if got := foldOf(t, max, body.String()); estimate(got) > max || got == "" {
			t.Errorf("%d tokens, at most %d: %q", estimate(got), max, got)
		}
	}
	if got := foldOf(t, 100, ""); got == "" {
		t.Error("an empty request got an empty answer")
	}
}

func TestFoldKeepsWhatMatters(t *testing.T) {
	body := "Summary so far:\n(none)\n\nMessages that leave now:\n" +
		strings.Repeat("2024-01-02T08:00:00Z user: \"well that is how things are around here\"\n", 1) +
		"2024-01-02T08:00:00Z user: \"so it goes and goes and goes on and on\"\n" +
		"2024-01-02T08:00:00Z user: \"My sister Ines pays 450 euros from 1 March.\"\n"
	got := foldOf(t, 45, body)
	wants(t, got, "Ines", "450", "1 March")
	if strings.Contains(got, "around here") {
		t.Errorf("kept what says nothing: %q", got)
	}
}

// searchSteps are lines of a turn that searches.
const searchSteps = `2023-05-08T13:56:00Z user: "Who polished the copper samovar in Odessa?"
2023-05-08T13:57:05Z the agent called conversation_search{"query":"polished copper samovar Odessa"}
2023-05-08T13:57:06Z result of conversation_search (OK): "Showing 1-1 of 1\n{\"id\":\"message-1\",\"text\":\"Piotr paid 99 roubles.\"}"
2023-05-08T13:57:07Z the agent thought: "[step 3, search 4, read 0] Looking for: Piotr 1901"`

func TestFoldOfSearchStepsKeepsTheOldSummary(t *testing.T) {
	for _, old := range []string{
		"- 2023-05-07 the user: The lease with Brandt ends on 2023-11-30.\nSearch for: Brandt, lease",
		"- 2023-05-07 用户：租约三月五日到期。\n搜索词：租约",
		"She said hello.", // a summary in other words than its own
		noSummary,
	} {
		got := old
		for range 3 {
			got = foldOf(t, 200, "Summary so far:\n"+got+"\n\nMessages that leave now:\n"+searchSteps)
		}
		if got != old {
			t.Errorf("%q became %q", old, got)
		}
	}
	long := strings.Repeat("- the user: Invoice 4711 went to Lisbon on 3 May.\n- the user: Invoice 12 went to Porto.\n", 40)
	if got := foldOf(t, 100, "Summary so far:\n"+long+"\nMessages that leave now:\n"+searchSteps); estimate(got) > 100 {
		t.Errorf("a summary of %d tokens, at most 100", estimate(got))
	}
}

func TestFoldWithoutContentIsNoFiller(t *testing.T) {
	for _, said := range []string{"hi", "你好", "Thanks!"} {
		body := "Summary so far:\n(none)\n\nMessages that leave now:\n2023-05-08T13:56:00Z user: \"" + said + "\""
		got := foldOf(t, 200, body)
		if got != noSummary {
			t.Errorf("%s: %q", said, got)
		}
		got = foldOf(t, 200, "Summary so far:\n"+got+"\nSearch for: 9\n\nMessages that leave now:\n2023-06-01T00:00:00Z user: \"The dentist moved to Elm Street 5.\"")
		wants(t, got, "Elm Street 5")
		if strings.Contains(got, "none") {
			t.Errorf("filler was kept: %q", got)
		}
	}
	s := newSim(t)
	s.summary = noSummary
	if got := s.user("Who is none?"); strings.Contains(got, "my summary") {
		t.Errorf("quoted filler: %q", got)
	}
}

func TestSearchWordsAreContentWords(t *testing.T) {
	for word, want := range map[string]bool{"温室": true, "因": false, "觉得": false, "窗户全部修理完毕再刷一遍漆": false} {
		if got := findable(term{word, true, 1}, word); got != want {
			t.Errorf("findable(%s) = %v", word, got)
		}
	}
	got := foldOf(t, 300, "Summary so far:\n(none)\n\nMessages that leave now:\n"+
		"2024-01-02T08:00:00Z user: \"Nothing really happened yesterday. Something else: everyone definitely thought my greenhouse in Bergen was wonderful, number A-77.\"\n"+
		"2024-01-02T08:00:00Z user: \"今天没有下雨，其实大家都觉得望京的温室非常好，因为王芳已经修好了十二扇窗户并且打算明天继续把剩余窗户全部修理完毕再刷一遍漆。\"")
	words := got[strings.LastIndexByte(got, '\n')+1:]
	wants(t, words, "greenhouse", "Bergen", "A-77")
	list := strings.FieldsFunc(strings.TrimPrefix(strings.TrimPrefix(words, wordsEnglish), wordsChinese), func(r rune) bool { return r == ',' || r == '、' })
	for _, w := range list {
		w = strings.TrimSpace(w)
		if hollowWords[strings.ToLower(w)] || dense([]rune(w)[0]) && memgpt.Runes(w) > 8 {
			t.Errorf("%q is no word to search for: %q", w, words)
		}
	}
}
