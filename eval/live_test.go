package eval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
)

// liveTalk is a conversation that is longer than a small window: facts among chatter, two of them said by the agent.
func liveTalk(lines int) *Suite {
	c := Case{Name: "long", Persona: talkPersona, Now: timeless.AddDate(0, 1, 0)}
	for i := range lines {
		who := []string{"Rona", "assistant", "Ivar"}[i%3]
		text := fmt.Sprintf("Remark %d is about the weather, the tide and the price of rope in the harbour, and about nothing else that matters.", i)
		c.Lines = append(c.Lines, kernel.Line{ID: fmt.Sprint("L", i), Speaker: who, Text: text, Time: timeless.AddDate(0, 0, i/10), Session: fmt.Sprint(i / 10)})
	}
	c.Lines[0].Text = "My lighthouse has a brass lamp from Trondheim."
	c.Lines[1].Text = "The ferryman's dog is called Pippin."
	c.Lines[lines-3].Text = "The kiln at the quay was built by Oke."
	c.Lines[lines-2].Text = "The ladder belongs to the widow Brandt."
	ask := func(id, text, answer string, line int) Question {
		return Question{ID: id, Text: text, Answer: answer, Group: "g", Gold: []Evidence{{c.Lines[line].ID, c.Lines[line].Text}}}
	}
	c.Questions = []Question{ask("old heard", "Where is the lamp of the lighthouse from?", "Trondheim", 0), ask("old said", "What is the ferryman's dog called?", "Pippin", 1),
		ask("new heard", "Who built the kiln at the quay?", "Oke", lines-3), ask("new said", "To whom does the ladder belong?", "the widow Brandt", lines-2)}
	return &Suite{Name: SuiteLocomo, Cases: []Case{c}}
}

// What is newest stands in the queue without a search, what is older was evicted and is found again, and the log has every
// line as it was said, by whom it was said.
func TestLiveConversation(t *testing.T) {
	for _, protocol := range []memgpt.Protocol{memgpt.ProtocolMemGPT, memgpt.ProtocolNative} {
		t.Run(string(protocol), func(t *testing.T) {
			s, o := liveTalk(120), newOpener(t)
			var log []memgpt.Entry
			o.before = func(st store.Store) { log = liveLog(t, st) }
			rep := run(t, Config{Open: o.make, Model: standIn(t), Live: true, Policy: Policy{Protocol: protocol}, Parallel: 1}, s)
			checkLiveLog(t, s.Cases[0].Lines, log)
			if rep.Evidence != 100 {
				t.Errorf("evidence in context: %v", rep.Evidence)
			}
			for _, r := range rep.Records {
				if fresh := strings.HasPrefix(r.Question, "new"); fresh && !r.Evidence[0].Shown || !fresh && r.Searches == 0 {
					t.Errorf("%s: %d searches, %+v", r.Question, r.Searches, r.Evidence)
				}
				if p := r.Evidence[0]; !p.Stored || !strings.HasPrefix(p.ID, "L") {
					t.Errorf("%s: %+v", r.Question, p)
				}
				if !strings.HasPrefix(r.Policy, "live") {
					t.Errorf("a record doesn't say that it is of a live conversation: %q", r.Policy)
				}
			}
			if l := rep.Pressure.Live; l == nil || l.Messages != 120 || l.Conversations != 1 || l.Alerts < 2 || l.Flushes < 2 || l.Evicted < 60 || l.Calls < l.Alerts || l.Tokens < 1000 {
				t.Errorf("%+v", l)
			}
		})
	}
}

// liveLog reads the log of the only conversation.
func liveLog(t *testing.T, st store.Store) []memgpt.Entry {
	t.Helper()
	agents, err := st.Agents(t.Context(), "")
	if err != nil || len(agents) != 1 {
		t.Fatalf("%v, %v", agents, err)
	}
	threads, err := st.Threads(t.Context(), "", agents[0].ID)
	if err != nil || len(threads) != 1 {
		t.Fatalf("%v, %v", threads, err)
	}
	log, err := st.Entries(t.Context(), store.EntryRange{Thread: threads[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func checkLiveLog(t *testing.T, lines []kernel.Line, log []memgpt.Entry) {
	t.Helper()
	var said []kernel.Line
	for _, e := range log {
		switch text := e.Message.Said(); {
		case e.Message.Role == memgpt.RoleUser:
			said = append(said, kernel.Line{Speaker: e.Message.Author, Text: text})
		case e.Message.Role == memgpt.RoleAssistant && text != "":
			said = append(said, kernel.Line{Speaker: liveSpeaker, Text: text})
		}
	}
	if len(said) != len(lines) {
		t.Fatalf("%d of %d lines are in the log", len(said), len(lines))
	}
	for i, l := range lines {
		if said[i].Speaker != l.Speaker || said[i].Text != l.Text {
			t.Errorf("line %d is %+v, want %+v", i, said[i], l)
		}
	}
}

// The model is asked at alerts and for summaries alone. What it saves is done; what it says to the user is not said.
func TestLiveModelActsOnAlertsAlone(t *testing.T) {
	var steps, summaries int
	m := script.New(script.Config{CountOnly: true, Func: func(_ int, req *memgpt.Request) script.Reply {
		if !pressed(req) {
			return script.Say("I don't know.")
		}
		steps++
		return script.Calls(script.Call("archival_memory_insert", "content", fmt.Sprint("Saved at alert ", steps), "request_heartbeat", false),
			script.Call("conversation_search", "query", "rope"), script.Say("I was alerted!"))
	}, Summary: func(*memgpt.Request) script.Reply {
		summaries++
		return script.Text("They spoke of rope.\nSearch for: rope")
	}})
	o := newOpener(t)
	var saved []memgpt.Passage
	var log []memgpt.Entry
	o.before = func(st store.Store) {
		log = liveLog(t, st)
		agents, err := st.Agents(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if saved, err = st.PassagesOf(t.Context(), store.PassageRange{Owner: agents[0].ID}); err != nil {
			t.Fatal(err)
		}
	}
	rep := run(t, Config{Open: o.make, Model: m, Live: true, Parallel: 1}, liveTalk(90))
	for _, e := range log {
		for _, c := range e.Message.Calls() {
			if text, _ := c.Spoken(); c.Name == "conversation_search" || text == "I was alerted!" {
				t.Errorf("the log has the call %s %s", c.Name, c.Arguments)
			}
		}
	}
	live := rep.Pressure.Live
	if len(log) < 90 || steps == 0 || len(saved) < live.Alerts || summaries == 0 {
		t.Errorf("%d steps at alerts, %d saved, %d summaries; %+v", steps, len(saved), summaries, live)
	}
	if i := slices.IndexFunc(rep.Records, func(r Record) bool { return r.Lost == LostNeverStored }); i >= 0 {
		t.Errorf("%+v", rep.Records[i])
	}
}

func TestLiveRefuses(t *testing.T) {
	o := newOpener(t)
	for want, cfg := range map[string]Config{
		"policies and live conversations are for modes of agents": {Mode: ModeRAG, Live: true},
		"no conversations that could be held live":                {Live: true},
	} {
		cfg.Open, cfg.Model = o.make, standIn(t)
		s, err := Load(SuiteRelay, chains(t), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), cfg, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Names of results tell live conversations and policies from others.
func TestLiveResultNames(t *testing.T) {
	s, m := liveTalk(90), standIn(t)
	names := map[string]bool{}
	for _, cfg := range []Config{{}, {Live: true}, {Policy: Policy{Alert: .9}}, {Live: true, Policy: Policy{Alert: .9}}, {Live: true, Policy: Policy{Summary: SummaryOff}}} {
		cfg.Model = m
		name, err := ResultName(cfg, s, nil)
		if err != nil || names[name] {
			t.Errorf("%s twice, %v", name, err)
		}
		names[name] = true
	}
}
