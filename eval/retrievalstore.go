package eval

import (
	"context"
	"slices"

	"memgpt"
	"memgpt/kernel"
	"memgpt/retrieve"
	"memgpt/store"
)

// poolOwner and poolThread are the ids of the agent and the conversation that hold a pool.
const (
	poolOwner  = "agent-pool"
	poolThread = "conv-pool"
)

// poolBatch is how many texts one commit stores.
const poolBatch = 1000

// storeMessages stores a pool as an import does (kernel.Import), only without the work of a conversation around it: no
// lease, no summary, no tokens counted.
func (p *pool) storeMessages(ctx context.Context, s store.Store, analyzer *retrieve.Analyzer) error {
	now := afterLast(p.lines)
	th := memgpt.Thread{ID: poolThread, Agent: poolOwner, Name: mainThread, Next: int64(len(p.lines)) + 1, Created: now}
	first := &store.Commit{Now: now, Agents: []memgpt.Agent{{ID: poolOwner, Name: "eval", Created: now}}, Threads: []memgpt.Thread{th}}
	if _, err := s.Commit(ctx, first); err != nil {
		return err
	}
	seq := int64(0)
	for part := range slices.Chunk(p.lines, poolBatch) {
		c := &store.Commit{Now: now}
		for _, l := range part {
			seq++
			e := poolEntry(l, seq)
			c.Entries = append(c.Entries, e)
			if l.Text == "" {
				continue
			}
			terms, length := analyzer.Analyze(store.IndexText{Text: l.Text, Author: e.Message.Author, Time: l.Time})
			c.Docs = append(c.Docs, store.Doc{Owner: poolOwner, ID: e.ID, Kind: memgpt.KindMessage, Thread: e.Thread, Role: e.Message.Role,
				Author: e.Message.Author, Session: l.Session, Time: l.Time, Length: length, Terms: terms})
		}
		if _, err := s.Commit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// poolEntry returns a line as an import enters it in the log.
func poolEntry(l kernel.Line, seq int64) memgpt.Entry {
	m := memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginImport, l.Text)
	m.Session, m.Type = l.Session, memgpt.EventUser
	switch l.Speaker {
	case "user", "":
	case "assistant":
		m.Role, m.Type = memgpt.RoleAssistant, ""
	default:
		m.Author = l.Speaker
	}
	return memgpt.Entry{ID: l.ID, Agent: poolOwner, Thread: poolThread, Seq: seq, Time: l.Time, Key: "id:" + l.ID, Message: m}
}

// storePassages stores a pool in archival storage. Keys are made of ids: data may hold a text twice, each with its id.
func (p *pool) storePassages(ctx context.Context, s store.Store, analyzer *retrieve.Analyzer) error {
	now := afterLast(p.lines)
	if _, err := s.Commit(ctx, &store.Commit{Now: now, Agents: []memgpt.Agent{{ID: poolOwner, Name: "eval", Created: now}}}); err != nil {
		return err
	}
	for part := range slices.Chunk(p.lines, poolBatch) {
		c := &store.Commit{Now: now}
		for _, l := range part {
			c.Passages = append(c.Passages, memgpt.Passage{ID: l.ID, Owner: poolOwner, Text: l.Text, Time: l.Time,
				Key: memgpt.HashKey("eval", l.ID), Cause: memgpt.Cause{Origin: memgpt.OriginOwner}})
			if l.Text == "" {
				continue
			}
			terms, length := analyzer.Analyze(store.IndexText{Text: l.Text, Time: l.Time})
			c.Docs = append(c.Docs, store.Doc{Owner: poolOwner, ID: l.ID, Kind: memgpt.KindPassage, Time: l.Time, Length: length, Terms: terms})
		}
		if _, err := s.Commit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
