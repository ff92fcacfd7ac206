package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"memgpt"
)

// MailKind is the kind of the record, one for an agent by its ID, of what it sent to others lately. Its data is a MailSent. It
// is part of each commit that sends, so that conversations of one agent can't send more together than one may.
const MailKind = "mail"

// MailSent is when messages were sent, in Unix milliseconds by the ID of the receiver; of the last minute only.
type MailSent map[string][]int64

// ReadMailSent reads an agent's record of the kind, which r, err come from; where there is none it begins one. What is older
// than a minute is left out, and what lies ahead: a clock showed it that was wrong.
func ReadMailSent(agent *memgpt.Agent, r Record, err error, now time.Time) (Record, MailSent, error) {
	sent := MailSent{}
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return Record{Tenant: agent.Tenant, Kind: MailKind, ID: agent.ID}, sent, nil
	}
	var all MailSent
	if err == nil {
		err = json.Unmarshal(r.Data, &all)
	}
	since := now.Add(-time.Minute).UnixMilli()
	for to, times := range all {
		for _, t := range times {
			if t > since && t <= now.UnixMilli() {
				sent[to] = append(sent[to], t)
			}
		}
	}
	return r, sent, err
}

// Waits returns the calls of a conversation whose answers its turn waits for.
func Waits(th *memgpt.Thread) (open []memgpt.OpenCall) {
	for _, c := range th.Open {
		if c.On != "" {
			open = append(open, c)
		}
	}
	return open
}

// WaitKey names an open call as memgpt.Mail.Call does: models use ids of calls again.
func WaitKey(c *memgpt.OpenCall) string { return c.Entry + "/" + c.CallID }

// Asks reports whether somebody waits for what comes of an event.
func Asks(e *memgpt.Event) bool { return e.Mail != nil && e.Mail.Call != "" && len(e.Mail.Chain) > 0 }

// askedShown is how much of a question is quoted with its answer, in bytes.
const askedShown = 120

// AnswerEvent returns the event by which the answer to one that asks comes back: to the call that waits, or as a message of its own
// where nothing waits any more. Its id follows from that of the question. from is the name of the agent that was asked.
func AnswerEvent(q *memgpt.Event, from, text string, now time.Time) memgpt.Event {
	asked := q.Message.Said()
	if _, said, ok := strings.Cut(asked, MailSays); ok {
		asked = said
	}
	if short := memgpt.CutText(asked, askedShown); short != asked {
		asked = short + "…"
	}
	id := memgpt.HashKey(q.ID, "answer")
	m := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginAgent, fmt.Sprintf("To what you asked (%q):\n%s", asked, memgpt.CleanText(text)))
	m.Type, m.Author = memgpt.EventAgent, from
	return memgpt.Event{ID: "event-" + id, Turn: "turn-" + id, Tenant: q.Tenant, Agent: q.Mail.Chain[len(q.Mail.Chain)-1], Thread: q.Mail.Thread,
		Type: memgpt.EventAgent, Due: now, Created: now, Message: m,
		Mail: &memgpt.Mail{Thread: q.Thread, Answers: q.Mail.Call, Hops: q.Mail.Hops + 1}}
}

// MailSays stands before the sender's own words in a message between agents.
const MailSays = "It says:\n"
