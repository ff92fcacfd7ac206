package memtool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/tool"
)

func TestTalk(t *testing.T) {
	f := newFake()
	f.ok(t, "send_message", `{"message":"你好 <b>\n"}`)
	f.ok(t, "send_message", `{"text":"hi"}`)
	f.ok(t, "yield", ``)
	f.ok(t, "yield", `{}`)
	same(t, f.ok(t, "pause_heartbeats", `{"minutes":"30"}`), "Timer heartbeats are paused for 30 minutes.")
	same(t, f.ok(t, "pause_heartbeats", `{"minutes":5000}`), "Timer heartbeats are paused for 360 minutes, which is the longest pause.")
	f.fails(t, "pause_heartbeats", `{"minutes":0}`, "minutes is 0", "1 to 360")
	f.fails(t, "pause_heartbeats", `{"minutes":-5}`, "minutes is -5")
	f.fails(t, "send_message", `{"message":" \n\t"}`, "message is empty", "yield")
	f.fails(t, "send_message", `{}`, "message")
	want := []string{"say 你好 <b>\n", "say hi", "yield", "yield", "pause 30m0s", "pause 6h0m0s"}
	if diff := cmp.Diff(want, f.log); diff != "" {
		t.Error(diff)
	}
}

func TestArchive(t *testing.T) {
	f := newFake()
	same(t, f.ok(t, "archival_memory_insert", `{"content":"Lin likes tea","tags":["drink"," drink",""]}`), "Stored as passage-1.")
	if diff := cmp.Diff([]string{"drink"}, f.tags); diff != "" {
		t.Error(diff)
	}
	same(t, f.ok(t, "archival_memory_insert", `{"text":"Lin likes tea"}`),
		"Already stored as passage-1 since 2024-10-14T14:04:05+09:00; nothing was added.")
	same(t, f.ok(t, "archival_memory_update", `{"memory_id":" passage-1 ","content":"Lin likes coffee"}`),
		"Stored as passage-new; it replaces passage-1.")
	same(t, f.ok(t, "archival_memory_merge", `{"ids":["passage-1","passage-2","passage-1"],"content":"both"}`),
		"Stored as passage-new; it replaces passage-1, passage-2.")
	same(t, f.ok(t, "archival_memory_delete", `{"id":"passage-1"}`), "Deleted passage-1: no search finds it any more.")
	want := []string{"supersede [passage-1] by Lin likes coffee", "supersede [passage-1 passage-2] by both", "delete passage-1"}
	if diff := cmp.Diff(want, f.log); diff != "" {
		t.Error(diff)
	}
	f.fails(t, "archival_memory_insert", `{"content":" "}`, "content is empty")
	f.fails(t, "archival_memory_update", `{"id":"passage-1","content":""}`, "content is empty", "archival_memory_delete")
	f.fails(t, "archival_memory_update", `{"id":" ","content":"x"}`, "id is empty", "archival_memory_search")
	f.fails(t, "archival_memory_delete", `{"id":""}`, "id is empty")
	f.fails(t, "archival_memory_merge", `{"ids":["a","a"],"content":"x"}`, "1 passage", "two", "archival_memory_update")
	f.fails(t, "archival_memory_merge", `{"ids":["a","b"],"content":""}`, "content is empty")
}

// What the memory says against a change reaches the model as it is.
func TestMemoryErrors(t *testing.T) {
	for name, args := range map[string]string{
		"archival_memory_insert": `{"content":"x"}`,
		"archival_memory_update": `{"id":"x","content":"x"}`,
		"archival_memory_merge":  `{"ids":["x","y"],"content":"x"}`,
		"archival_memory_delete": `{"id":"x"}`,
		"archival_memory_search": `{"query":"x"}`,
		"conversation_search":    `{"query":"x"}`,
		"conversation_evict":     `{}`,
		"memory_read":            `{"id":"x"}`,
	} {
		f := newFake()
		f.err = errors.New("no passage x: search for it")
		if got, err := f.run(t, Form{}, name, args); got != "" || err == nil || err.Error() != f.err.Error() {
			t.Errorf("%s gave %q, %v", name, got, err)
		}
	}
}

func TestRead(t *testing.T) {
	f := newFake()
	at := time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC)
	f.originals = []tool.Original{
		{ID: "message-1", Kind: memgpt.KindMessage, Thread: "main", Role: memgpt.RoleUser, Type: memgpt.EventUser, Time: at, Text: strings.Repeat("é", 700)},
		{ID: "message-2", Kind: memgpt.KindMessage, Thread: "main", Role: memgpt.RoleAssistant, Time: at, Text: "hi\n\"you\"", Asked: true,
			Calls: []memgpt.Call{{Name: "send_message", Arguments: `{"message":"hi"}`}, {Name: "memory_read", Arguments: `{"id":"<x>"}`}}},
		{ID: "message-3", Kind: memgpt.KindMessage, Thread: "main", Role: memgpt.RoleSystem, Type: memgpt.EventAlert, Time: at, Text: "full"},
	}
	same(t, f.ok(t, "memory_read", `{"id":"message-2","around":1}`),
		`{"id":"message-1","kind":"message","time":"2023-05-08T22:56:00+09:00","conversation":"main","role":"user","text":"`+strings.Repeat("é", 600)+`","cut":true,"length":700}`,
		`{"id":"message-2","kind":"message","asked":true,"time":"2023-05-08T22:56:00+09:00","conversation":"main","role":"assistant","calls":[{"name":"send_message"},{"name":"memory_read","arguments":"{\"id\":\"<x>\"}"}],"text":"hi\n\"you\"","offset":0,"length":8}`,
		`{"id":"message-3","kind":"message","time":"2023-05-08T22:56:00+09:00","conversation":"main","role":"system","type":"system_alert","text":"full"}`)
	if f.around != 1 {
		t.Errorf("around was %d", f.around)
	}
	got := f.ok(t, "memory_read", `{"id":"message-2","around":50}`)
	if f.around != 10 || !strings.HasSuffix(got, "\nNeighbours: 10 each side are the most.") {
		t.Errorf("around was %d: %s", f.around, got)
	}
	f.fails(t, "memory_read", `{"id":" "}`, "id is empty")
	f.fails(t, "memory_read", `{"id":"x","offset":-1}`, "offset is -1", "from 0")
	f.fails(t, "memory_read", `{"id":"x","around":-1}`, "around is -1", "0 to 10")
	f.originals = nil
	f.fails(t, "memory_read", `{"id":"message-7"}`, `"message-7"`, "copy the id")
}

func TestReadPassage(t *testing.T) {
	f := newFake()
	f.originals = []tool.Original{{ID: "passage-1", Kind: memgpt.KindPassage, Time: f.now, Text: "old", Tags: []string{"a"}, Source: "s.txt", Asked: true, Replaced: "passage-2"}}
	same(t, f.ok(t, "memory_read", `{"id":"passage-1"}`),
		`{"id":"passage-1","kind":"passage","asked":true,"time":"2024-10-14T15:04:05+09:00","tags":["a"],"source":"s.txt","superseded_by":"passage-2","text":"old","offset":0,"length":3}`)
}

// Reading on page by page gives the whole text, whatever its characters.
func TestReadOn(t *testing.T) {
	text := strings.Repeat("长文👩‍👧 and words\n", 700)
	f := newFake()
	f.originals = []tool.Original{{ID: "message-1", Kind: memgpt.KindMessage, Text: text, Asked: true}}
	for form, size := range map[Form]int{{}: 3000, {Compact: true}: 1200} {
		var whole strings.Builder
		offset, pages := "0", 0
		for offset != "" {
			got, err := f.run(t, form, "memory_read", `{"id":"message-1","offset":`+offset+`}`)
			if err != nil {
				t.Fatal(err)
			}
			first, rest, _ := strings.Cut(got, "\n")
			l := decodeLine(t, first)
			if memgpt.Runes(l.Text) > size || l.Length != memgpt.Runes(text) || l.Offset == nil || *l.Offset != memgpt.Runes(whole.String()) {
				t.Fatalf("page %d: offset %v of %d", pages, l.Offset, l.Length)
			}
			whole.WriteString(l.Text)
			offset = strings.TrimPrefix(rest, "Read on: offset=")
			pages++
		}
		if whole.String() != text || pages != (memgpt.Runes(text)+size-1)/size {
			t.Errorf("%+v: %d pages with %d of %d bytes", form, pages, whole.Len(), len(text))
		}
	}
	f.fails(t, "memory_read", `{"id":"message-1","offset":100000}`, "100,000 is beyond", "11,200 characters", "offset=9000")
	f.fails(t, "memory_read", `{"id":"message-1","offset":11200}`, "11,200 is beyond")
	f.originals[0].Text = strings.Repeat("x", 3001)
	if got := f.ok(t, "memory_read", `{"id":"message-1"}`); !strings.HasSuffix(got, "\nRead on: offset=3000") {
		t.Errorf("the last character is not offered: %s", got[len(got)-50:])
	}
	f.originals[0].Text = ""
	f.ok(t, "memory_read", `{"id":"message-1"}`)
}
