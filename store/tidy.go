package store

import (
	"encoding/json"
	"time"

	"memgpt"
)

// TidyThread is the name of the conversation in which an agent's memory is tidied in the background.
const TidyThread = "memory work"

// TidyThreadID is the ID of that conversation, which follows from the agent's.
func TidyThreadID(agent string) string { return "conv-" + memgpt.HashKey("tidy", agent) }

// IsTidyThread reports whether a conversation is its agent's for tidying: the system's own, with nobody in it.
func IsTidyThread(th *memgpt.Thread) bool { return th.ID == TidyThreadID(th.Agent) }

// TidyKind is the kind of the record, one for an agent by its ID, of how far its memory is tidied. Each change of the event
// that waits for tidying bumps it too, so that there is one such event at a time. Its data is a Tidied.
const TidyKind = "tidying"

// Tidied is how far an agent's memory is tidied.
type Tidied struct {
	TidyMark
	At    time.Time `json:"at,omitzero"`     // when the last tidying ended
	Fails int       `json:"fails,omitempty"` // tidyings in a row that came to nothing

	Turn string    `json:"turn,omitempty"` // ID of the turn under way
	Next *TidyMark `json:"next,omitempty"` // where it will have come to

	Day   string `json:"day,omitempty"`   // in the agent's zone
	Turns int    `json:"turns,omitempty"` // that were begun on it
}

// TidyMark is a place up to which an agent's memory is read.
type TidyMark struct {
	Read     time.Time        `json:"read,omitzero"`      // when
	Seen     map[string]int64 `json:"seen,omitempty"`     // Seq by conversation
	Passages int64            `json:"passages,omitempty"` // Passage.Seq
	More     bool             `json:"more,omitempty"`     // something newer was there, for which there was no room
	// Pressed is, by conversation, where the queue began when this was read under memory pressure.
	Pressed map[string]int64 `json:"pressed,omitempty"`
}

// ReadTidied reads an agent's record of the kind, which r, err come from; where there is none it begins one.
func ReadTidied(agent *memgpt.Agent, r Record, err error) (Record, Tidied, error) {
	var t Tidied
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return Record{Tenant: agent.Tenant, Kind: TidyKind, ID: agent.ID, Data: json.RawMessage("{}")}, t, nil
	}
	if err == nil {
		err = json.Unmarshal(r.Data, &t)
	}
	return r, t, err
}

// TidyText is what the event of tidying says before the turn begins, which puts what is new in its place.
const TidyText = "Memory work is due."

// TidyEvent returns an event of tidying that is due at a time, for a reason that people are told.
func TidyEvent(agent *memgpt.Agent, newID func(string) string, now, due time.Time, why string) memgpt.Event {
	m := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, TidyText)
	m.Type = memgpt.EventTidy
	return memgpt.Event{ID: newID("event"), Turn: newID("turn"), Tenant: agent.Tenant, Agent: agent.ID, Thread: TidyThreadID(agent.ID),
		Type: memgpt.EventTidy, Due: due, Created: now, Message: m, Timer: &memgpt.Timer{Set: now, For: due, Seen: now, Wait: why}}
}
