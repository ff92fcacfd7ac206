package kernel

import (
	"time"

	"memgpt"
	"memgpt/store"
)

// saidText is one thing that the step under way says, and the ID of the call that says it; "" is the message's own text.
type saidText struct{ text, call string }

// unasked reports whether nobody waits for what is said now: no user wrote or has just come, and no agent asks. Tidying speaks to
// nobody.
func (r *run) unasked() bool {
	switch r.w.Event.Type {
	case memgpt.EventLogin, memgpt.EventTidy:
		return false
	}
	return !r.userTurn()
}

// sayings returns the rows of the outbox for what the commit says unasked, one for each of changes.spoken.
func (r *run) sayings(now time.Time) (list []store.Saying) {
	if len(r.pend.spoken) == 0 || !r.unasked() {
		return nil
	}
	for _, said := range r.pend.spoken {
		s := store.Saying{ID: store.SayingID(r.said, said.call), Tenant: r.st.Thread.Tenant, Agent: r.st.Agent.ID, Thread: r.st.Thread.ID,
			Turn: r.turn.ID, Entry: r.said, Call: said.call, Why: store.WhyOf(&r.w.Event), Time: now}
		if r.st.Agent.Reach.Hook != "" {
			s.Hook, s.Next = store.HookDue, now
		}
		list = append(list, s)
	}
	return list
}
