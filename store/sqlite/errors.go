package sqlite

import (
	"context"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"memgpt"
)

// resultCode returns SQLite's extended result code, 0 when err is none of its errors.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// isTaken reports whether a row broke a constraint of uniqueness.
func isTaken(err error) bool {
	switch resultCode(err) {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return true
	}
	return false
}

// taken makes a CodeExists error of a broken uniqueness, and returns any other error as it is.
func taken(err error, format string, args ...any) error {
	if isTaken(err) {
		return memgpt.Errorf(memgpt.CodeExists, format, args...)
	}
	return err
}

// isBusy reports whether another connection holds the lock.
func isBusy(err error) bool {
	switch resultCode(err) & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return true
	}
	return false
}

// isInterrupted reports whether the end of a context ended a statement.
func isInterrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || resultCode(err)&0xff == sqlite3.SQLITE_INTERRUPT
}
