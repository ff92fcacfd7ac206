package sqlite

import (
	"time"

	"memgpt"
	"memgpt/store"
)

// rows is the writer's copy of the rows of owners and threads that it wrote or read lately. It holds as long as no other
// connection commits, which SQLite's data_version tells. A commit works on copies of them.
type rows struct {
	version int64
	owners  map[name]ownerState
	threads map[name]threadState
	byNo    map[int64]name // names of threads
	shared  int64          // see store.Committed; grows also where nothing may have changed
}

// maxRows bounds each map; a full one starts anew.
const maxRows = 4096

func (r *rows) clear() {
	r.owners, r.threads, r.byNo = map[name]ownerState{}, map[name]threadState{}, map[int64]name{}
}

// check forgets what another connection may have changed. It is called at the begin of each transaction.
func (r *rows) check(c *conn) error {
	v, err := c.one("PRAGMA data_version")
	if err != nil {
		return err
	}
	if r.owners == nil || r.version != v.int(0) || len(r.owners) > maxRows || len(r.threads) > maxRows {
		r.version = v.int(0)
		r.shared++
		r.clear()
	}
	return nil
}

// dropOwner forgets an owner's row.
func (r *rows) dropOwner(no int64) {
	for of, o := range r.owners {
		if o.no == no {
			delete(r.owners, of)
		}
	}
}

// ownerState is what commits need to know of an owner: counters of its row and the sums of its docs.
type ownerState struct {
	name name
	no   int64

	passages, passageBytes, merged int64
	changed                        bool // the row is to be written

	docs, sumLength, sumBytes int64 // last number and sums of docs
	deaths, deadLength        int64 // last number and sum of dead
}

// threadState is a thread's row, with its pending events if they are few.
type threadState struct {
	name  name
	no    int64
	agent int64

	label    string // its Name
	version  int64
	head     int64
	hidden   int64
	first    any // time
	last     any // time
	messages int64
	bytes    int64
	turn     []byte
	summary  int64
	lease    int64
	until    any // time
	holder   string
	data     string

	written *memgpt.Summary // the summary that was written last, nil when that isn't known
	pending []pendingEvent  // replaced when it changes
	listed  bool            // pending is all there are

	oldHead  int64
	oldLabel string
	recount  bool // hidden must be counted anew
	changed  bool
}

// pendingEvent is what a commit needs to know of an event in the inbox.
type pendingEvent struct {
	id, turn, key string
	no, order     int64
	due           int64
}

// maxPending bounds the list of a thread's pending events; where they are more, statements find them.
const maxPending = 64

// work is one commit as it is applied: the working copies of the rows of owners and threads that it touches, which are
// written once, at its end.
type work struct {
	s       *Store
	c       *conn
	now     time.Time
	owners  []*ownerState
	threads []*threadState
	docs    []newDoc    // those whose ids are still to be entered
	events  []eventHint // new ones
	dropped bool        // vectors are to be erased
	out     store.Committed
}

// keep puts the working copies into the writer's rows, for the commits that follow.
func (w *work) keep(c *store.Commit) {
	if len(c.Agents)+len(c.Blocks) > 0 {
		w.s.rows.shared++
	}
	w.out.Shared = w.s.rows.shared
	for _, o := range w.owners {
		o.changed = false
		w.s.rows.owners[o.name] = *o
	}
	for _, t := range w.threads {
		t.oldHead, t.oldLabel, t.recount, t.changed = t.head, t.label, false, false
		w.s.rows.threads[t.name] = *t
		w.s.rows.byNo[t.no] = t.name
	}
}
