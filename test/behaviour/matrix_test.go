package behaviour

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/prompted"
	"memgpt/model/script"
	"memgpt/token"
)

// asked is the user's message of each case.
const asked = "Good evening, 你好."

// TestMatrix runs each behaviour over each protocol, in each way of calling functions, streamed and not.
func TestMatrix(t *testing.T) {
	h := newHome(t)
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			var reference []string
			for _, name := range []string{"direct", "openai"} {
				for _, way := range []prompted.Mode{prompted.Native, prompted.Prompted, prompted.Constrained} {
					for _, stream := range []bool{false, true} {
						log := runCase(t, h, &b, name, way, stream)
						if reference == nil {
							reference = log
						}
						if d := cmp.Diff(reference, log); d != "" {
							t.Errorf("%s, %s, stream %v: the log differs (-first +this):\n%s", name, way, stream, d)
						}
					}
				}
			}
		})
	}
	if len(protocols) != 2 {
		t.Error("a protocol is in the table and not run")
	}
}

// runCase runs one case and returns what the log tells.
func runCase(t *testing.T, h *home, b *behaviour, name string, way prompted.Mode, stream bool) []string {
	t.Helper()
	where := fmt.Sprintf("%s, %s, stream %v", name, way, stream)
	beneath, asks := protocols[name](t, replies(b, way))
	m, err := prompted.New(prompted.Config{Model: beneath, Mode: way})
	must(t, err)
	a := h.newAgent(t, m, b.protocol)
	var spoke []string
	if stream {
		a.emit = func(u memgpt.Update) {
			if s, ok := u.(memgpt.Spoke); ok {
				spoke = append(spoke, s.Text)
			}
		}
	}
	turn := a.say(asked)
	got := a.effects(&turn)
	if d := cmp.Diff(b.want, got); d != "" {
		t.Errorf("%s: effects (-want +got):\n%s", where, d)
	}
	if d := cmp.Diff(b.want.Said, spoke); stream && d != "" {
		t.Errorf("%s: said in updates (-want +got):\n%s", where, d)
	}
	for i, req := range asks.Requests() {
		if err := checkWire(req, way, asked); err != nil {
			t.Errorf("%s: request %d: %v", where, i, err)
		}
	}
	asks.Done(t)
	return story(a.log())
}

// replies renders the answers of a case for a way of calling.
func replies(b *behaviour, way prompted.Mode) []script.Reply {
	var list []script.Reply
	said := "thoughts"
	if b.protocol == memgpt.ProtocolNative {
		said = "text"
	}
	for _, answer := range b.answers {
		r := answer.native
		text := ""
		switch way {
		case prompted.Prompted:
			if text = answer.prompted; text == "" {
				text = asText(&r)
			}
		case prompted.Constrained:
			if text = answer.constrained; text == "" {
				text = asObject(&r, said)
			}
		}
		if way != prompted.Native {
			r = script.Reply{Parts: memgpt.Parts{memgpt.Text{Text: text}}, Finish: r.Finish}
		}
		list = append(list, r)
	}
	return list
}

// counted is a model that compares what the kernel counts with what leaves.
type counted struct {
	memgpt.Model
	t     *testing.T
	count *token.Counter
	sent  func() *memgpt.Request // the newest request that left
	most  float64                // of what left to what was counted
}

func (c *counted) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	before := sizeOf(req, c.count)
	resp, err := c.Model.Generate(ctx, req, stream)
	c.most = max(c.most, float64(sizeOf(c.sent(), c.count))/float64(before))
	return resp, err
}

func sizeOf(req *memgpt.Request, count *token.Counter) int {
	total := count.Tools(req.Tools)
	for i := range req.Messages {
		total += count.Message(&req.Messages[i])
	}
	return total
}

// TestCountHolds has a long conversation with many small calls, in which each call and result costs a little more as text
// than natively: by the kernel's count no request leaves that is larger than was counted. The provider counts a fifth less
// than we do, as those with large vocabularies do, which must not pass for a prompt that it has cut.
func TestCountHolds(t *testing.T) {
	count, err := token.New(token.Config{})
	must(t, err)
	for _, way := range []prompted.Mode{prompted.Prompted, prompted.Constrained} {
		inner := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
			usage := memgpt.Usage{Input: sizeOf(req, count) * 8 / 10}
			r := script.Calls(script.Text("Hm."), remember(fmt.Sprint(n)), script.Say("ok"))
			if way == prompted.Constrained {
				return script.Text(asObject(&r, "thoughts")).Using(usage)
			}
			return script.Text(asText(&r)).Using(usage)
		}})
		m, err := prompted.New(prompted.Config{Model: inner, Mode: way})
		must(t, err)
		c := &counted{Model: m, t: t, count: count, sent: inner.Last}
		a := newHome(t).newAgent(t, c, "")
		for i := range 60 {
			if turn := a.say(strings.Repeat("x ", i%7)); len(turn.Flags) > 0 {
				t.Fatalf("%s, turn %d: %q", way, i, turn.Flags)
			}
		}
		t.Logf("%s: at most %.2f of what was counted", way, c.most)
		if c.most > 1 {
			t.Errorf("%s: a request has %.2f of the tokens that were counted", way, c.most)
		}
	}
}
