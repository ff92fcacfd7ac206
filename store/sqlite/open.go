package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"memgpt"
)

// prepareFile makes the directory and an empty file, which only the owner may read. SQLite gives its -wal and -shm files
// the same mode.
func prepareFile(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return memgpt.Errorf(memgpt.CodeInvalid, "it is a directory: give the path of a file")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(tighten(f), f.Close())
	return err
}

// tighten takes the rights of others away from a file that had them, say one that was copied.
func tighten(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := f.Chmod(0o600); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// dsn returns the name by which the driver opens a connection.
func (s *Store) dsn(write bool) string {
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", s.cfg.Busy.Milliseconds()))
	if write {
		q.Set("mode", "rw")
		q.Add("_pragma", "journal_mode(wal)")
		q.Add("_pragma", "secure_delete(on)") // what the owner forgets must not stay on free pages
		q.Add("_pragma", "cache_size(-16000)")
		if s.cfg.Unsafe {
			q.Add("_pragma", "synchronous(off)")
		} else {
			q.Add("_pragma", "synchronous(full)")
		}
	} else {
		q.Set("mode", "ro")
		q.Add("_pragma", "cache_size(-8000)")
	}
	return fileURI(s.cfg.Path) + "?" + q.Encode()
}

func fileURI(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if path[0] != '/' {
		path = "/" + path // a drive letter, see sqlite.org/uri.html
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// probe looks at a file without changing it, so that one of a newer version, or of another program, is refused
// untouched.
func (s *Store) probe() error {
	info, err := os.Stat(s.cfg.Path)
	if err != nil || info.Size() == 0 {
		return err
	}
	c, err := dial(s.dsn(false))
	if err != nil {
		return err
	}
	return errors.Join(checkSchema(c, s.cfg.migrations), c.close())
}

// openError says in one line why a store can't be opened.
func openError(path string, err error) error {
	var own *memgpt.Error
	if errors.As(err, &own) {
		return memgpt.Errorf(own.Code, "open the store %s: %w", path, own)
	}
	code, why := memgpt.CodeInvalid, ""
	switch resultCode(err) & 0xff {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		why = "it is not a SQLite database, or it is damaged: give another path, or restore a copy"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		code, why = memgpt.CodeBusy, "another program has locked it: wait, or end that program"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		why = "it or its directory can't be written: change their permissions, or give another path"
	case sqlite3.SQLITE_FULL:
		why = "the disk is full"
	}
	switch {
	case why != "":
	case errors.Is(err, fs.ErrPermission):
		why = "it or its directory can't be written: change their permissions, or give another path"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		why = fmt.Sprintf("its directory can't be made (%v): give another path", err)
	default:
		return fmt.Errorf("open the store %s: %w", path, err)
	}
	return &memgpt.Error{Code: code, Err: worded{fmt.Sprintf("open the store %s: %s", path, why), err}}
}

// worded is an error in other words than its own.
type worded struct {
	text string
	err  error
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.err }
