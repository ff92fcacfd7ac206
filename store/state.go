package store

import (
	"context"
	"time"

	"memgpt"
)

// State is one conversation as the kernel works on it: what main context is compiled from. The kernel changes a copy and
// commits it, or throws it away.
type State struct {
	Agent  memgpt.Agent
	Blocks []memgpt.Block
	Thread memgpt.Thread
	Queue  []memgpt.Entry // the thread's entries with Seq > Head, in order
	Asked  *memgpt.Entry  // the newest message of a user where it is at or before Head, else nil

	Prefix Prefix // not stored
}

// Prefix is the compiled system message and its size, kept while neither agent nor blocks change, and the size of the
// head of the queue, kept while the summary does not.
type Prefix struct {
	Made   string // versions of what Text was made from
	Text   string
	Tokens int

	Head       string // text of the head of the queue
	HeadTokens int
}

// Fork returns a working copy. Its blocks may be replaced without touching the original. The entries of the queue are
// shared, since the past does not change and ten thousand conversations may wait at once: a fork may append to its queue
// and change what it appended, one fork at a time.
func (s *State) Fork() *State {
	c := *s
	c.Blocks = append([]memgpt.Block(nil), s.Blocks...)
	c.Thread.Open = append([]memgpt.OpenCall(nil), s.Thread.Open...)
	return &c
}

// Work is what a host hands to a kernel: one event of one conversation, under a lease.
type Work struct {
	State *State               // brought up to date by each commit; after an error it must be loaded anew
	Event memgpt.Event         // the event to handle; its Step says whether its turn had begun before
	Turn  memgpt.Turn          // its record, brought up to date by each commit
	Lease Lease                // names the holder in every commit; renewed by it
	TTL   time.Duration        // how long a renewed lease lasts
	More  func() bool          // whether another event waits for the same thread: then the last commit keeps the lease; nil is never
	Emit  func(memgpt.Update)  // receives what happens; must not block; nil drops it
	Sent  func([]memgpt.Event) // receives the events of other conversations that a commit put into their inboxes; nil drops them
	Wake  func()               // called after a commit of events for later, so that who waits for times looks again; nil where nobody does
	Ends  func() time.Time     // when the lease ends, renewals by others included; nil is Lease.Until

	// Answers are events for calls on whose answers the turn waits (memgpt.Mail.Answers); the next commit consumes them. Cut says
	// that it waits no longer for the others.
	Answers []memgpt.Event
	Cut     bool

	// Arrived returns the events that the turn is to take in before its next step, in order. Each is consumed by the next
	// commit. due is Committed.Pending of the turn's last commit, -1 before the first. Nil is never any.
	Arrived func(ctx context.Context, due int) ([]memgpt.Event, error)
	// Call opens a call of the model: the context under which it runs, which may end before ctx does to cut the call off
	// so that what has arrived is taken in, and what is to be called at its end. Nil cuts nothing off.
	Call func(ctx context.Context) (context.Context, func())
}

// Lease is the right to run one conversation. Number grows with each taking; the newest alone may commit.
type Lease struct {
	Tenant string
	Thread string
	Number int64
	Until  time.Time
}

// BlockEdit is one line of a block's history: the value that it had from Time on.
type BlockEdit struct {
	Block   string
	Version int64
	Value   string
	Time    time.Time
	Cause   memgpt.Cause
}
