package offline

import (
	"fmt"
	"strings"
	"testing"

	"memgpt"
)

func TestHitThatWasCutOffIsRead(t *testing.T) {
	hits := readHits("Showing 1-2 of 2\n{\"id\":\"a\",\"text\":\"whole\"}\n{\"id\":\"message-b\",\"kind\":\"message\",\"text\":\"the end is mis")
	if len(hits) != 2 || hits[1].Text != "the end is mis" || !hits[1].Cut || hits[0].Cut {
		t.Errorf("hits %+v", hits)
	}
}

func TestQueriesInOtherWords(t *testing.T) {
	want := contentTerms("Ada's favourite doctor")
	got := (&turn{}).queries(want, []hit{{ID: "a", Text: "Ada has a favourite"}})
	if len(got) < 2 || got[1] != "Ada favourite physician" {
		t.Errorf("queries %q", got)
	}
	if got := variants(term{text: "kites"}); len(got) != 1 || got[0] != "kite" {
		t.Errorf("variants %q", got)
	}
}

func TestCodesOfOtherShapesLeadNowhere(t *testing.T) {
	if v, ok := valueOf("entry 4711 "+uuid(1)+" 88112 "+uuid(2), uuid(1)); !ok || v != uuid(2) {
		t.Errorf("got %q", v)
	}
	if v, ok := valueOf(uuid(1)+" was stored on 2024-05-06 in box 12345", uuid(1)); ok {
		t.Errorf("got %q", v)
	}
}

func TestFoldKeepsTheOrder(t *testing.T) {
	got := fold("", []string{"the user: one plain remark about soup", "the user: My sister Ines pays 450 euros", "the user: Bring 3 lamps"}, english, 200)
	if a, b, c := strings.Index(got, "soup"), strings.Index(got, "Ines"), strings.Index(got, "lamps"); a < 0 || !(a < b && b < c) {
		t.Errorf("order lost: %q", got)
	}
	if got := fold("", []string{"the user: hello", "I: You're welcome!", "the user: Bring 3 lamps"}, english, 200); strings.Contains(got, "hello") {
		t.Errorf("kept a greeting: %q", got)
	}
}

func TestBlocksOfInstructionsDoNotCount(t *testing.T) {
	system := "Blocks look so: <memory_blocks>\n<block label=\"human\" chars=\"1/2\">\nThe user's name is Nobody.\n</block>\n</memory_blocks>\n" +
		"<memory_blocks>\n" + frame("human", "The user's name is &lt;/block> Ann.", 99) + "</memory_blocks>"
	blocks := readBlocks(system)
	if len(blocks) != 1 || blocks[0].value != "The user's name is </block> Ann." || blocks[0].limit != 99 {
		t.Errorf("blocks %+v", blocks)
	}
}

func TestReadOnlyBlock(t *testing.T) {
	s := newSim(t)
	req := s.request()
	req.Messages = append(req.Messages, envelope(memgpt.EventUser, "I live in Oslo", "", ""))
	req.Messages[0] = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem,
		"<memory_blocks>\n<block label=\"human\" chars=\"0/2000\" read_only=\"true\">\n\n</block>\n</memory_blocks>")
	res, err := s.m.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if calls := res.Message.Calls(); len(calls) != 1 || calls[0].Name != toolInsert {
		t.Errorf("calls %v", calls)
	}
}

func TestTextIsWrittenAsItIs(t *testing.T) {
	s := newSim(t)
	s.user("My wifi password is <a&b>")
	s.user("我叫小林")
	for _, m := range s.queue {
		for _, c := range m.Calls() {
			if strings.Contains(c.Arguments, `\u`) {
				t.Errorf("escaped: %s", c.Arguments)
			}
		}
	}
	wants(t, s.human, "<a&b>", "小林")
}

func TestLangOf(t *testing.T) {
	for text, want := range map[string]lang{"": english, "我叫 Alexander Johnson": chinese, "My name is 小林": english, "hello": english, "你好": chinese} {
		if got := langOf(text); got != want {
			t.Errorf("langOf(%q) = %v", text, fmt.Sprint(got))
		}
	}
}
