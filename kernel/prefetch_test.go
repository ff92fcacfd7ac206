package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/tool"
)

// onPrefetch are the settings of an agent that is handed what its users' messages lean on.
var onPrefetch = memgpt.Prefetch{Mode: memgpt.PrefetchOn}

// archive stores passages as the owner does.
func (e *env) archive(texts ...string) {
	e.t.Helper()
	var list []memgpt.Passage
	for _, text := range texts {
		list = append(list, memgpt.Passage{Text: text})
	}
	l, err := e.kernel.BeginLoad(e.t.Context(), e.agent, "notes")
	must(e.t, err)
	must(e.t, l.Add(e.t.Context(), list))
}

// handedIn returns the texts of prefetch entries in a request, in order, and the place of the last; -1 for none.
func handedIn(req *memgpt.Request) (texts []string, at int) {
	at = -1
	for i := range req.Messages {
		if req.Messages[i].Type == memgpt.EventPrefetch {
			texts, at = append(texts, req.Messages[i].Said()), i
		}
	}
	return texts, at
}

func lastRequest(m *script.Model) *memgpt.Request {
	all := m.Requests()
	return all[len(all)-1]
}

func TestPrefetchStandsBeforeItsMessage(t *testing.T) {
	var prompts []*memgpt.Request
	for _, mode := range []memgpt.PrefetchMode{memgpt.PrefetchOff, memgpt.PrefetchOn} {
		m := talker()
		e := newEnv(t, m, options{prefetch: memgpt.Prefetch{Mode: mode}})
		e.archive("The spare key of the boathouse hangs behind the clock.", "Tides are highest in March.")
		e.say("Good morning!")
		_, turn := e.say("Where is the key of the boathouse?")
		req := lastRequest(m)
		prompts = append(prompts, req)
		texts, at := handedIn(req)
		if mode == memgpt.PrefetchOff {
			if len(texts) > 0 || turn.Prefetch != nil {
				t.Errorf("with prefetch off %q was handed over, %+v", texts, turn.Prefetch)
			}
			continue
		}
		if len(texts) != 1 || at != len(req.Messages)-2 || !strings.Contains(texts[0], "behind the clock") || strings.Contains(texts[0], "Tides") {
			t.Errorf("handed over at %d of %d: %q", at, len(req.Messages), texts)
		}
		p := turn.Prefetch
		if p == nil || p.Why != "" || len(p.Hits) != 1 || p.Hits[0].Kind != memgpt.KindPassage || p.Hits[0].Why == "" || p.Tokens == 0 ||
			p.Query != "Where is the key of the boathouse?" {
			t.Errorf("the turn tells %+v", p)
		}
		if !strings.Contains(texts[0], p.Hits[0].ID) || !strings.Contains(texts[0], "2026-04-06") || !strings.Contains(texts[0], "memory_read") {
			t.Errorf("no id, date or way to read on: %s", texts[0])
		}
		if stored, err := e.base.Turn(t.Context(), "", turn.ID); err != nil || cmp.Diff(stored, turn) != "" {
			t.Errorf("the turn is stored otherwise: %v, %s", err, cmp.Diff(stored, turn))
		}
	}
	off, on := prompts[0], prompts[1]
	if d := cmp.Diff(off.Messages[:3], on.Messages[:3]); d != "" || len(on.Messages) != len(off.Messages)+1 || cmp.Diff(off.Tools, on.Tools) != "" {
		t.Errorf("the head of the prompt is another with prefetch on: %s", d)
	}
}

// TestPrefetchIsNeitherFoundNorFolded talks until entries have left the queue with their messages.
func TestPrefetchIsNeitherFoundNorFolded(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{window: 4096, prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchOn, Budget: 400}})
	for i := range 12 {
		e.archive(fmt.Sprintf("Shelf %d of the cellar holds jars of plum jam from the year %d.", i, 2000+i))
	}
	for i := range 30 {
		e.say(fmt.Sprintf("What is on shelf %d of the cellar? ", i%12) + strings.Repeat("I ask since the list of jars is so long. ", 6))
	}
	log := e.checkState(nil)
	left := 0
	for i := range log[:e.state.Thread.Folded] {
		if log[i].Message.Type == memgpt.EventPrefetch {
			left++
		}
	}
	_, summaries := requests(m)
	if left == 0 || len(summaries) == 0 {
		t.Fatalf("%d entries left the queue, %d summaries", left, len(summaries))
	}
	for _, req := range summaries {
		if body := req.Messages[len(req.Messages)-1].Said(); strings.Contains(body, "looked this up") || strings.Contains(body, "plum jam") {
			t.Fatalf("folded: %s", body)
		}
	}
	hits, err := e.config.Search.Search(t.Context(), tool.Query{Owner: e.agent.ID, Text: "system looked this up in your memory quotations", Size: 100})
	must(t, err)
	for _, h := range hits.List {
		if strings.Contains(h.Text, "looked this up") {
			t.Errorf("found: %+v", h)
		}
	}
	e.checkAll(m, 4096)
}

// TestPrefetchLeavesOutWhatIsInContext asks twice, and for what was just said.
func TestPrefetchLeavesOutWhatIsInContext(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{prefetch: onPrefetch})
	e.archive("The spare key of the boathouse hangs behind the clock.")
	e.say("My boathouse has a green roof and a red door.")
	e.say("Where is the key of my boathouse?")
	_, turn := e.say("And once more: where is the key of my boathouse?")
	if turn.Prefetch == nil || turn.Prefetch.Why != "nothing found" {
		t.Errorf("handed over again: %+v", turn.Prefetch)
	}
	texts, _ := handedIn(lastRequest(m))
	all := strings.Join(texts, "\n")
	if strings.Count(all, "behind the clock") != 1 || strings.Contains(all, "green roof") {
		t.Errorf("what is in context was handed over: %q", texts)
	}
}

// TestPrefetchLeavesOutWhatASearchShowed lets the model find the passage itself first.
func TestPrefetchLeavesOutWhatASearchShowed(t *testing.T) {
	m := script.Of(script.Call("archival_memory_search", "query", "key of the boathouse", "request_heartbeat", true), script.Say("Behind the clock."),
		script.Say("As I said."))
	e := newEnv(t, m, options{})
	e.archive("The spare key of the boathouse hangs behind the clock.")
	if _, turn := e.say("Where is the key of the boathouse?"); turn.Searches != 1 {
		t.Errorf("%d searches were counted, 1 was made", turn.Searches)
	}
	a, err := e.base.Agent(t.Context(), "", e.agent.ID)
	must(t, err)
	a.Prefetch = onPrefetch
	_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Agents: []memgpt.Agent{a}})
	must(t, err)
	if _, turn := e.say("Where exactly is the key of the boathouse?"); turn.Prefetch == nil || turn.Prefetch.Why != "nothing found" {
		t.Errorf("%+v", turn.Prefetch)
	}
}

// TestPrefetchKeepsItsBudget counts what is handed over as a provider would.
func TestPrefetchKeepsItsBudget(t *testing.T) {
	for _, budget := range []int{180, 300, 1000, 2500} {
		m := talker()
		e := newEnv(t, m, options{window: 32768, prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchOn, Budget: budget}})
		for i := range 60 {
			e.archive(fmt.Sprintf("Bottle %d of the wine cellar: ", i) + strings.Repeat(fmt.Sprintf("\"vintage\" %d, 年份 %d, of a dry slope; ", 1900+i, i), 1+i%7*4))
		}
		_, turn := e.say("Which bottle of the wine cellar is from 1937?")
		req := lastRequest(m)
		texts, at := handedIn(req)
		if len(texts) != 1 {
			t.Fatalf("budget %d: nothing was handed over, %+v", budget, turn.Prefetch)
		}
		n := e.count.Message(&req.Messages[at])
		if n > budget || n != turn.Prefetch.Tokens || budget >= 300 && n < budget*7/10 {
			t.Errorf("budget %d: %d tokens, told %d", budget, n, turn.Prefetch.Tokens)
		}
		if strings.Count(texts[0], `{\"id\":`) != len(turn.Prefetch.Hits) {
			t.Errorf("budget %d: %d hits are told: %s", budget, len(turn.Prefetch.Hits), texts[0])
		}
	}
}

func TestPrefetchKeepsItsAge(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchOn, Age: 24 * time.Hour}})
	e.archive("The spare key of the boathouse hangs behind the clock.")
	e.now = e.now.Add(48 * time.Hour)
	if _, turn := e.say("Where is the key of the boathouse?"); turn.Prefetch.Why != "nothing found" {
		t.Errorf("older than a day: %+v", turn.Prefetch)
	}
}

// blindSearch is a searcher that fails, or waits for the end of its context.
type blindSearch struct{ waits bool }

func (s blindSearch) Search(ctx context.Context, _ tool.Query) (tool.Hits, error) {
	if s.waits {
		<-ctx.Done()
		return tool.Hits{}, ctx.Err()
	}
	return tool.Hits{}, errors.New("the index is on fire")
}

func (blindSearch) Alike(context.Context, string, string, string, int) ([]tool.Alike, error) {
	return nil, nil
}

func TestPrefetchThatFailsLetsTheTurnGoOn(t *testing.T) {
	for _, waits := range []bool{false, true} {
		m := script.Of(script.Say("I don't know."))
		e := newEnv(t, m, options{prefetch: onPrefetch})
		e.reconfigure(func() { e.config.Search = blindSearch{waits} })
		said, turn := e.say("Where is the key of the boathouse?")
		if len(said) != 1 || turn.State != memgpt.TurnDone || !slices.Contains(turn.Flags, "prefetch_failed") {
			t.Errorf("waits %v: said %q, %+v", waits, said, turn)
		}
		warned := 0
		for _, u := range e.seen {
			if w, ok := u.(memgpt.Warned); ok && w.Code == "prefetch_failed" {
				warned++
			}
		}
		if warned != 1 {
			t.Errorf("waits %v: warned %d times", waits, warned)
		}
	}
}

// TestPrefetchIsSilentOverEverydayMemories says the greetings, thanks and commands of the list to an agent whose memories
// share their words.
func TestPrefetchIsSilentOverEverydayMemories(t *testing.T) {
	data, err := os.ReadFile("testdata/prefetch_silent.txt")
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	m := talker()
	e := newEnv(t, m, options{window: 32768, prefetch: onPrefetch})
	for i, line := range lines {
		e.archive(fmt.Sprintf("Memory %d: they said %s and thanked for a good day, 然后说了%s。", i, line, line))
	}
	handed := 0
	for _, line := range lines {
		if _, turn := e.say(line); len(turn.Prefetch.Hits) > 0 {
			handed++
		}
	}
	if handed*20 > len(lines) {
		t.Errorf("%d of %d got something handed over", handed, len(lines))
	}
}

// TestPrefetchSurvivesConflicts edits a shared block in the step that something was handed over for.
func TestPrefetchSurvivesConflicts(t *testing.T) {
	m := script.Of(script.Calls(script.Call("core_memory_append", "label", "human", "content", "ours"), script.Say("done")))
	o := options{prefetch: onPrefetch}
	e := newEnv(t, m, o)
	e.archive("The spare key of the boathouse hangs behind the clock.")
	e.store = &rival{Store: e.base}
	e.configure(m, o)
	_, turn := e.say("Where is the key of the boathouse?")
	if got := e.block("human"); got != "theirs\nours" || len(turn.Prefetch.Hits) != 1 {
		t.Fatalf("block %q, %+v", got, turn.Prefetch)
	}
	e.onePrefetchEach(1)
}

// onePrefetchEach holds that so many entries were handed over, each right before a message of the user.
func (e *env) onePrefetchEach(want int) {
	e.t.Helper()
	log, handed := e.log(), 0
	for i := range log {
		if log[i].Message.Type != memgpt.EventPrefetch {
			continue
		}
		handed++
		if i+1 == len(log) || log[i+1].Message.Role != memgpt.RoleUser || log[i+1].Turn != log[i].Turn {
			e.t.Errorf("entry %d is not followed by its message", i)
		}
	}
	if handed != want {
		e.t.Errorf("%d entries were handed over, want %d", handed, want)
	}
}
