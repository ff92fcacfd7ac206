package behaviour

import (
	"context"
	"encoding/json"
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

// place is where a case runs.
type place struct {
	protocol *protocol
	way      prompted.Mode
	stream   bool
}

func (p place) String() string {
	return fmt.Sprintf("%s, %s, stream %v", p.protocol.name, p.way, p.stream)
}

// places are all of them: each protocol in each way of calling functions, streamed and in one piece.
func places() (list []place) {
	for i := range protocols {
		for _, way := range []prompted.Mode{prompted.Native, prompted.Prompted, prompted.Constrained} {
			for _, stream := range []bool{true, false} {
				list = append(list, place{&protocols[i], way, stream})
			}
		}
	}
	return list
}

// lacks tells why a case can't be in a place; "" is that it can.
func (p place) lacks(b *behaviour) string {
	switch {
	case p.way == prompted.Constrained && p.protocol.noConstrained != "":
		return p.protocol.noConstrained
	case p.way != prompted.Native: // calls are text, which every protocol carries
		return ""
	case b.broken() && p.stream:
		return p.protocol.noBroken
	case b.broken():
		return p.protocol.noBrokenWhole
	case b.noIDs():
		return p.protocol.noEmptyID
	}
	return ""
}

// TestMatrix runs each behaviour in each place in which it can be: the same effects in the store, the same words to the
// user, the same story in the log. What can't be in a place is counted by its reason, and every reason has to occur.
func TestMatrix(t *testing.T) {
	t.Parallel()
	h := newHome(t, 32768)
	all := places()
	if want := len(protocols) * 3 * 2; len(all) != want {
		t.Fatalf("%d places, want %d: a protocol is in the table and not run", len(all), want)
	}
	ran, left := map[string]int{}, map[string]int{}
	t.Run("cases", func(t *testing.T) {
		for i := range behaviours {
			b := &behaviours[i]
			var places []place
			for n, p := range all {
				if underRaceDetector && (n+i)%2 == 1 { // half of them do: what a case does at once doesn't hang on its place
					continue
				}
				if why := p.lacks(b); why != "" {
					left[p.protocol.name+": "+why]++
					continue
				}
				ran[p.protocol.name]++
				places = append(places, p)
			}
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				runBehaviour(t, h, b, places)
			})
		}
	})
	for why, n := range left {
		t.Logf("%d cases are left out: %s", n, why)
	}
	for i := range protocols {
		p := &protocols[i]
		for _, why := range []string{p.noConstrained, p.noBroken, p.noBrokenWhole, p.noEmptyID} {
			if why != "" && left[p.name+": "+why] == 0 {
				t.Errorf("%s: nothing is left out because %s", p.name, why)
			}
		}
		t.Logf("%d cases over %s", ran[p.name], p.name)
	}
}

// runBehaviour runs a behaviour in some places and compares what the logs tell.
func runBehaviour(t *testing.T, h *home, b *behaviour, places []place) {
	var reference []string
	for _, p := range places {
		log := runCase(t, h, b, p)
		if reference == nil {
			reference = log
		}
		if d := cmp.Diff(reference, log); d != "" {
			t.Errorf("%s: the log differs (-first +this):\n%s", p, d)
		}
	}
}

// runCase runs one case and returns what the log tells.
func runCase(t *testing.T, h *home, b *behaviour, p place) []string {
	t.Helper()
	cfg := script.ServerConfig{Config: script.Config{Replies: replies(b, p.way)}, Count: func(body []byte) int { return len(body) / 4 }}
	cfg.Piece = max(16, longest(cfg.Replies)/64) // many pieces, and not thousands
	if b.noIDs() && p.way == prompted.Native {
		cfg.NewID = func(int) string { return "" }
	}
	beneath, asks := p.protocol.open(t, cfg, !p.stream)
	m, err := prompted.New(prompted.Config{Model: beneath, Mode: p.way})
	must(t, err)
	a := h.newAgent(t, m, b.protocol)
	var spoke []string
	var streamed strings.Builder
	a.emit = func(u memgpt.Update) {
		switch u := u.(type) {
		case memgpt.Spoke:
			spoke = append(spoke, u.Text)
		case memgpt.Streamed:
			streamed.WriteString(u.Delta.Text)
			if u.Delta.Call != nil {
				streamed.WriteString(u.Delta.Call.Arguments)
			}
		}
	}
	turn := a.say(asked)
	log := a.log()
	got := a.effects(&turn, log)
	if d := cmp.Diff(b.want, got); d != "" {
		t.Errorf("%s: effects (-want +got):\n%s", p, d)
	}
	if d := cmp.Diff(b.want.Said, spoke); d != "" {
		t.Errorf("%s: said in updates (-want +got):\n%s", p, d)
	}
	for _, text := range got.Said {
		if quoted, _ := json.Marshal(text); !strings.Contains(streamed.String(), text) && !strings.Contains(streamed.String(), strings.Trim(string(quoted), `"`)) {
			t.Errorf("%s: %.80q did not come in pieces: %.200q", p, text, streamed.String())
		}
	}
	for i, req := range asks.Requests() {
		if err := checkWire(req, p.way, asked); err != nil {
			t.Errorf("%s: request %d: %v", p, i, err)
		}
	}
	asks.Done(t)
	return story(log)
}

// longest returns the length of the longest part of some replies.
func longest(list []script.Reply) (n int) {
	for _, r := range list {
		for _, p := range r.Parts {
			switch p := p.(type) {
			case memgpt.Text:
				n = max(n, len(p.Text))
			case memgpt.Call:
				n = max(n, len(p.Arguments))
			}
		}
	}
	return n
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
	t.Parallel()
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
		a := newHome(t, 32768).newAgent(t, c, "")
		turns := 60
		if underRaceDetector {
			turns = 20
		}
		for i := range turns {
			if turn := a.say(strings.Repeat("x ", i%7)); len(flagsOf(&turn)) > 0 {
				t.Fatalf("%s, turn %d: %q", way, i, turn.Flags)
			}
		}
		t.Logf("%s: at most %.2f of what was counted", way, c.most)
		if c.most > 1 {
			t.Errorf("%s: a request has %.2f of the tokens that were counted", way, c.most)
		}
	}
}
