package kernel

import (
	"context"
	"fmt"
	"slices"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// makeRoom is the queue manager: it sees to it that the request fits. Over the alert mark it raises the pressure alert,
// once a fill; when the model has had a step since and the flush is due, it flushes. What does not fit at once is set
// aside, oldest first, and folded by the flush that follows.
func (r *run) makeRoom(ctx context.Context) error {
	if err := r.refresh(ctx); err != nil {
		return err
	}
	if err := r.fitFixed(); err != nil {
		return err
	}
	r.scale = 1
	if r.flushDue() {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	if r.alertDue() {
		r.alert()
	}
	return r.fit()
}

// refresh reads agent and blocks anew between the steps of a turn: other conversations edit them too.
func (r *run) refresh(ctx context.Context) error {
	if r.step == r.first || len(r.pend.blocks) > 0 {
		return nil
	}
	if err := store.Refresh(ctx, r.k.cfg.Store, r.st); err != nil {
		return fmt.Errorf("read agent and blocks before step %d: %w", r.step+1, err)
	}
	r.stale = true
	return nil
}

// total is the size of the request that the working copy compiles to, in the provider's tokens.
func (r *run) total() int { return tokens(r.measure().total, r.factor()) }

// alertDue reports whether this fill passed the alert mark and was not told.
func (r *run) alertDue() bool {
	return !r.tidies() && !r.st.Thread.Alerted && r.total() > r.win.alert
}

// flushDue reports whether the queue is to be flushed now: it is over the mark, or messages were set aside, and the model
// has had its step since the alert. A fold that failed is tried again once a turn.
func (r *run) flushDue() bool {
	if r.tidies() { // what it sets aside is not folded
		return false
	}
	th := &r.st.Thread
	aside := th.Folded < th.Head
	if aside && th.Summary.Failed != "" {
		return !r.folded
	}
	if !r.alertServed() {
		return false
	}
	return aside || th.Alerted && r.total() > r.win.flush
}

// alertServed reports whether the model has had a step since the last alert.
func (r *run) alertServed() bool {
	q := r.st.Queue
	for i := len(q) - 1; i >= 0; i-- {
		if q[i].Message.Role == memgpt.RoleAssistant {
			return true
		}
		if q[i].Message.Type == memgpt.EventAlert {
			return false
		}
	}
	return true
}

// units returns the ends of the queue's whole steps: a message with the results that follow it, and with what was handed
// over for it.
func units(q []memgpt.Entry) []int {
	var ends []int
	for i := 1; i <= len(q); i++ {
		if i == len(q) || q[i].Message.Role != memgpt.RoleTool && !withHanded(q, i) {
			ends = append(ends, i)
		}
	}
	return ends
}

// evictable returns how many entries of the queue may leave: those that are committed, less the step in progress. Before
// the model is asked that is the last step, whose results it has not read yet.
func (r *run) evictable() int {
	n := len(r.st.Queue) - len(r.pend.entries)
	for i := range n {
		if e := &r.st.Queue[i]; e.Turn == r.turn.ID && e.Step >= r.step {
			return i
		}
	}
	for n > 0 && n < len(r.st.Queue) && (r.st.Queue[n].Message.Role == memgpt.RoleTool || withHanded(r.st.Queue, n)) {
		n-- // never between a call and its result, or a message and what was handed over for it
	}
	return n
}

// oldest returns how many of the first entries must leave so that at least excess tokens are freed, in whole steps and
// limit entries at most.
func (r *run) oldest(l layout, excess, limit int) int {
	n, freed := 0, 0
	for _, end := range units(r.st.Queue) {
		if end > limit || tokens(freed, r.factor()) >= excess {
			break
		}
		for ; n < end; n++ {
			freed += l.queue[n]
		}
	}
	return n
}

// leave moves the head past the first n entries of the working copy's queue.
func (r *run) leave(n int) []memgpt.Entry {
	if n == 0 {
		return nil
	}
	gone := slices.Clone(r.st.Queue[:n])
	r.st.Queue = slices.Clone(r.st.Queue[n:])
	th := &r.st.Thread
	th.Head = gone[n-1].Seq
	for i := range gone {
		if gone[i].Seq == th.Asked {
			r.st.Asked = &gone[i]
		}
	}
	return gone
}

// fit sets aside the oldest steps that do not fit. Where the step in progress alone is too large, texts are shown shorter.
func (r *run) fit() error {
	usable := r.win.usable
	if r.retries.overflow > 0 {
		usable -= usable / 10 // a count that was wrong is not relied on to the last token
	}
	for {
		l := r.measure()
		excess := tokens(l.total, r.factor()) - usable
		if excess <= 0 {
			r.last = l
			return nil
		}
		if n := r.oldest(l, excess, r.evictable()); n > 0 {
			r.leave(n)
			continue
		}
		if r.scale /= 2; r.scale < 1.0/64 {
			return memgpt.Errorf(memgpt.CodeWindow, "the step in progress needs %d tokens more than the window of %d has,"+
				" even with every text shown cut; set a larger window", excess, r.win.size)
		}
	}
}

// alertTokens is what an alert is taken to need, by its longest form.
const alertTokens = 220

// alert raises the pressure alert: before the event that it came with and what was handed over for it, else at the end.
func (r *run) alert() {
	l := r.measure()
	count := tokens(l.total, r.factor())
	if count > r.win.usable { // a jump past the end: what does not fit is set aside at once
		gone := r.leave(r.oldest(l, count+alertTokens-r.win.usable, r.evictable()))
		r.raise(r.alertText(count, gone, "are leaving now"))
	} else {
		n := r.oldest(l, count-r.win.target, r.evictable())
		r.raise(r.alertText(count, r.st.Queue[:n], "leave soon"))
	}
	r.st.Thread.Alerted = true
	r.emit(memgpt.Pressured{Tokens: count, Mark: r.win.alert})
}

func (r *run) raise(text string) {
	at := len(r.st.Queue)
	for at > 0 && r.isFreshEvent(&r.st.Queue[at-1]) {
		at--
	}
	if len(r.pend.entries) > 0 && withHanded(r.st.Queue, at) {
		at--
	}
	r.insert(at, r.systemEntry(memgpt.EventAlert, text))
}

// isFreshEvent reports whether an entry is the turn's event, or one that it takes in, not committed yet.
func (r *run) isFreshEvent(e *memgpt.Entry) bool {
	return e.Seq >= r.w.State.Thread.Next && e.Step == 0 && e.Message.Role != memgpt.RoleTool
}

func (r *run) alertText(count int, leaving []memgpt.Entry, when string) string {
	text := fmt.Sprintf("Memory pressure: %d of %d tokens are in use.", count, r.win.usable)
	if n := len(leaving); n > 0 {
		text += fmt.Sprintf(" The oldest %d messages (%s to %s, the last is %s) %s.", n,
			calendar.Format(leaving[0].Time, r.zone), calendar.Format(leaving[n-1].Time, r.zone), leaving[n-1].ID, when)
	}
	return text + " Save what matters from them with core_memory_append or archival_memory_insert, or move them out" +
		" yourself with conversation_evict(through, summary). The user does not see this: do not answer it."
}
