package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"memgpt/ingest"
)

// Bounds of a watched directory.
const (
	watchPace    = 2 * time.Second
	watchSettled = time.Second // a file that was written to since is looked at later
	watchMost    = 10_000      // documents
	watchAgain   = time.Minute // what could not be loaded is tried again
)

// watcher loads what is new or changed in a directory. It looks at it again and again instead of being told: that works on
// every file system, and looking costs little at these bounds. What it knows it finds out anew after a restart, since to
// load what is stored already stores and tells nothing.
type watcher struct {
	*loader
	dir  string
	root *os.Root
	seen map[string]seenFile
	many bool // it was said that there are too many documents
}

// seenFile is a document as it was when it was loaded last.
type seenFile struct {
	size  int64
	time  time.Time
	sum   [sha256.Size]byte
	again time.Time // when it is to be tried again that could not be loaded; zero where it was
}

func newWatcher(l *loader, dir string) (*watcher, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	return &watcher{loader: l, dir: dir, root: root, seen: map[string]seenFile{}}, nil
}

func (w *watcher) close() { _ = w.root.Close() }

// round looks at all documents once. What can't be read is said once for each of its states.
func (w *watcher) round(ctx context.Context) {
	files, _, err := ingest.Walk(ctx, w.root.FS())
	if err != nil {
		if ctx.Err() == nil {
			w.say("watch %s: %v", w.dir, err)
		}
		return
	}
	if len(files) > watchMost {
		if !w.many {
			w.say("watch %s: it holds %d documents; the first %d are watched", w.dir, len(files), watchMost)
		}
		w.many, files = true, files[:watchMost]
	}
	for _, file := range files {
		if ctx.Err() != nil {
			return
		}
		if err := w.look(ctx, file.Path); err != nil && ctx.Err() == nil {
			w.say("watch %s: %v", w.dir, err)
		}
	}
}

// look loads a document unless it is what it was.
func (w *watcher) look(ctx context.Context, path string) error {
	info, err := fs.Stat(w.root.FS(), path)
	if err != nil {
		delete(w.seen, path) // it went away meanwhile
		return nil
	}
	now := seenFile{size: info.Size(), time: info.ModTime()}
	was, known := w.seen[path]
	if !was.again.IsZero() && time.Now().After(was.again) {
		known = false
	}
	if known && was.size == now.size && was.time.Equal(now.time) || time.Since(now.time) < watchSettled && time.Since(now.time) >= 0 {
		return nil
	}
	now.sum = was.sum
	if err := w.load(ctx, path, known, &now); err != nil {
		now.again = time.Now().Add(watchAgain)
		w.seen[path] = now
		return err
	}
	w.seen[path] = now
	return nil
}

// load loads a document whose bytes are not those that were loaded before.
func (w *watcher) load(ctx context.Context, path string, known bool, now *seenFile) error {
	f, err := w.root.Open(filepath.FromSlash(path))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	sum := [sha256.Size]byte(hash.Sum(nil))
	if known && now.sum == sum {
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	now.sum = sum
	return w.document(ctx, path, f, now.size)
}
