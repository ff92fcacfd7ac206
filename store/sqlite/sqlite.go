// Package sqlite implements store.Store on one SQLite file. It owns the file's schema and its migrations, the one writer
// that puts concurrent commits into one transaction, the leases and how the death of their holders is found out, and the
// merging of the inverted index in the background. It neither analyses nor scores texts and knows no rules of agents.
//
// Several Stores, in one process or in many, may be open on one file at the same time.
package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
)

var _ store.Store = (*Store)(nil)

// Config says where and how a store is kept. Path alone is needed.
type Config struct {
	Path string // of the database file; it and its directory are made if missing

	Busy       time.Duration // how long to wait for other processes' transactions; 0 is 10 s
	Readers    int           // connections for reading; 0 is twice the number of CPUs, at least 4
	CacheBytes int64         // bound of the cached parts of the index; 0 is 128 MiB
	// Rewriting is told before the file, of so many bytes with its log, is written anew after something was erased, and what it
	// returns is called at the end. Meanwhile nobody can commit. It may be called in the background, when an erasure that was
	// interrupted is finished. Nil drops it.
	Rewriting func(bytes int64) (done func())
	Rand      io.Reader // source of the ids of holders of leases; nil is crypto/rand
	// Unsafe trades durability for speed (synchronous=OFF): a crash of the machine may destroy the file. For tests only.
	Unsafe bool

	// mergeAt replaces the size of the unmerged tail at which a merge begins, for tests.
	mergeAt int64
	// migrations replaces the embedded ones, for tests.
	migrations []migration
}

func (c Config) withDefaults() (Config, error) {
	if c.Path == "" {
		return c, memgpt.Errorf(memgpt.CodeInvalid, "open the store: no path is given")
	}
	if c.Busy == 0 {
		c.Busy = 10 * time.Second
	}
	if c.Readers == 0 {
		c.Readers = max(4, 2*runtime.GOMAXPROCS(0))
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = 128 << 20
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.migrations == nil {
		ms, err := loadMigrations(migrations)
		if err != nil {
			return c, err
		}
		c.migrations = ms
	}
	return c, nil
}

// Store is a store.Store in one file. Make one with Open.
type Store struct {
	cfg     Config
	enc     *encoders
	names   *names
	hints   hints
	holder  *holder
	index   index
	merges  merges
	backlog backlog

	// Who puts something into token may use writer, rows, arrival and touched until he takes it out again.
	token   chan struct{}
	writer  *conn
	rows    rows
	arrival int64          // of the newest event
	touched map[int64]bool // owners whose docs or vectors changed since somebody asked; nil when nobody did
	queue   queue
	readers *pool

	watchMu sync.Mutex
	watch   *conn // sees all commits; for Change

	closing sync.Once
	closed  error
}

// Open opens the store, and makes it if it isn't there. An error is a line that says what is wrong with the path and
// what to do; CodeNewer says that a newer version wrote the file, CodeBusy that it is locked.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, enc: newEncoders(), names: newNames(), token: make(chan struct{}, 1)}
	s.hints.no = map[string]int64{}
	s.queue.calm = make(chan struct{}, 1)
	s.merges.init()
	s.index.init(cfg.CacheBytes)
	if err := s.openPatiently(ctx); err != nil {
		return nil, errors.Join(openError(cfg.Path, err), s.closeConns())
	}
	go s.merge()
	return s, nil
}

// openPatiently opens a file that others open or make at the same moment: SQLite refuses the change to WAL and a recovery
// at once, however long it was told to wait.
func (s *Store) openPatiently(ctx context.Context) error {
	for began := time.Now(); ; {
		err := s.open()
		if !isBusy(err) || time.Since(began) >= s.cfg.Busy {
			return err
		}
		if bad := s.closeConns(); bad != nil {
			return errors.Join(err, bad)
		}
		s.readers, s.writer, s.holder = nil, nil, nil
		select {
		case <-ctx.Done():
			return err
		case <-time.After(openAgain):
		}
	}
}

// openAgain is how long a refused opening rests.
const openAgain = 20 * time.Millisecond

// open makes the file, its schema and the connections.
func (s *Store) open() error {
	path := s.cfg.Path
	if err := prepareFile(path); err != nil {
		return err
	}
	if err := s.probe(); err != nil {
		return err
	}
	var err error
	if s.writer, err = dial(s.dsn(true)); err != nil {
		return err
	}
	if err := migrate(s.writer, s.cfg.migrations); err != nil {
		return err
	}
	if s.watch, err = dial(s.dsn(false)); err != nil {
		return err
	}
	s.readers = newPool(s.cfg.Readers, s.dsn(false))
	if s.holder, err = newHolder(path, s.cfg.Rand); err != nil {
		return err
	}
	s.holder.sweep()
	return nil
}

// Close finishes the commits that are queued, then closes the file. It is safe to call it twice.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.close()
		s.merges.close()
		<-s.merges.ended
		s.token <- struct{}{} // and never taken out
		s.writeQueue()
		s.closed = s.closeConns()
	})
	return s.closed
}

func (s *Store) closeConns() error {
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.close())
	}
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	if s.watch != nil {
		errs = append(errs, s.watch.close())
		s.watch = nil
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.holder != nil {
		errs = append(errs, s.holder.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the store %s: %w", s.cfg.Path, err)
	}
	return nil
}

func closedError() error {
	return memgpt.Errorf(memgpt.CodeClosed, "the store is closed")
}

// Change implements store.Store. SQLite's data_version grows on a connection whenever another one commits, and ours all
// do.
func (s *Store) Change(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	if s.watch == nil {
		return 0, closedError()
	}
	r, err := s.watch.one("PRAGMA data_version")
	if err != nil {
		return 0, fmt.Errorf("read the change counter: %w", err)
	}
	return r.int(0), nil
}
