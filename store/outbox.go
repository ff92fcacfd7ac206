package store

import (
	"encoding/json"
	"time"

	"memgpt"
)

// Saying is a row of the outbox: one thing that an agent said to its user unasked. It is part of the commit of the step that
// says it, so that it is there if and only if the words are in the log. It holds none of them: they are read from the log
// when they are shown or sent, and what was forgotten is gone from here too.
//
// A row has two ends that don't know each other: somebody sees it in a terminal (Read), and the agent's hook is told (Hook).
// A row of which nothing is left to do (Over) is removed by the commit that stores it so.
type Saying struct {
	ID     string // SayingID; it never changes, so that who is told twice knows
	Tenant string
	Agent  string
	Thread string
	Turn   string
	Entry  string // ID of the message in the log
	Call   string // ID of the call in it that says it; "" is its text
	Why    string // what woke the agent, see WhyOf
	Time   time.Time

	Read    bool
	Showing time.Time // until then somebody is showing it

	Hook  HookState
	Next  time.Time // with HookDue: no attempt before; where one is under way, it is over by then
	First time.Time // of the attempts; zero before
	Tries int       // attempts begun
	Aside bool      // the server refused it alone: later ones don't wait for it
	Error string    // why the last one failed, without a word of what was said; "" where it didn't

	Order   int64 // position in the outbox, given by the store
	Version int64 // optimistic version, see Commit
}

// HookState is what is left to do for the hook.
type HookState string

// States of delivery to a hook.
const (
	HookNone   HookState = ""       // nothing: it was told, or there is none
	HookDue    HookState = "due"    // it is to be told
	HookFailed HookState = "failed" // it was tried for long enough, or does not want it
)

// MostSayings is how many rows of an agent stay of which no delivery is due; the oldest go first. What they are of stays in
// the log.
const MostSayings = 1000

// Over reports whether nothing is left to do.
func (s *Saying) Over() bool { return s.Read && s.Hook == HookNone }

// SayingRange selects rows of the outbox, the oldest first. Empty fields are open.
type SayingRange struct {
	Tenant, Agent string
	AllTenants    bool // Tenant is not looked at
	Unread        bool // those that nobody has seen
	Hook          HookState
	Limit         int  // 0 is all
	Last          bool // the newest Limit, still the oldest of them first
}

// SayingID is the id of what an entry says by a call; by its own text where call is "".
func SayingID(entry, call string) string { return "said-" + memgpt.HashKey(entry, call) }

// Spoken is one thing that a message says: by a call of it, or by its text where Call is "".
type Spoken struct{ Call, Text string }

// SpokenIn lists what a message of the agent says to its reader, in the order in which it is said.
func SpokenIn(m *memgpt.Message) (list []Spoken) {
	if m.Role != memgpt.RoleAssistant {
		return nil
	}
	var text memgpt.Message
	for _, p := range m.Parts {
		if t, ok := p.(memgpt.Text); ok {
			text.Parts = append(text.Parts, t)
		}
	}
	if said := text.Said(); said != "" {
		list = append(list, Spoken{Text: said})
	}
	for _, c := range m.Calls() {
		if said, ok := c.Spoken(); ok {
			list = append(list, Spoken{c.ID, memgpt.CleanText(said)})
		}
	}
	return list
}

// SaidBy returns the words of a saying. It reports false where the entry does not say them any more: they were forgotten.
func (s *Saying) SaidBy(e *memgpt.Entry) (string, bool) {
	for _, said := range SpokenIn(&e.Message) {
		if said.Call == s.Call {
			return said.Text, true
		}
	}
	return "", false
}

// WhyOf names what woke an agent: heartbeat, schedule, or the type of the event.
func WhyOf(e *memgpt.Event) string {
	switch {
	case e.Type == memgpt.EventTimer && e.Timer != nil && e.Timer.Schedule != "":
		return "schedule"
	case e.Type == memgpt.EventTimer:
		return "heartbeat"
	}
	return string(e.Type)
}

// HookKind is the kind of the record, one for an agent by its ID, that belongs to its hook. Its data is a Hook.
const HookKind = "hook"

// Hook is what is kept of an agent's hook beside its URL, which is a setting (memgpt.Reach).
type Hook struct {
	URL     string    `json:"url"`              // that the secret was made for
	Secret  string    `json:"secret"`           // "whsec_" and base64, as Standard Webhooks writes it
	Old     string    `json:"old,omitempty"`    // secret before, with which is signed too
	Until   time.Time `json:"until,omitzero"`   // as long as this
	Stopped time.Time `json:"stopped,omitzero"` // since when the server wants nothing more (410 Gone)

	Older []OldSecret `json:"older,omitempty"` // those before Old, the newest first, that sign too
}

// OldSecret is a secret that was replaced, and until when it signs too.
type OldSecret struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until"`
}

// Rotate puts a new secret in place of the present one, which signs too until a time. So do those that were replaced before, each
// as long as it was told: receivers that were not changed over yet are not cut off by a second change.
func (h *Hook) Rotate(secret string, now, until time.Time) {
	h.Older = h.Replaced(now)
	h.Old, h.Until, h.Secret = h.Secret, until, secret
}

// Replaced returns the secrets that were replaced and sign too, the newest first.
func (h *Hook) Replaced(now time.Time) (list []OldSecret) {
	for _, s := range append([]OldSecret{{h.Old, h.Until}}, h.Older...) {
		if s.Secret != "" && now.Before(s.Until) {
			list = append(list, s)
		}
	}
	return list
}

// Secrets returns those by which a delivery is signed, the newest first.
func (h *Hook) Secrets(now time.Time) []string {
	list := []string{h.Secret}
	for _, s := range h.Replaced(now) {
		list = append(list, s.Secret)
	}
	return list
}

// Read reads the data of a record of the kind.
func (h *Hook) Read(r Record) error { return json.Unmarshal(r.Data, h) }

// Record returns the record with the hook, in place of r.
func (h *Hook) Record(r Record) (Record, error) {
	data, err := json.Marshal(h)
	r.Kind, r.Data = HookKind, data
	return r, err
}
