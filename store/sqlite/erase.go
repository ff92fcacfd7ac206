package sqlite

import (
	"errors"
	"fmt"
)

// eraseMost is how many rows of vectors one slice erases: what it may hold up a commit.
const eraseMost = 32

const (
	sqlDroppedNext = "SELECT no FROM dropped LIMIT 1"
	sqlDroppedEnd  = "DELETE FROM dropped WHERE no = ?"
	sqlErase       = `DELETE FROM vectors WHERE no IN (SELECT no FROM vectors WHERE no BETWEEN ? AND ? LIMIT ?)`
)

// eraseSome erases a few vectors of sets that were dropped, and reports whether there may be more. The merging goroutine
// calls it.
func (s *Store) eraseSome() (more bool, err error) {
	if !s.queue.idle(maxRounds) {
		return false, closedError()
	}
	s.token <- struct{}{}
	defer s.release()
	r, err := s.writer.one(sqlDroppedNext)
	if err != nil || r == nil {
		return false, err
	}
	if err := s.begin(); err != nil {
		return false, err
	}
	if err := eraseSlice(s.writer, r.int(0)); err != nil {
		return false, errors.Join(err, s.rollback())
	}
	if _, err := s.writer.exec("COMMIT"); err != nil {
		return false, errors.Join(fmt.Errorf("commit what was erased: %w", err), s.rollback())
	}
	return true, nil
}

func eraseSlice(c *conn, set int64) error {
	n, err := c.exec(sqlErase, rowNo(set, 0), rowNo(set, maxPos), eraseMost)
	if err == nil && n < eraseMost {
		_, err = c.exec(sqlDroppedEnd, set)
	}
	return err
}
