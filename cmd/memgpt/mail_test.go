package main

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
)

// TestAgentsWriteToEachOther: one run asks another agent, whose turn runs in the same process, and tells its answer; what was sent at the
// same time without waiting is in the other's log once.
func TestAgentsWriteToEachOther(t *testing.T) {
	s := httptest.NewServer(script.NewServer(script.ServerConfig{Config: script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		last := req.Messages[len(req.Messages)-1].Said()
		switch {
		case strings.Contains(last, "Another agent asks") && strings.Contains(last, "Is the gate shut?"):
			return script.Say("The gate is shut since noon.")
		case strings.Contains(last, "Another agent writes"), strings.Contains(last, `"message":"Sent.`):
			return script.Call("yield")
		case strings.Contains(last, "shut since noon"):
			return script.Say("Warden says: " + "it is shut.")
		case strings.Contains(last, "about the gate"):
			return script.Calls(script.Call("send_message_to_agents_matching_tags", "tags", []string{"gates"}, "message", "A question comes."),
				script.Call("send_message_to_agent_and_wait_for_reply", "agent", "warden", "message", "Is the gate shut?"))
		}
		return script.Say("hello")
	}}}))
	defer s.Close()
	home := filepath.Join(t.TempDir(), "home")
	env := []string{"OPENAI_BASE_URL=" + s.URL + "/v1", "OPENAI_API_KEY=k", "MEMGPT_MODEL=script", "MEMGPT_WINDOW=16384"}
	run := func(args ...string) ran {
		t.Helper()
		r := command(t, home, "", env, args...)
		if r.code != 0 {
			t.Fatalf("%v: %+v", args, r)
		}
		return r
	}
	run("run", "-m", "hi")
	run("run", "--agent", "warden", "-m", "hi")
	if r := run("run", "-m", "ask about the gate"); strings.Contains(r.out, "shut") {
		t.Errorf("an agent wrote that may not: %+v", r)
	}
	run("agents", "set", "default", "messages=on")
	run("agents", "set", "warden", "messages=on", "tags= gates, night,gates", "reply_wait=5m")
	if r := run("agents", "show", "warden"); !strings.Contains(r.out, "gates,night") || !strings.Contains(r.out, "5m") {
		t.Errorf("%+v", r)
	}
	if r := refusedEvent(t, home, "", "agents", "set", "warden", "messages=maybe"); !strings.Contains(r.err, "it takes on or off") {
		t.Errorf("%+v", r)
	}
	if r := run("run", "-m", "ask about the gate"); r.out != "Warden says: it is shut.\n" {
		t.Errorf("%+v", r)
	}
	run("run", "--agent", "warden", "--thread", "agent default", "-m", "and now?") // runs what a process that ended left
	st, _, _ := timedStore(t, home)
	agent, err := st.AgentNamed(t.Context(), "", "warden")
	if err != nil {
		t.Fatal(err)
	}
	threads, err := st.Threads(t.Context(), "", agent.ID)
	if err != nil || len(threads) != 2 || threads[1].Name != "agent default" {
		t.Fatalf("%+v %v", threads, err)
	}
	entries, err := st.Entries(t.Context(), store.EntryRange{Thread: threads[1].ID})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range entries {
		if _, text, ok := strings.Cut(e.Message.Said(), store.MailSays); ok && e.Message.Author == "default" {
			got[text]++
		}
	}
	if got["Is the gate shut?"] != 1 || got["A question comes."] != 1 || len(got) != 2 {
		t.Errorf("%v", got)
	}
}
