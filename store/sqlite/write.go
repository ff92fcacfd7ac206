package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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

func (j *job) finished() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// queue is the commits that wait for the writer. One that is still in it can be taken back.
type queue struct {
	mu     sync.Mutex
	jobs   []*job
	closed bool
	rounds int           // batches since a merge had its turn
	calm   chan struct{} // holds one token when a merge may look whether it has its turn
}

// maxRounds is how many batches may go before a merge has its turn, so that merges keep up under load.
const maxRounds = 16

func (q *queue) add(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return closedError()
	}
	q.jobs = append(q.jobs, j)
	return nil
}

// take returns the jobs at the front.
func (q *queue) take(most int) (jobs []*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(most, len(q.jobs))
	jobs = append(jobs, q.jobs[:n]...)
	q.jobs = append(q.jobs[:0], q.jobs[n:]...)
	q.rounds++
	return jobs
}

// withdraw takes a job back; false says that it is being written.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.jobs, j)
	if i < 0 {
		return false
	}
	q.jobs = slices.Delete(q.jobs, i, i+1)
	return true
}

// idle waits until a merge has its turn: when no commit waits, or as many batches as rounds have gone before it. False says
// that the queue is closed.
func (q *queue) idle(rounds int) bool {
	for {
		q.mu.Lock()
		closed, turn := q.closed, len(q.jobs) == 0 || q.rounds >= rounds
		if turn {
			q.rounds = 0
		}
		q.mu.Unlock()
		if closed || turn {
			return !closed
		}
		<-q.calm
	}
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// signal lets a merge look whether it has its turn.
func (q *queue) signal() {
	select {
	case q.calm <- struct{}{}:
	default:
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// Commit implements store.Store. A lone commit is written at once by its own goroutine; those that come while one is
// being written go together into the next transaction, which one of them writes for all. When ctx ends before a commit's
// transaction began, the commit is not made and the error says so; after that its outcome is waited for.
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
	for {
		select {
		case <-j.done:
			return j.out, j.err
		case s.token <- struct{}{}:
			if !j.finished() {
				s.writeBatch(s.queue.take(maxBatch))
			}
			s.release()
		case <-ctx.Done():
			if s.queue.withdraw(j) {
				return store.Committed{}, fmt.Errorf("commit not made: %w", ctx.Err())
			}
			<-j.done
		}
	}
}

// release lets the next one write.
func (s *Store) release() {
	<-s.token
	s.queue.signal()
}

// writeQueue writes all that waits.
func (s *Store) writeQueue() {
	for jobs := s.queue.take(maxBatch); len(jobs) > 0; jobs = s.queue.take(maxBatch) {
		s.writeBatch(jobs)
	}
}

// maxBatch bounds the commits of one transaction.
const maxBatch = 256

// writeBatch makes the commits in one transaction. Each has a savepoint, so that one which fails is undone alone.
func (s *Store) writeBatch(jobs []*job) {
	if len(jobs) == 0 {
		return
	}
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
			works[i].keep(j.commit)
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
	err := s.beginLocked()
	if err != nil {
		return fmt.Errorf("begin a commit: %w", err)
	}
	if err := s.rows.check(s.writer); err != nil {
		return errors.Join(fmt.Errorf("begin a commit: %w", err), s.rollback())
	}
	return nil
}

// rollback undoes the transaction. SQLite may have done so by itself (a full disk), and then says that there is none.
func (s *Store) rollback() error {
	s.rows.clear()
	_, err := s.writer.exec("ROLLBACK")
	if resultCode(err) == 1 {
		return nil
	}
	return err
}

// maxRewriting is how long a commit waits for another program that writes the file anew.
const maxRewriting = 5 * time.Minute

// beginLocked begins a transaction. It waits for those of others as long as it was told to, but for a file that is written
// anew until that is done.
func (s *Store) beginLocked() error {
	start, was := time.Now(), false
	for {
		_, err := s.writer.exec("BEGIN IMMEDIATE")
		if !isBusy(err) {
			return err
		}
		unclean, err := s.unclean()
		switch {
		case err != nil || !unclean && !was:
			return memgpt.Errorf(memgpt.CodeBusy, "other programs kept the store locked for %v", s.cfg.Busy)
		case time.Since(start) > maxRewriting:
			return memgpt.Errorf(memgpt.CodeBusy, "something was forgotten, and another program has been writing the file anew "+
				"for %v: try again later", time.Since(start).Round(time.Second))
		}
		was = unclean
	}
}
