package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"memgpt"
	"memgpt/store"
)

// job is a commit on its way through the writer.
type job struct {
	commit *store.Commit
	coded  *coded
	done   chan struct{}
	out    store.Committed
	err    error
}

// queue is what the writer has to do. A commit that is still in it can be taken back.
type queue struct {
	mu     sync.Mutex
	jobs   []*job
	slice  *slice
	closed bool
	wake   chan struct{} // holds one token when there may be work
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return closedError()
	}
	q.jobs = append(q.jobs, j)
	q.signal()
	return nil
}

// take returns the jobs at the front, or a slice of a merge if there are none or it has waited long enough, and whether
// no more will come.
func (q *queue) take(most int, anyway bool) (jobs []*job, slice *slice, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(most, len(q.jobs))
	jobs = append(jobs, q.jobs[:n]...)
	q.jobs = append(q.jobs[:0], q.jobs[n:]...)
	if n == 0 || anyway {
		slice, q.slice = q.slice, nil
	}
	return jobs, slice, q.closed
}

// withdraw takes a job back; false says that the writer has it.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.jobs {
		if other == j {
			q.jobs = append(q.jobs[:i], q.jobs[i+1:]...)
			return true
		}
	}
	return false
}

// offer gives the writer a slice of a merge; false says that the queue is closed.
func (q *queue) offer(sl *slice) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.slice = sl
		q.signal()
	}
	return !q.closed
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// Commit implements store.Store. Commits that come while one is being written go together into the next transaction; a
// lone one waits for nobody. When ctx ends before the writer has taken a commit, the commit is not made and the error
// says so; after that its outcome is waited for.
func (s *Store) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	if err := ctx.Err(); err != nil {
		return store.Committed{}, fmt.Errorf("commit not made: %w", err)
	}
	x, err := s.code(c)
	if err != nil {
		return store.Committed{}, err
	}
	j := &job{commit: c, coded: x, done: make(chan struct{})}
	if err := s.queue.add(j); err != nil {
		return store.Committed{}, err
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if s.queue.withdraw(j) {
			return store.Committed{}, fmt.Errorf("commit not made: %w", ctx.Err())
		}
		<-j.done
	}
	return j.out, j.err
}

// maxBatch bounds the commits of one transaction.
const maxBatch = 256

// maxWait is how many transactions of commits may go before a waiting slice of a merge, so that merges keep up under load.
const maxWait = 16

// write is the writer goroutine: commits first, then slices of merges, until the queue is closed and empty.
func (s *Store) write() {
	defer close(s.ended)
	waited := 0
	for {
		jobs, slice, closed := s.queue.take(maxBatch, waited >= maxWait)
		if len(jobs) > 0 {
			s.writeBatch(jobs)
			waited++
		}
		if slice != nil {
			slice.done <- s.writeSlice(slice)
			waited = 0
		}
		if len(jobs) > 0 || slice != nil {
			continue
		}
		if closed {
			return
		}
		<-s.queue.wake
	}
}

// writeBatch makes the commits in one transaction. Each has a savepoint, so that one which fails is undone alone.
func (s *Store) writeBatch(jobs []*job) {
	works, err := s.transact(jobs)
	for i, j := range jobs {
		if j.err == nil {
			j.err = err
		}
		if j.err == nil {
			j.out = works[i].out
			works[i].publish()
		}
		close(j.done)
	}
}

// transact applies the jobs and commits. Its error is that of the transaction as a whole.
func (s *Store) transact(jobs []*job) ([]*work, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	works := make([]*work, len(jobs))
	good := 0
	for i, j := range jobs {
		works[i] = &work{s: s, c: s.writer}
		var fatal error
		if len(jobs) == 1 {
			j.err = works[i].apply(j.commit, j.coded)
		} else {
			j.err, fatal = s.applyAlone(works[i], j)
		}
		if fatal != nil {
			return works, errors.Join(fatal, s.rollback())
		}
		if j.err == nil {
			good++
		}
	}
	if good == 0 {
		return works, s.rollback()
	}
	if _, err := s.writer.exec("COMMIT"); err != nil {
		return works, errors.Join(fmt.Errorf("commit: %w", err), s.rollback())
	}
	return works, nil
}

// applyAlone applies one commit of many. The second error means that the transaction can't go on.
func (s *Store) applyAlone(w *work, j *job) (err, fatal error) {
	if _, err := s.writer.exec("SAVEPOINT one"); err != nil {
		return nil, err
	}
	if err = w.apply(j.commit, j.coded); err != nil {
		if _, e := s.writer.exec("ROLLBACK TO one"); e != nil {
			return err, e
		}
	}
	_, fatal = s.writer.exec("RELEASE one")
	return err, fatal
}

func (s *Store) begin() error {
	_, err := s.writer.exec("BEGIN IMMEDIATE")
	if isBusy(err) {
		return memgpt.Errorf(memgpt.CodeBusy, "commit: other programs kept the store locked for %v", s.cfg.Busy)
	}
	if err != nil {
		return fmt.Errorf("begin a commit: %w", err)
	}
	return nil
}

// rollback undoes the transaction. SQLite may have done so by itself (a full disk), and then says that there is none.
func (s *Store) rollback() error {
	_, err := s.writer.exec("ROLLBACK")
	if resultCode(err) == 1 {
		return nil
	}
	return err
}
