//go:build unix && !aix && !solaris

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// canLock says that lockFile works on this system.
const canLock = true

// lockFile takes the lock of a file, for itself alone or shared, and does not wait for it.
func lockFile(f *os.File, alone bool) (bool, error) {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		}
		return false, err
	}
}
