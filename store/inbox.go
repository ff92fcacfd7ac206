package store

import "memgpt"

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
