package kernel_test

import (
	"strings"
	"testing"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
)

// share makes a shared archive of texts that the agent reads.
func (e *env) share(name string, texts ...string) store.Archive {
	e.t.Helper()
	a := store.Archive{Name: name, ID: e.newID("archive"), Created: e.now}
	record, err := a.Record()
	must(e.t, err)
	agent, err := e.base.Agent(e.t.Context(), "", e.agent.ID)
	must(e.t, err)
	agent.Archives = append(agent.Archives, name, "gone")
	_, err = e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Records: []store.Record{record}, Agents: []memgpt.Agent{agent}})
	must(e.t, err)
	var list []memgpt.Passage
	for _, text := range texts {
		list = append(list, memgpt.Passage{Text: text, Source: name + ".txt"})
	}
	for range 2 { // the second time nothing is new
		l, err := e.kernel.BeginSharedLoad(e.t.Context(), a, name+".txt")
		must(e.t, err)
		must(e.t, l.End(e.t.Context(), list, nil))
		if l.Told {
			e.t.Error("somebody was told of a shared document")
		}
	}
	return a
}

// passagesOf returns an owner's passages, dead ones too.
func (e *env) passagesOf(owner string) []memgpt.Passage {
	e.t.Helper()
	list, err := e.base.PassagesOf(e.t.Context(), store.PassageRange{Owner: owner, Dead: true})
	must(e.t, err)
	return list
}

// TestSharedArchive: the model finds and reads what is shared, is told where it is from, and can't change it.
func TestSharedArchive(t *testing.T) {
	var id string
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		chain := func(name string, args ...any) script.Reply {
			return script.Calls(script.Call(name, append(args, "request_heartbeat", true)...))
		}
		switch n + 1 {
		case 1:
			return chain("archival_memory_search", "query", "ferry timetable")
		case 2:
			return chain("conversation_search", "query", "ferry timetable")
		case 3:
			return chain("memory_read", "id", id, "around", 1)
		case 4:
			return chain("archival_memory_update", "id", id, "content", "The ferry never leaves.")
		case 5:
			return chain("archival_memory_delete", "id", id)
		}
		return script.Say("done")
	}})
	e := newEnv(t, m, options{})
	e.archive("The cat dislikes the ferry.")
	a := e.share("harbour", "The ferry timetable: it leaves at seven and at noon.", "Tickets are sold at the kiosk.")
	if list := e.passagesOf(a.ID); len(list) != 2 {
		t.Fatalf("%d passages are shared", len(list))
	} else {
		id = list[0].ID
	}
	e.say("When does it leave?")
	var results []string
	for _, entry := range e.log() {
		if res, ok := entry.Message.Result(); ok {
			results = append(results, res.Text)
		}
	}
	for i, want := range [][]string{
		{`"archive":"harbour"`, "at seven", id, "dislikes", "Showing 1-2 of 2"},
		{"ferry timetable"},
		{`"archive":"harbour"`, "at seven", "kiosk"},
		{`shared archive \"harbour\"`, "can read and not change", "archival_memory_insert"},
		{`shared archive \"harbour\"`, "can read and not change"},
	} {
		if i >= len(results) {
			t.Fatalf("only %d results: %q", len(results), results)
		}
		for _, w := range want {
			if !strings.Contains(results[i], strings.ReplaceAll(w, `\"`, `"`)) {
				t.Errorf("result %d has no %q: %s", i, w, results[i])
			}
		}
		if i == 1 && strings.Contains(results[i], "at seven") {
			t.Errorf("a search of what was said finds a shared passage: %s", results[i])
		}
	}
	if list := e.passagesOf(a.ID); len(list) != 2 || !list[0].Live() {
		t.Errorf("the shared archive was changed: %+v", list)
	}
	if system := lastRequest(m).Messages[0].Said(); !strings.Contains(system, "(read-only): harbour, gone\n") {
		t.Errorf("the model isn't told of what it reads: %s", system)
	}
}

// TestSharedIsHandedOver: prefetch looks through shared archives, and says which one.
func TestSharedIsHandedOver(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{prefetch: onPrefetch})
	e.share("harbour", "The spare key of the boathouse hangs behind the clock.")
	e.say("Where is the key of the boathouse?")
	if texts, _ := handedIn(lastRequest(m)); len(texts) != 1 || !strings.Contains(texts[0], "shared archive harbour, document harbour.txt") ||
		!strings.Contains(texts[0], "behind the clock") {
		t.Errorf("handed over: %q", texts)
	}
}

// TestForgetShared: a passage of a shared archive goes, with what agents quote of it; nothing of the agents' own goes.
func TestForgetShared(t *testing.T) {
	m := diarist()
	e := newEnv(t, m, options{})
	secret := "the vault of Marmalade House opens with 88-Xylophone-14"
	a := e.share("harbour", "They say that "+secret+".", "Tickets are sold at the kiosk.")
	e.archive("A note of my own from harbour.txt.")
	e.say("find\nvault of Marmalade House")
	e.say("keep\n" + "I like tea")
	what := kernel.Forgetting{Archive: &a, Source: "harbour.txt"}
	for range 2 {
		preview, err := e.kernel.PreviewForget(t.Context(), what)
		must(t, err)
		if preview.Passages != 2 || preview.Quotes == 0 || preview.Messages != 0 {
			t.Errorf("to be forgotten: %+v", preview)
		}
	}
	_, err := e.kernel.Forget(t.Context(), what)
	must(t, err)
	for _, entry := range e.log() {
		if strings.Contains(entry.Message.Said(), "Xylophone") {
			t.Errorf("the log still quotes it: %s", entry.Message.Said())
		}
	}
	for _, p := range e.passagesOf(a.ID) {
		if p.Live() || strings.Contains(p.Text, "Xylophone") {
			t.Errorf("the shared archive still has it: %+v", p)
		}
	}
	own := 0
	for _, p := range e.passagesOf(e.agent.ID) {
		if p.Live() && (strings.Contains(p.Text, "note of my own") || strings.Contains(p.Text, "I like tea")) {
			own++
		}
	}
	if own != 2 {
		t.Errorf("%d of the agent's own passages are left", own)
	}
	what.Source, what.Passages = "", []string{"passage-none"}
	if _, err = e.kernel.Forget(t.Context(), what); memgpt.CodeOf(err) != memgpt.CodeNotFound || !strings.Contains(err.Error(), `archive "harbour"`) {
		t.Errorf("of a passage that isn't there: %v", err)
	}
}
