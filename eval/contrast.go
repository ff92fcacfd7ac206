package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"memgpt"
)

// ContrastConfig says how the table is made that holds an agent that pages its memory against one search a turn.
type ContrastConfig struct {
	// Config is that of all runs; Mode, Ks, Judge and WrongGold are the contrast's own. Limit is how many questions are asked
	// at each level of the chains; 0 is 10.
	Config
	// Forgetful is a model that never searches by itself; nil leaves its row out.
	Forgetful memgpt.Model
}

// ContrastSide is what one of the two did, a question or turn.
type ContrastSide struct {
	Right    float64 `json:"right"` // per cent
	Searches float64 `json:"searches"`
	Tokens   float64 `json:"tokens"` // of all requests
	Prefix   float64 `json:"prefix"` // per cent of those tokens that a prompt cache could serve
}

// ContrastRow is one row: a point in which the two are said to differ, what was run, and who did better.
type ContrastRow struct {
	Point  string       `json:"point"`
	Run    string       `json:"run"`
	N      int          `json:"n"`
	MemGPT ContrastSide `json:"memgpt"`
	RAG    ContrastSide `json:"rag"`
	Found  string       `json:"found"` // by the shares of right answers: who is better, or that they are equal
}

// ContrastReport is the table.
type ContrastReport struct {
	Model  string        `json:"model"`
	Window int           `json:"window"`
	Seed   uint64        `json:"seed"`
	K      int           `json:"k"` // hits of the one search
	Rows   []ContrastRow `json:"rows"`
}

// The points in which an agent that pages its memory is said to differ from one search a turn.
const (
	PointWhen  = "when it searches"
	PointWhat  = "what it searches for"
	PointWrite = "writing"
	PointEvict = "eviction"
	PointWho   = "who decides"
	PointMiss  = "what a miss costs"
)

// Contrast runs both sides on made-up material, in the same window and with the same model, and returns the table.
func Contrast(ctx context.Context, cfg ContrastConfig) (*ContrastReport, error) {
	if cfg.Open == nil || cfg.Model == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "contrast: it needs a store and a model")
	}
	cfg.Judge, cfg.WrongGold, cfg.Ks, cfg.Mode, cfg.Progress = nil, nil, nil, ModeMemGPT, nil
	if cfg.Limit <= 0 {
		cfg.Limit = 10
	}
	if err := cfg.settle(); err != nil {
		return nil, fmt.Errorf("contrast: %w", err)
	}
	t := &contrast{ctx: ctx, cfg: cfg}
	rep := &ContrastReport{Model: cfg.Model.Capabilities().Name, Window: cfg.Window, Seed: cfg.Seed, K: DefaultK}
	for _, make := range []func() ([]ContrastRow, error){t.small, t.chains, t.written, t.evicted, t.decided, t.missed} {
		rows, err := make()
		if err != nil {
			return nil, fmt.Errorf("contrast: %w", err)
		}
		rep.Rows = append(rep.Rows, rows...)
	}
	return rep, nil
}

// contrast makes the rows.
type contrast struct {
	ctx context.Context
	cfg ContrastConfig
}

// newContrastRow compares two sides.
func newContrastRow(point, run string, n int, agent, rag ContrastSide) ContrastRow {
	r := ContrastRow{Point: point, Run: run, N: n, MemGPT: agent, RAG: rag, Found: "equal"}
	switch {
	case agent.Right > rag.Right:
		r.Found = string(ModeMemGPT)
	case agent.Right < rag.Right:
		r.Found = string(ModeRAG)
	}
	return r
}

// side adds up records; right says which are.
func side(records []Record, right func(*Record) bool) (s ContrastSide) {
	var rights, searches, tokens mean
	prefix := 0.0
	for i := range records {
		r := &records[i]
		rights.count(right(r))
		searches.add(float64(r.Searches))
		tokens.add(float64(r.Input))
		prefix += float64(r.Prefix)
	}
	s = ContrastSide{Right: rights.percent(), Searches: searches.value(), Tokens: math.Round(tokens.value())}
	if tokens.sum > 0 {
		s.Prefix = round(100*prefix/tokens.sum, 1)
	}
	return s
}

func (r *Record) holds() bool { return r.Verdicts.Contains != nil && *r.Verdicts.Contains }

// chains are the rows of what is searched for, and of a need that only shows in mid-turn.
func (t *contrast) chains() ([]ContrastRow, error) {
	const deepest = 3 // hops, as in the paper's figure 7
	s, err := madeChains(t.cfg.Seed, t.cfg.Limit, 0, deepest)
	if err != nil {
		return nil, err
	}
	agent, rag, err := t.both(s, t.cfg.Model)
	if err != nil {
		return nil, err
	}
	var rows []ContrastRow
	for level := range deepest + 1 {
		name := strconv.Itoa(level)
		a := groups(agent, func(r *Record) string { return r.Group })[name]
		b := groups(rag, func(r *Record) string { return r.Group })[name]
		point, run := PointWhen, "a need that arises in mid-turn: a chain of keys with "+name+" hops"
		if level == 0 {
			point, run = PointWhat, "the value of a key that the user names"
		}
		rows = append(rows, newContrastRow(point, run, len(a), side(a, (*Record).right), side(b, (*Record).right)))
	}
	return rows, nil
}

// both asks the questions of a suite of both sides.
func (t *contrast) both(s *Suite, m memgpt.Model) (agent, rag []Record, err error) {
	cfg := t.cfg.Config
	cfg.Model, cfg.Limit = m, 0
	one, err := Run(t.ctx, cfg, s)
	if err != nil {
		return nil, nil, err
	}
	cfg.Mode = ModeRAG
	two, err := Run(t.ctx, cfg, s)
	if err != nil {
		return nil, nil, err
	}
	return one.Records, two.Records, nil
}

// missed is the row of a first search that brings only what doesn't answer.
func (t *contrast) missed() ([]ContrastRow, error) {
	agent, rag, err := t.both(missSuite(), t.cfg.Model)
	if err != nil {
		return nil, err
	}
	return []ContrastRow{newContrastRow(PointMiss, "the first hits don't have the answer, which is told in another word", len(agent),
		side(agent, (*Record).holds), side(rag, (*Record).holds))}, nil
}

// decided is the row of a model that doesn't search by itself, where the system does it better.
func (t *contrast) decided() ([]ContrastRow, error) {
	if t.cfg.Forgetful == nil {
		return nil, nil
	}
	s, err := madeChains(t.cfg.Seed, t.cfg.Limit, 0, 0)
	if err != nil {
		return nil, err
	}
	agent, rag, err := t.both(s, t.cfg.Forgetful)
	if err != nil {
		return nil, err
	}
	return []ContrastRow{newContrastRow(PointWho, "the same key, by a model that forgets to search", len(agent), side(agent, (*Record).right), side(rag, (*Record).right))}, nil
}

// spoken is a user's message in a conversation.
type spoken struct {
	main bool // in the first conversation, else in the second
	q    Question
}

// said is a message that expects no answer; asks is a question.
func said(text string) spoken { return spoken{main: true, q: Question{ID: "said " + text, Text: text}} }

func asks(text, answer string) spoken {
	return spoken{q: Question{ID: "ask " + text, Text: text, Answer: answer}}
}

// talk holds a conversation with each side, on a memory of its own, and returns the records of all turns.
func (t *contrast) talk(name string, turns []spoken) (agent, rag []Record, err error) {
	for _, mode := range []Mode{ModeMemGPT, ModeRAG} {
		cfg := t.cfg.Config
		cfg.Mode = mode
		records, err := converse(t.ctx, cfg, talkCase(name), turns)
		if err != nil {
			return nil, nil, err
		}
		if mode == ModeMemGPT {
			agent = records
		} else {
			rag = records
		}
	}
	return agent, rag, nil
}

// converse holds a conversation of several turns. Each request's prefix is compared with the request before, also that of an
// earlier turn.
func converse(ctx context.Context, cfg Config, c *Case, turns []spoken) (records []Record, err error) {
	r, err := newRunner(cfg, &Suite{Name: "talk"})
	if err != nil {
		return nil, err
	}
	l, dispose, err := r.loaded(ctx, c)
	if err != nil {
		return nil, err
	}
	defer dispose(&err)
	side := newOverlay(l.store, l.agent.ID)
	var before []string
	for i := range turns {
		w := newWatch(&turns[i].q)
		w.count, w.before = r.counter, before
		if err := l.speak(ctx, side, &turns[i], i, w); err != nil {
			return nil, err
		}
		before = w.before
		records = append(records, l.record(&turns[i].q, w))
	}
	return records, nil
}

// speak runs the i-th turn of a conversation.
func (l *loader) speak(ctx context.Context, side *overlay, s *spoken, i int, w *watch) error {
	if l.r.cfg.Mode.baseline() {
		req, err := l.plainRequest(ctx, &s.q, l.r.cfg.Ks[0], w)
		if err != nil {
			return err
		}
		return w.answerPlain(ctx, l.r, req)
	}
	thread := l.asked.ID
	if s.main {
		thread = l.main
	}
	clock := &clock{at: l.c.Now.Add(time.Duration(i) * time.Minute)}
	return l.turn(ctx, side, thread, &s.q, w, clock, l.ids(clock, fmt.Sprintf("turn %d", i)))
}

// small is the row of messages that need no memory: all are answered rightly, at what cost?
func (t *contrast) small() ([]ContrastRow, error) {
	turns := make([]spoken, 0, len(smallTalk))
	for _, text := range smallTalk {
		turns = append(turns, said(text))
	}
	agent, rag, err := t.talk("small talk", turns)
	if err != nil {
		return nil, err
	}
	spoke := func(r *Record) bool { return r.Spoke }
	return []ContrastRow{newContrastRow(PointWhen, "small talk, which needs no memory (right: it was answered)", len(agent), side(agent, spoke), side(rag, spoke))}, nil
}

// written is the row of facts that the agent was told in one conversation and kept, asked for in the next.
func (t *contrast) written() ([]ContrastRow, error) {
	var agent, rag []Record
	for _, x := range toldFacts {
		a, b, err := t.talk("told "+x.answer, []spoken{said(x.state), asks(x.ask, x.answer)})
		if err != nil {
			return nil, err
		}
		agent, rag = append(agent, a[1]), append(rag, b[1])
	}
	return []ContrastRow{newContrastRow(PointWrite, "a fact that the user states in one conversation and asks for in the next", len(agent),
		side(agent, (*Record).holds), side(rag, (*Record).holds))}, nil
}

// evicted is the row of a conversation that is longer than the window. Its second line is the cost of the whole talk.
func (t *contrast) evicted() ([]ContrastRow, error) {
	fact, ask, answer, chatter := longTalk(t.cfg.Window)
	turns := []spoken{said(fact)}
	for _, text := range chatter {
		turns = append(turns, said(text))
	}
	last := asks(ask, answer)
	last.main = true
	agent, rag, err := t.talk("long talk", append(turns, last))
	if err != nil {
		return nil, err
	}
	n := len(agent)
	spoke := func(r *Record) bool { return r.Spoke }
	return []ContrastRow{
		newContrastRow(PointEvict, "what was said at the beginning of a conversation of twice the window", 1, side(agent[n-1:], (*Record).holds), side(rag[n-1:], (*Record).holds)),
		newContrastRow(PointEvict, "all turns of that conversation (right: it was answered)", n, side(agent, spoke), side(rag, spoke)),
	}, nil
}

// WriteJSON writes the table as one JSON object on one line.
func (r *ContrastReport) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteText writes the table for a person.
func (r *ContrastReport) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s at %d tokens: memgpt pages its memory, rag searches once a turn with the user's words (%d hits).\n"+
		"Right in per cent; searches and tokens a question or turn; cached is the share of the tokens that repeat the head of the request before.\n\n",
		r.Model, r.Window, r.K); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row(t, "point", "run", "n", "right", "searches", "tokens", "cached", "better")
	for _, x := range r.Rows {
		cell := func(of func(ContrastSide) float64) string { return fmt.Sprintf("%g / %g", of(x.MemGPT), of(x.RAG)) }
		row(t, x.Point, x.Run, strconv.Itoa(x.N), cell(func(s ContrastSide) float64 { return s.Right }), cell(func(s ContrastSide) float64 { return s.Searches }),
			cell(func(s ContrastSide) float64 { return s.Tokens }), cell(func(s ContrastSide) float64 { return s.Prefix }), strings.ToLower(x.Found))
	}
	return t.Flush()
}
