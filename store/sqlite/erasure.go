package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"memgpt"
	"memgpt/store"
)

const (
	sqlUnclean    = "INSERT OR IGNORE INTO unclean (no) VALUES (1)"
	sqlIsUnclean  = "SELECT 1 FROM unclean"
	sqlClean      = "DELETE FROM unclean"
	sqlCheckpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
)

// Erase implements store.Store. Its transaction leaves a mark, and the cleaning takes the mark away: wherever it is
// interrupted, by the end of ctx too, the next Erase, or the next who opens the store, cleans. Commits wait for it as long
// as it takes to write the file anew; reads don't.
func (s *Store) Erase(ctx context.Context, e *store.Erasure) error {
	x, err := s.codeErasure(e)
	if err != nil {
		return err
	}
	if err := s.takeToken(ctx); err != nil {
		return err
	}
	defer s.release()
	if !e.Empty() {
		if err := s.erase(e, x); err != nil {
			return memgpt.Errorf(memgpt.CodeOf(err), "nothing was erased: %w", err)
		}
	}
	return s.clean(ctx)
}

// takeToken waits for the right to write.
func (s *Store) takeToken(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("nothing was erased: %w", err)
	}
	if s.queue.isClosed() {
		return closedError()
	}
	select {
	case s.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("nothing was erased: %w", ctx.Err())
	}
}

// codedErasure is what the rows of an erasure become on disk.
type codedErasure struct {
	*coded
	edits [][]string // of each history
}

func (s *Store) codeErasure(e *store.Erasure) (*codedErasure, error) {
	coded, err := s.code(&store.Commit{Threads: e.Threads, Blocks: e.Blocks, Entries: e.Entries, Passages: e.Passages, Turns: e.Turns, Events: e.Events})
	if err != nil {
		return nil, err
	}
	x := &codedErasure{coded: coded}
	for i := range e.Histories {
		var edits []string
		err := codeAll(s.enc, &edits, e.Histories[i].Edits, "edit of a block",
			func(b *store.BlockEdit) (any, string) { return (*editRow)(b), e.Histories[i].Block })
		if err != nil {
			return nil, err
		}
		x.edits = append(x.edits, edits)
	}
	return x, nil
}

// erase makes the transaction. What SQLite notes aside of pages as they were stays in memory. The writer's token is held.
func (s *Store) erase(e *store.Erasure, x *codedErasure) (err error) {
	if err := s.writer.script("PRAGMA temp_store = MEMORY"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.writer.script("PRAGMA temp_store = DEFAULT")) }()
	if err := s.begin(); err != nil {
		return err
	}
	w := &eraser{work: &work{s: s, c: s.writer, now: e.Now}, e: e, x: x}
	if err := w.apply(); err != nil {
		return errors.Join(err, s.rollback())
	}
	if _, err := s.writer.exec("COMMIT"); err != nil {
		return errors.Join(fmt.Errorf("commit: %w", err), s.rollback())
	}
	// What is remembered of rows, of names and of who has no vectors may be of what is gone.
	s.rows.clear()
	s.rows.shared++
	s.names.clear()
	s.touched = nil
	for no := range w.erased {
		s.merges.want(no)
	}
	return nil
}

// clean writes the file anew, so that no free page holds what was erased, and empties the log, if the mark is there. The
// writer's token is held.
func (s *Store) clean(ctx context.Context) error {
	r, err := s.writer.one(sqlIsUnclean)
	if err != nil || r == nil {
		return err
	}
	if s.cfg.Rewriting != nil {
		defer s.cfg.Rewriting(fileSize(s.cfg.Path))()
	}
	if err := s.writer.scriptUntil(ctx, "VACUUM"); err != nil {
		return uncleanError(s.cfg.Path, err)
	}
	if err := s.emptyLog(); err != nil {
		return err
	}
	if _, err := s.writer.exec(sqlClean); err != nil {
		return uncleanError(s.cfg.Path, err)
	}
	return nil
}

// fileSize returns the bytes of a file with what waits in its log.
func fileSize(path string) (sum int64) {
	for _, name := range []string{path, path + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// emptyLog brings everything from the -wal file into the database and cuts it to nothing.
func (s *Store) emptyLog() error {
	r, err := s.writer.one(sqlCheckpoint)
	if err != nil {
		return uncleanError(s.cfg.Path, err)
	}
	if r.int(0) != 0 {
		return memgpt.Errorf(memgpt.CodeBusy, "what was forgotten is out of every search and reading, but %s-wal still holds bytes of it, "+
			"since another program is reading the store: end that program (or wait for it) and run the same again", s.cfg.Path)
	}
	return nil
}

func uncleanError(path string, err error) error {
	code, todo := memgpt.CodeOf(err), "free some and run the same again; the next program that opens the store tries too"
	switch {
	case isBusy(err):
		code, todo = memgpt.CodeBusy, "another program uses the store: end it (or wait for it) and run the same again"
	case isInterrupted(err):
		todo = "it was interrupted: the next program that opens the store does it"
	}
	return memgpt.Errorf(code, "what was forgotten is out of every search and reading, but free space of %s may still hold bytes of it; "+
		"to clear it takes as much free disk space again as the file has, beside it and for temporary files; %s: %w", path, todo, err)
}

// How often and after what rest who opened a store tries to finish an erasure while others write.
const (
	cleanTries = 10
	cleanRest  = 200 * time.Millisecond
)

// cleanLater finishes what an erasure could not when the store was last open. Where another program is at it, it lets it.
// What fails is tried at the next opening.
func (s *Store) cleanLater() {
	for range cleanTries {
		unclean, err := s.unclean()
		if err != nil || !unclean || !s.queue.idle(maxRounds) {
			return
		}
		if err := s.cleanAtOnce(); !isBusy(err) {
			return
		}
		select {
		case <-s.merges.ending:
			return
		case <-time.After(cleanRest):
		}
	}
}

// cleanAtOnce is clean that doesn't wait for another program's transaction.
func (s *Store) cleanAtOnce() (err error) {
	s.token <- struct{}{}
	defer s.release()
	if err := s.writer.script("PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	defer func() {
		err = cmp.Or(err, s.writer.script(fmt.Sprintf("PRAGMA busy_timeout = %d", s.cfg.Busy.Milliseconds())))
	}()
	if err := s.writer.script("BEGIN IMMEDIATE; ROLLBACK"); err != nil {
		return err
	}
	return s.clean(context.Background())
}

// unclean reports whether an erasure left files to be cleaned.
func (s *Store) unclean() (is bool, err error) {
	err = s.read(context.Background(), "whether files are to be cleaned", func(c *conn) error {
		r, err := c.one(sqlIsUnclean)
		is = r != nil
		return err
	})
	return is, err
}

func (n *names) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.owners)
	clear(n.threads)
}
