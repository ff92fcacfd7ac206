package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"memgpt"
	"memgpt/model/offline"
)

// overheard keeps the requests that a model is asked, as text.
type overheard struct {
	memgpt.Model
	mu    sync.Mutex
	texts []string
}

func (o *overheard) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	text, err := json.Marshal(req.Messages)
	if err != nil {
		return nil, err
	}
	if req.Purpose == memgpt.PurposeStep {
		o.mu.Lock()
		o.texts = append(o.texts, string(text))
		o.mu.Unlock()
	}
	return o.Model.Generate(ctx, req, stream)
}

func forgetful(t *testing.T) memgpt.Model {
	t.Helper()
	m, err := offline.New(offline.Config{ForgetSearch: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestContrastBacksEachPoint holds each row to what it is said to show.
func TestContrastBacksEachPoint(t *testing.T) {
	rep, err := Contrast(t.Context(), ContrastConfig{Config: Config{Open: newOpener(t).make, Model: standIn(t), Limit: 2}, Forgetful: forgetful(t)})
	if err != nil {
		t.Fatal(err)
	}
	points := map[string]bool{}
	for _, r := range rep.Rows {
		points[r.Point] = true
		if r.N == 0 || r.RAG.Searches != 1 || r.MemGPT.Tokens == 0 || r.RAG.Tokens == 0 {
			t.Errorf("%s, %s: %+v", r.Point, r.Run, r)
		}
		want := map[string]string{PointWhat: "equal", PointWrite: "memgpt", PointWho: "rag", PointMiss: "memgpt"}[r.Point]
		switch {
		case strings.Contains(r.Run, "small talk"):
			want = "equal"
			if r.MemGPT.Searches != 0 {
				t.Errorf("the agent searches for small talk: %+v", r)
			}
		case strings.Contains(r.Run, "mid-turn"):
			want = "memgpt"
			if r.MemGPT.Right != 100 || r.RAG.Right > 50 { // the next pair may be a weak hit, by luck
				t.Errorf("%s: %+v", r.Run, r)
			}
		case strings.Contains(r.Run, "all turns"):
			want = "equal"
			if r.MemGPT.Prefix <= r.RAG.Prefix {
				t.Errorf("a cache would serve the agent less: %+v", r)
			}
		case r.Point == PointEvict:
			want = "memgpt"
		}
		if r.Found != want {
			t.Errorf("%s, %s: %s, want %s; %+v", r.Point, r.Run, r.Found, want, r)
		}
	}
	if len(points) != 6 {
		t.Errorf("the points are %v", points)
	}
	var text, line bytes.Buffer
	if err := rep.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := rep.WriteJSON(&line); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "100 / 0") || !strings.Contains(text.String(), PointMiss) || strings.Count(line.String(), "\n") != 1 {
		t.Errorf("got %s\n%s", text.String(), line.String())
	}
}

// TestTheFactOfTheLongTalkHadLeft shows that what the agent finds again was out of its context when it was asked.
func TestTheFactOfTheLongTalkHadLeft(t *testing.T) {
	fact, ask, answer, chatter := longTalk(DefaultWindow)
	turns := []spoken{said(fact)}
	for _, text := range chatter {
		turns = append(turns, said(text))
	}
	last := asks(ask, answer)
	last.main = true
	m := &overheard{Model: standIn(t)}
	cfg := Config{Open: newOpener(t).make, Model: m}
	if err := cfg.settle(); err != nil {
		t.Fatal(err)
	}
	records, err := converse(t.Context(), cfg, talkCase("x"), append(turns, last))
	if err != nil {
		t.Fatal(err)
	}
	if end := records[len(records)-1]; !end.holds() || end.Searches == 0 {
		t.Errorf("got %+v", end)
	}
	first := -1
	for i, text := range m.texts {
		if strings.Contains(text, ask) && first < 0 {
			first = i
		}
	}
	if first < 0 || strings.Contains(m.texts[first], "behind the blue barometer") || !strings.Contains(m.texts[len(m.texts)-1], "behind the blue barometer") {
		t.Error("the fact stood in context when it was asked for, or never came back")
	}
}

// TestMissesMiss shows that the one search really brings other texts, and that the answer is among none of them.
func TestMissesMiss(t *testing.T) {
	rep := run(t, Config{Model: standIn(t), Mode: ModeRAG}, missSuite())
	for _, r := range rep.Records {
		if r.Evidence[0].Found || r.Lost != LostNotFound {
			t.Errorf("%+v", r)
		}
	}
	if rep := run(t, Config{Model: standIn(t), Mode: ModeOracle}, missSuite()); *rep.Contains != 100 {
		t.Errorf("the facts don't answer the questions: %+v", rep)
	}
	if rep := run(t, Config{Model: standIn(t)}, missSuite()); rep.Evidence != 100 || rep.Searches < 2 {
		t.Errorf("the agent doesn't find them: %+v", rep)
	}
}

func TestContrastNeedsAModel(t *testing.T) {
	if _, err := Contrast(t.Context(), ContrastConfig{}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("got %v", err)
	}
}
