package store

import (
	"encoding/json"
	"time"

	"memgpt"
)

// Class is the rank of an event in the inbox, from 0: first a turn that has begun, which goes on; then what takes its
// place; then what users cause, alerts, failures, what others send, heartbeats, and timers.
func Class(e *memgpt.Event) int64 {
	switch {
	case e.Begun || e.Step > 0:
		return 0
	case e.Delivery == memgpt.DeliverReplace:
		return 1
	}
	switch e.Type {
	case memgpt.EventUser, memgpt.EventLogin, "":
		return 2
	case memgpt.EventAlert:
		return 3
	case memgpt.EventNotice: // what tells of failures
		return 4
	case memgpt.EventHeartbeat:
		return 6
	case memgpt.EventTimer:
		return 7
	}
	return 5
}

// IsUsers reports whether a user causes events of a type, and so is there to read what comes of them.
func IsUsers(t memgpt.EventType) bool {
	return t == memgpt.EventUser || t == memgpt.EventLogin || t == ""
}

// DeliveryOf is the delivery of an event, also where it doesn't say: a user's message is steered, all others are queued.
func DeliveryOf(e *memgpt.Event) memgpt.Delivery {
	switch {
	case e.Delivery != "":
		return e.Delivery
	case e.Type == memgpt.EventUser:
		return memgpt.DeliverSteer
	}
	return memgpt.DeliverQueue
}

// RingsKind is the kind of the record, one for an agent by its ID, that every change of the agent's timers bumps: so that
// of a schedule that rings and one that is cancelled at the same time only one happens. Its data is a Rings.
const RingsKind = "rings"

// Rings counts the turns that timers caused on one day.
type Rings struct {
	Day   string `json:"day,omitempty"` // in the agent's zone
	Turns int    `json:"turns,omitempty"`
}

// ReadRings reads an agent's record of the kind, which r, err come from; where there is none it begins one.
func ReadRings(agent *memgpt.Agent, r Record, err error) (Record, Rings, error) {
	var rings Rings
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return Record{Tenant: agent.Tenant, Kind: RingsKind, ID: agent.ID, Data: json.RawMessage("{}")}, rings, nil
	}
	if err == nil {
		err = json.Unmarshal(r.Data, &rings)
	}
	return r, rings, err
}

// IsSchedule reports whether an event is a schedule whose time has not come.
func IsSchedule(e *memgpt.Event) bool {
	return e.Timer != nil && e.Timer.Schedule != "" && !e.Timer.Rung
}

// ScheduleEvent returns the event by which a schedule rings at t.For. Its id follows from schedule and time, so that
// nobody can make two.
func ScheduleEvent(th *memgpt.Thread, now time.Time, t memgpt.Timer, note memgpt.Message) memgpt.Event {
	id := memgpt.HashKey(t.Schedule, t.For.UTC().Format(time.RFC3339Nano))
	note.Role, note.Type = memgpt.RoleSystem, memgpt.EventTimer
	return memgpt.Event{ID: "event-" + id, Turn: "turn-" + id, Tenant: th.Tenant, Agent: th.Agent, Thread: th.ID,
		Type: memgpt.EventTimer, Due: t.For, Created: now, Message: note, Timer: &t}
}

// JSON returns the data of the record.
func (r Rings) JSON() (json.RawMessage, error) { return json.Marshal(r) }
