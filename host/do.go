package host

import (
	"context"
	"errors"

	"memgpt/store"

	"memgpt"
)

// Do runs a function alone with a conversation (agent and thread are IDs), under its lease and between its turns. The
// work has no event; the function commits under Work.Lease and doesn't end it. Do waits for its turn and for the
// function's end, and returns its error; a panic becomes an error. ctx ends the wait, and the function's context ends
// with it.
func (h *Host) Do(ctx context.Context, tenant, agent, thread string, do func(context.Context, *store.Work) error) error {
	j := &job{ctx: ctx, do: do, done: make(chan error, 1)}
	h.mu.Lock()
	if h.closing {
		h.mu.Unlock()
		return errClosed("wait for the conversation")
	}
	c := h.conversation(tenant, agent, thread)
	c.jobs = append(c.jobs, j)
	h.wake(c)
	h.mu.Unlock()
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
	}
	if h.dropJob(c, j) {
		return context.Cause(ctx)
	}
	return <-j.done
}

// dropJob takes a job back. It reports false when it has begun.
func (h *Host) dropJob(c *conversation, j *job) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range c.jobs {
		if other == j {
			c.jobs = append(c.jobs[:i:i], c.jobs[i+1:]...)
			h.forget(c)
			return true
		}
	}
	return false
}

// failJobs ends the jobs that have not begun. Callers hold h.mu.
func (h *Host) failJobs(c *conversation, err error) {
	for _, j := range c.jobs {
		j.done <- err
	}
	c.jobs = nil
}

// runJob runs one job, or puts it back where the conversation is another's for now.
func (h *Host) runJob(ctx context.Context, c *conversation, j *job) {
	held, err := h.hold(ctx, c)
	if err != nil {
		j.done <- memgpt.Errorf(memgpt.CodeOf(err), "take the conversation: %w", err)
		return
	}
	if !held {
		h.putBack(c, j)
		return
	}
	w, err := h.prepare(ctx, c, fresh{event: memgpt.Event{Tenant: c.tenant, Agent: c.agent, Thread: c.thread}})
	if err != nil {
		j.done <- err
		return
	}
	if len(store.Waits(&w.State.Thread)) > 0 { // nothing enters the log while a call is open
		h.keepState(c, w, nil)
		h.putBack(c, j)
		return
	}
	j.done <- h.runAlone(ctx, c, j, w)
}

func (h *Host) runAlone(ctx context.Context, c *conversation, j *job, w *store.Work) error {
	own, cancel := context.WithCancelCause(j.ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	k := h.keepAlive(own, w.Lease, cancel, func(int) {})
	w.Turn, w.Ends = memgpt.Turn{}, k.ends
	w.More = func() bool { return true }
	err := h.guard(func() error { return j.do(own, w) })
	h.settleLease(c, w, k, errors.New("the lease is kept"))
	return err
}

// putBack lets a job wait until another process gives the conversation back.
func (h *Host) putBack(c *conversation, j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		j.done <- errClosed("wait for the conversation")
		return
	}
	c.jobs = append([]*job{j}, c.jobs...)
	h.park(c, h.retryTime(c))
}
