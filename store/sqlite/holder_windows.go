package sqlite

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// canLock says that lockFile works on this system.
const canLock = true

// Flags and error of LockFileEx (fileapi.h, winerror.h).
const (
	lockFailImmediately = 1
	lockExclusive       = 2
	errLockViolation    = syscall.Errno(33)
)

// lockFile takes the lock of a file, for itself alone or shared, and does not wait for it.
func lockFile(f *os.File, alone bool) (bool, error) {
	lock := syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")
	flags := uintptr(lockFailImmediately)
	if alone {
		flags |= lockExclusive
	}
	var at syscall.Overlapped
	ok, _, err := lock.Call(f.Fd(), flags, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	if ok != 0 {
		return true, nil
	}
	if errors.Is(err, errLockViolation) {
		return false, nil
	}
	return false, err
}
