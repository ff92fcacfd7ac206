package sqlite

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// holder is one open Store as a holder of leases. It has a file of its own beside the database and keeps an operating
// system's lock on it, which ends with the process, however that ends: so another process can tell that the holder died.
type holder struct {
	id   string
	dir  string
	file *os.File
}

func newHolder(db string, rand io.Reader) (*holder, error) {
	h := &holder{dir: db + ".holders"}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the holders of leases: %w", err)
	}
	for range 100 {
		if ok, err := h.take(rand); err != nil || ok {
			return h, err
		}
	}
	return nil, fmt.Errorf("make a lock file in %s: others remove it again and again", h.dir)
}

// take makes and locks a file. It reports false if another's sweep came between the two.
func (h *holder) take(rand io.Reader) (bool, error) {
	var b [16]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return false, fmt.Errorf("draw the id of the holder of leases: %w", err)
	}
	h.id = hex.EncodeToString(b[:])
	f, err := os.OpenFile(h.path(h.id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, fmt.Errorf("make the lock file of a holder of leases: %w", err)
	}
	locked, err := lockFile(f, true)
	if err != nil {
		return false, errors.Join(fmt.Errorf("lock the file of a holder of leases: %w", err), f.Close(), os.Remove(f.Name()))
	}
	if locked && samePath(f) {
		h.file = f
		return true, nil
	}
	_ = os.Remove(f.Name())
	return false, f.Close()
}

func samePath(f *os.File) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(f.Name())
	return err == nil && os.SameFile(a, b)
}

func (h *holder) path(id string) string { return filepath.Join(h.dir, id) }

// close ends the holder: from now on others take its leases at once.
func (h *holder) close() error {
	closed, removed := h.file.Close(), os.Remove(h.file.Name())
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil // who opened the store just now took it for a dead one's
	}
	return errors.Join(closed, removed)
}

// dead reports whether it is known that another holder has died. A holder makes its file before it takes any lease and
// removes it when it is closed, so one without a file is gone. The lock of a check is a shared one: two who check at the
// same time don't take each other for the holder.
func (h *holder) dead(id string) bool {
	dead := false
	h.check(id, func(string) { dead = true })
	return dead
}

// check calls f if the holder is known to be dead, with its file still locked if there is one.
func (h *holder) check(id string, f func(path string)) {
	if id == h.id || !canLock {
		return
	}
	file, err := os.OpenFile(h.path(id), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f(h.path(id))
	}
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if locked, err := lockFile(file, false); err == nil && locked {
		f(file.Name())
	}
}

// sweep removes the files of dead holders.
func (h *holder) sweep() {
	files, err := os.ReadDir(h.dir)
	if err != nil {
		return // it is only a matter of tidiness
	}
	for _, f := range files {
		h.check(f.Name(), func(path string) { _ = os.Remove(path) })
	}
}
