package retrieve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/tool"
)

// monthly are six things told in six months of 2026, from March to August.
var monthly = []string{
	"The plumber fixed the leak under the kitchen sink", "I signed up for a pottery class downtown", "Our flight to Lisbon was cancelled",
	"妈妈寄来了一箱荔枝", "My new desk arrived with a broken leg", "周六和老同学打了羽毛球",
}

// TestQuestionsOfATimeAlone: what only asks for a time is answered by the date, whatever else the question is made of; what
// asks for a thing is not.
func TestQuestionsOfATimeAlone(t *testing.T) {
	c := newEncoder(t)
	m := newMemIndex()
	for i, text := range monthly {
		e := message(i+1, text, time.Date(2026, time.Month(3+i), 14, 10, 0, 0, 0, time.UTC))
		e.Message.Author = "Ann"
		m.addEntry(e)
	}
	m.embed(c, monthly)
	day := func(mon time.Month, d int) time.Time { return time.Date(2026, mon, d, 12, 0, 0, 0, time.UTC) }
	late := day(11, 30)
	for _, s := range []*retrieve.Searcher{hybrid(t, m, c), hybrid(t, m)} {
		for _, tt := range []struct {
			q    string
			now  time.Time
			want int // the message that stands first; 0 is that nothing is found
		}{
			{"what happened last May?", late, 3}, {"last May", late, 3}, {"so, what did we talk about in May?", late, 3},
			{"What's new since August?", late, 6}, {"can you remember anything from early April?", day(5, 20), 2},
			{"what did we do two weeks ago", day(6, 28), 4}, {"anything from last autumn?", late.AddDate(1, 0, 0), 0}, {"what did I say on 14 July", late, 5},
			{"did anything important happen on March 14th?", late, 1}, {"Do you recall what Ann told you last April?", late, 2},
			{"what did I tell you yesterday", day(7, 15), 5}, {"what happened last January?", late, 0}, {"tell me everything about last month", day(9, 3), 6},
			{"去年五月", late.AddDate(1, 0, 0), 3}, {"去年五月发生了什么？", late.AddDate(1, 0, 0), 3}, {"上个月发生了什么事", day(6, 30), 3},
			{"我们两周前聊了些什么", day(7, 28), 5}, {"六月份有什么事情吗", late, 4}, {"三月十四号我跟你说过什么", late, 1}, {"上個月我們討論了什麼", day(5, 3), 2},
			{"昨天我都说了什么来着", day(8, 15), 6}, {"先月何がありましたか", day(8, 3), 5}, {"昨日は何をした？", day(4, 15), 2}, {"2週間前に何を話しましたか", day(3, 28), 1},
		} {
			hits := ask(t, s, tool.Query{Text: tt.q, Now: tt.now, Size: 10})
			first := ""
			if len(hits.List) > 0 {
				first = strings.TrimPrefix(hits.List[0].ID, "message-")
			}
			if want := strings.Trim(fmt.Sprint(tt.want), "0"); first != want {
				t.Errorf("%s (model %q): %q first of %d, want %d", tt.q, hits.Model, first, hits.Total, tt.want)
			}
		}
		// What asks for a thing finds it, at whatever time it was told.
		for q, want := range map[string]string{"what happened to the kitchen sink last May?": "message-1", "what about the pottery last June": "message-2",
			"上个月说的荔枝": "message-4"} {
			hits := ask(t, s, tool.Query{Text: q, Now: late, Size: 10})
			if rank := rankOf(hits, want); rank == 0 || rank > 2 {
				t.Errorf("%s (model %q): rank %d", q, hits.Model, rank)
			}
		}
	}
}

// TestATimeNamedInATextIsFound: a passage without a date of its own, which names the time that is asked for.
func TestATimeNamedInATextIsFound(t *testing.T) {
	m := newMemIndex()
	for i, text := range []string{"The audit took place on 3 May 2026", "The audit took place on 3 June 2026", "In August we moved", "五月三日去了西湖", "We may go there"} {
		m.addPassage(memgpt.Passage{ID: fmt.Sprint("passage-", i+1), Owner: "a", Text: text})
	}
	for q, want := range map[string]string{"what happened last May?": "1", "what did we do in August?": "3", "五月发生了什么": "1 4"} {
		hits := ask(t, hybrid(t, m), tool.Query{Text: q, Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)})
		if got := ids(hits); got != want && got != "4 1" {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
}
