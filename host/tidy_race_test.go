package host_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/model/script"
	"memgpt/store"
)

// sharedEdits plays users' turns and tidying that all write tokens into one block: by appending, or by rewriting all that they
// see of it, which loses what they don't see unless somebody takes care.
type sharedEdits struct {
	mu  sync.Mutex
	rng *rand.Rand
	n   int
}

func (s *sharedEdits) think(a memgpt.Agent, req *memgpt.Request) script.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Purpose == memgpt.PurposeSummary {
		return script.Text("folded\nSearch for: x")
	}
	pause := time.Duration(s.rng.IntN(2000)) * time.Millisecond
	if strings.Contains(lastSaid(req), `"status":"OK"`) {
		if a.Model == "tidier" {
			return script.Call("yield").After(pause)
		}
		return script.Say("done").After(pause)
	}
	s.n++
	more := []any{"reason", "x"}
	if a.Model != "tidier" {
		more = []any{"request_heartbeat", true}
	}
	args := func(args ...any) []any { return append(append([]any{"label", "board"}, args...), more...) }
	token := fmt.Sprintf("t%d;", s.n)
	if s.rng.IntN(2) == 0 {
		return script.Call("core_memory_append", args("content", token)...).After(pause)
	}
	_, rest, _ := strings.Cut(req.Messages[0].Said(), `<block label="board"`)
	_, rest, _ = strings.Cut(rest, ">\n")
	value, _, _ := strings.Cut(rest, "</block>")
	return script.Call("memory_rethink", args("new_memory", strings.Join(append(strings.Fields(value), token), "\n"))...).After(pause)
}

// TestNoEditOfASharedBlockIsLost: users of two agents in two conversations each, and the tidying of both, write to one block at
// once, in two processes of which some die. Each edit that was accepted is in the block in the end, and versions have no gaps.
func TestNoEditOfASharedBlockIsLost(t *testing.T) {
	rounds := 6
	if os.Getenv("MEMGPT_LONG") != "" {
		rounds = 100
	}
	tidied := 0
	for seed := range rounds {
		edits := &sharedEdits{rng: rand.New(rand.NewPCG(uint64(seed), 3))}
		mailTest(t, edits.think, func(t *testing.T, w *mailWorld) {
			tidy := memgpt.Tidy{On: true, Turns: 1 + seed%2, Idle: time.Minute, Model: "tidier"}
			board := memgpt.Block{Label: "board", Limit: 100_000}
			var threads []memgpt.Thread
			for _, name := range []string{"Ada", "Bo"} {
				a := w.agent(name, memgpt.Agent{Tidy: tidy})
				if name == "Ada" {
					board.ID = w.newID("block")
					_, err := w.inner.Commit(t.Context(), &store.Commit{Now: time.Now(), Blocks: []memgpt.Block{board}})
					mailMust(t, err)
				}
				a.Blocks = append(a.Blocks, board.ID)
				_, err := w.inner.Commit(t.Context(), &store.Commit{Now: time.Now(), Agents: []memgpt.Agent{a}})
				mailMust(t, err)
				other, err := w.host.Thread(t.Context(), a, "other")
				mailMust(t, err)
				threads = append(threads, w.mains[name], other)
			}
			w.race(threads, edits.rng, seed)
			tidied += w.checkBoard(board.ID, edits.n)
		})
	}
	if tidied < 2*rounds {
		t.Errorf("%d edits of %d rounds were tidying's", tidied, rounds)
	}
}

// race lets users write in all conversations over two processes, one of which dies, and waits until nothing is left.
func (w *mailWorld) race(threads []memgpt.Thread, rng *rand.Rand, seed int) {
	ctx := w.t.Context()
	first := w.host
	w.start(int64(20 + 7*seed))
	second := w.host
	var work sync.WaitGroup
	for i, th := range threads {
		h, pause := first, time.Duration(1+rng.IntN(4000))*time.Millisecond
		if i%2 == seed%2 {
			h = second
		}
		work.Go(func() {
			for range 6 {
				turn, err := h.Send(ctx, host.Message{Agent: th.Agent, Thread: th.ID, Key: fmt.Sprint(time.Now().UnixNano()),
					Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "go on")})
				if err == nil && i%4 != 0 {
					_, _ = turn.Wait(ctx)
				}
				time.Sleep(pause)
			}
		})
	}
	time.Sleep(2 * time.Minute)
	mailMust(w.t, second.Close(ctx))
	work.Wait()
	w.host = first
	for deadline := time.Now().Add(6 * time.Hour); w.pending() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Minute)
	}
	synctest.Wait()
	if n := w.pending(); n > 0 {
		w.t.Errorf("%d events are left", n)
	}
}

// checkBoard holds that all accepted edits are in the block, once, and returns how many tidying made.
func (w *mailWorld) checkBoard(id string, tokens int) (tidied int) {
	ctx := w.t.Context()
	accepted := map[string]bool{}
	for name, a := range w.agents {
		args := map[string]string{}
		for _, e := range w.log(name) {
			for _, c := range e.Message.Calls() {
				args[e.Turn+c.ID] = c.Arguments
			}
			if res, ok := e.Message.Result(); !ok || res.Failed {
				continue
			} else if call := args[e.Turn+res.CallID]; strings.Contains(call, `"board"`) {
				for n := range tokens {
					if token := fmt.Sprintf("t%d;", n+1); strings.Contains(call, token+`"`) {
						accepted[token] = true
						if e.Thread == store.TidyThreadID(a.ID) {
							tidied++
						}
					}
				}
			}
		}
	}
	blocks, err := w.inner.Blocks(ctx, "", []string{id})
	mailMust(w.t, err)
	history, err := w.inner.BlockHistory(ctx, "", id)
	mailMust(w.t, err)
	for i, e := range history {
		if e.Version != int64(i)+2 { // the first was written without a history
			w.t.Errorf("edit %d has version %d", i, e.Version)
		}
	}
	for token := range accepted {
		if n := strings.Count("\n"+blocks[0].Value, "\n"+token); n != 1 {
			w.t.Errorf("%s was accepted and is in the block %d times: %q", token, n, blocks[0].Value)
		}
	}
	if len(accepted) != len(history) || len(strings.Fields(blocks[0].Value)) != len(accepted) {
		w.t.Errorf("%d edits were accepted, the history has %d, the block %d", len(accepted), len(history), len(strings.Fields(blocks[0].Value)))
	}
	return tidied
}
