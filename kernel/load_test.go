package kernel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
)

func pages(source string, n int) (list []memgpt.Passage) {
	for i := range n {
		list = append(list, memgpt.Passage{Text: fmt.Sprintf("page %d of %s", i, source), Source: source, Heading: "Book > One",
			Position: int64(100 * i)})
	}
	return list
}

// load adds passages as a part of a document.
func (e *env) load(name string, list []memgpt.Passage) (added int, err error) {
	l, err := e.kernel.BeginLoad(e.t.Context(), e.agent, name)
	must(e.t, err)
	err = l.Add(e.t.Context(), list)
	return l.Added, err
}

// TestLoadInterrupted breaks a load off and runs it again, where something is left to store and where nothing is: the agent
// is told once, when the document is whole, and never of what was whole before.
func TestLoadInterrupted(t *testing.T) {
	for _, left := range []int{0, 3} {
		e := newEnv(t, script.Of(), options{})
		doc := pages("book.txt", 6)
		_, err := e.load("book.txt", doc[:len(doc)-left])
		must(t, err)
		for i, want := range []struct {
			before, added int
			told          bool
		}{{len(doc) - left, left, true}, {0, 0, false}, {0, 0, false}} {
			l, err := e.kernel.BeginLoad(t.Context(), e.agent, "book.txt")
			must(t, err)
			must(t, l.Add(t.Context(), doc[:2]))
			event := memgpt.Event{ID: e.newID("event"), Agent: e.agent.ID, Thread: e.thread, Type: memgpt.EventDocument, Turn: e.newID("turn"),
				Due: e.now, Created: e.now, Message: memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "it is whole")}
			must(t, l.End(t.Context(), doc[2:], &event))
			if l.Before != want.before || l.Added != want.added || l.Told != want.told {
				t.Errorf("%d left, load %d: %+v, want %+v", left, i, l, want)
			}
		}
		events, err := e.base.Events(t.Context(), store.EventRange{Thread: e.thread})
		must(t, err)
		if len(events) != 1 {
			t.Errorf("%d left: told %d times", left, len(events))
		}
	}
}

// TestLoadTwice loads a document in part, whole and once more, in two spellings.
func TestLoadTwice(t *testing.T) {
	e := newEnv(t, script.Of(), options{})
	doc := pages("book.txt", 6)
	doc = append(doc, memgpt.Passage{Text: "PAGE  3 of book.txt", Source: "book.txt"}, memgpt.Passage{Text: " \n", Source: "book.txt"})
	for i, part := range [][]memgpt.Passage{doc[:2], doc, doc, nil} {
		added, err := e.load("book.txt", part)
		if want := []int{2, 4, 0, 0}[i]; err != nil || added != want {
			t.Errorf("load %d added %d, want %d: %v", i, added, want, err)
		}
	}
	list, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	must(t, err)
	for i, p := range list {
		if p.Text != doc[i].Text || p.Source != "book.txt" || p.Heading != "Book > One" || p.Position != int64(100*i) ||
			p.Cause.Origin != memgpt.OriginDocument || !p.Time.Equal(e.now) {
			t.Errorf("passage %d is %+v", i, p)
		}
	}
	if len(list) != 6 {
		t.Errorf("%d passages", len(list))
	}
}

// TestLoadsAtOnce has several load the same document at the same time.
func TestLoadsAtOnce(t *testing.T) {
	e := newEnv(t, script.Of(), options{})
	var mu sync.Mutex
	cfg := e.config
	cfg.NewID = func(kind string) string { // the environment's is for one at a time
		mu.Lock()
		defer mu.Unlock()
		return e.newID(kind)
	}
	k, err := kernel.New(cfg)
	must(t, err)
	var wg sync.WaitGroup
	added := make([]int, 4)
	for i := range added {
		wg.Go(func() {
			l, err := k.BeginLoad(t.Context(), e.agent, "book.txt")
			if err != nil {
				t.Error(err)
				return
			}
			for _, p := range pages("book.txt", 40) {
				if err := l.Add(t.Context(), []memgpt.Passage{p}); err != nil {
					t.Error(err)
				}
			}
			added[i] = l.Added
		})
	}
	wg.Wait()
	list, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	must(t, err)
	if sum := added[0] + added[1] + added[2] + added[3]; sum != 40 || len(list) != 40 {
		t.Errorf("%v were added, and %d passages are there", added, len(list))
	}
}

// TestReadAroundAPassage pages through a document from a hit on.
func TestReadAroundAPassage(t *testing.T) {
	var id string
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		switch n {
		case 0:
			return script.Call("archival_memory_search", "query", "page 3", "request_heartbeat", true)
		case 1:
			return script.Call("memory_read", "id", id, "around", 2, "request_heartbeat", true)
		}
		return script.Say("done")
	}})
	e := newEnv(t, m, options{})
	for _, doc := range [][]memgpt.Passage{pages("book.txt", 6), pages("other.txt", 2)} {
		_, err := e.load("book.txt", doc)
		must(t, err)
	}
	list, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	must(t, err)
	id = list[4].ID
	e.say("what stands on page 3?")
	var read string
	for _, entry := range e.log() {
		if res, ok := entry.Message.Result(); ok && res.Name == "memory_read" {
			read = res.Text
		}
	}
	for i, p := range list {
		if want := i >= 2 && i <= 5; strings.Contains(read, p.ID) != want {
			t.Errorf("passage %d (%s) shown: %v\n%s", i, p.Text, !want, read)
		}
	}
	if !strings.Contains(read, "Book > One") {
		t.Errorf("no heading: %s", read)
	}
}
