package kernel_test

import (
	"context"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
)

// rival is a store on which somebody else edits a shared block just before the first commit that edits it too.
type rival struct {
	store.Store
	edited bool
}

func (s *rival) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	if len(c.Blocks) > 0 && !s.edited {
		s.edited = true
		b := c.Blocks[0]
		b.Value = "theirs"
		if _, err := s.Store.Commit(ctx, &store.Commit{Now: c.Now, Blocks: []memgpt.Block{b}}); err != nil {
			return store.Committed{}, err
		}
	}
	return s.Store.Commit(ctx, c)
}

// TestConflictRunsTheStepAgainWhole: a step that evicts and edits is refused once, and then does both, on what is there.
func TestConflictRunsTheStepAgainWhole(t *testing.T) {
	m := script.Of(script.Say("one"), script.Say("two"))
	o := options{}
	e := newEnv(t, m, o)
	e.say("first")
	e.say("second")
	through := e.log()[2].ID
	m.Add(script.Calls(script.Call("conversation_evict", "through", through, "summary", "We greeted.\nSearch for: x"),
		script.Call("core_memory_append", "label", "human", "content", "ours"), script.Say("done")))
	e.store = &rival{Store: e.base}
	e.configure(m, o)
	said, turn := e.say("third")
	if len(said) != 1 || turn.Steps != 1 {
		t.Errorf("said %q, %+v", said, turn)
	}
	if got := e.block("human"); got != "theirs\nours" {
		t.Errorf("the block holds %q: an edit was lost", got)
	}
	th := e.state.Thread
	if th.Head != 3 || th.Folded != 3 || !strings.HasPrefix(th.Summary.Text, "We greeted.") {
		t.Errorf("the eviction was not done once, with its summary: %+v", th)
	}
	for _, entry := range e.log() {
		if res, ok := entry.Message.Result(); ok && res.Failed {
			t.Errorf("%s failed: %s", res.Name, res.Text)
		}
	}
}
