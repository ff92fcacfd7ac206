package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"memgpt"
	"memgpt/store"
)

// coded is what a commit's rows become on disk. It is made by the committing goroutine, so that the one writer has the
// less to do.
type coded struct {
	agents, threads, blocks, edits []string
	passages, events, turns        []string
	sayings                        []string
	entries                        []codedEntry
	docs                           []codedDoc
	vectors                        [][]codedVectors // by list
}

type codedEntry struct {
	id, turn []byte
	message  string
}

type codedDoc struct {
	id, terms  []byte
	kind, role int64
	time       any // seconds
}

func (s *Store) code(c *store.Commit) (*coded, error) {
	x := &coded{}
	for _, f := range []func(*store.Commit, *coded) error{s.codeConfig, s.codeLog, s.codeDocs, s.codeVectors, s.codeSayings} {
		if err := f(c, x); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// codeAll encodes a list of rows.
func codeAll[T any](es *encoders, out *[]string, list []T, what string, row func(*T) (any, string)) error {
	for i := range list {
		v, id := row(&list[i])
		if id == "" {
			return memgpt.Errorf(memgpt.CodeInvalid, "store %s: it has no id", what)
		}
		text, err := es.json(v, what, id)
		if err != nil {
			return err
		}
		*out = append(*out, text)
	}
	return nil
}

func (s *Store) codeConfig(c *store.Commit, x *coded) error {
	err := codeAll(s.enc, &x.agents, c.Agents, "agent", func(a *memgpt.Agent) (any, string) { return (*agentRow)(a), a.ID })
	if err != nil {
		return err
	}
	err = codeAll(s.enc, &x.threads, c.Threads, "conversation", func(t *memgpt.Thread) (any, string) { return (*threadRow)(t), t.ID })
	if err != nil {
		return err
	}
	err = codeAll(s.enc, &x.blocks, c.Blocks, "block", func(b *memgpt.Block) (any, string) { return (*blockRow)(b), b.ID })
	if err != nil {
		return err
	}
	return codeAll(s.enc, &x.edits, c.Edits, "edit of a block", func(e *store.BlockEdit) (any, string) { return (*editRow)(e), e.Block })
}

func (s *Store) codeLog(c *store.Commit, x *coded) error {
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.ID == "" || e.Seq < 1 || e.Seq > maxPos {
			return memgpt.Errorf(memgpt.CodeInvalid, "store entry %q: it needs an id, and a position from 1 to %d, not %d", e.ID, int64(maxPos), e.Seq)
		}
		text, err := s.enc.message(&e.Message, "entry", e.ID)
		if err != nil {
			return err
		}
		x.entries = append(x.entries, codedEntry{packID(e.ID), packID(e.Turn), text})
	}
	for i := range c.Events {
		if c.Events[i].ID == "" {
			return memgpt.Errorf(memgpt.CodeInvalid, "store event: it has no id")
		}
		text, err := s.enc.event(&c.Events[i])
		if err != nil {
			return err
		}
		x.events = append(x.events, text)
	}
	return codeAll(s.enc, &x.turns, c.Turns, "turn", func(t *memgpt.Turn) (any, string) { return (*turnRow)(t), t.ID })
}

func (s *Store) codeDocs(c *store.Commit, x *coded) error {
	err := codeAll(s.enc, &x.passages, c.Passages, "passage", func(p *memgpt.Passage) (any, string) { return (*passageRow)(p), p.ID })
	if err != nil {
		return err
	}
	for i := range c.Docs {
		d := &c.Docs[i]
		kind, err := codeOf(store.MetaKinds, d.Kind, "kind")
		if err != nil {
			return err
		}
		role, err := codeOf(store.MetaRoles, d.Role, "role")
		if err != nil {
			return err
		}
		if d.ID == "" || d.Length < 0 || d.Length > maxPos {
			return memgpt.Errorf(memgpt.CodeInvalid, "index text %q: it needs an id and a length, not %d", d.ID, d.Length)
		}
		doc := codedDoc{id: packID(d.ID), terms: packTerms(d.Terms), kind: kind, role: role}
		if !d.Time.IsZero() {
			doc.time = d.Time.Unix()
		}
		x.docs = append(x.docs, doc)
	}
	return nil
}

// sameSummary compares summaries; texts that are one string in memory cost nothing.
func sameSummary(a, b *memgpt.Summary) bool {
	x, y := &a.Outside, &b.Outside
	return a.Text == b.Text && a.Covers == b.Covers && a.Time.Equal(b.Time) && a.Failed == b.Failed && x.Hidden == y.Hidden &&
		x.First.Equal(y.First) && x.Last.Equal(y.Last) && x.Elsewhere == y.Elsewhere && x.Passages == y.Passages &&
		slices.Equal(x.Sources, y.Sources)
}

// hashSummary tells one summary, as it is stored, from another.
func hashSummary(data string) int64 {
	h := sha256.Sum256([]byte(data))
	return int64(binary.LittleEndian.Uint64(h[:]) | 1)
}
