// Package e5 is the built-in encoder: multilingual-e5-small (BERT, 12 layers, 384 dimensions, about 100 languages) with
// weights of 4 bits, in the binary. It owns the model's file format, its tokenizer, the forward pass and the machine code
// for it. It runs on the CPU alone, without cgo, loads the weights with the first text and lets go of them when idle.
//
// It stores nothing and compares nothing. The cosines of this model all lie high (.70 to .95, unrelated texts near .8):
// rank by them, and don't hold them against a fixed mark.
package e5

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"memgpt"
)

// Limits and defaults.
const (
	MaxTokens    = 510              // ids of a text, its prefix among them, without the two ends; Embed cuts what is longer
	DefaultIdle  = 60 * time.Second // until the weights are let go
	maxThreads   = 8                // the default's bound: each thread has buffers of up to 8 MB
	groupTokens  = 190              // what a thread takes at once: its activations stay in a cache of 2 MB
	queryPrefix  = "query: "        // the model was trained with one of the two before each text
	storedPrefix = "passage: "
)

// Config says which model to use and how. The zero value is usable.
type Config struct {
	Dir     string        // a folder with one model file (*.bin) of the format in format.go; "" is the built-in model
	Idle    time.Duration // how long the weights stay loaded without use; 0 is DefaultIdle
	Threads int           // goroutines that compute at once, over all calls; 0 is GOMAXPROCS, 8 at most
}

// Encoder turns texts to vectors. It is safe for concurrent use, and meets the contract of an embedder.
type Encoder struct {
	id      string
	idle    time.Duration
	threads int
	read    func() (*file, error)
	kernel  kernel
	slots   chan struct{} // one for each goroutine that computes

	mu    sync.Mutex
	net   *network    // nil while not loaded
	users int         // calls under way
	free  *time.Timer // lets go of net; nil before the first use
	turn  int         // of the latest use, so that a timer that fired too late does nothing
}

// New returns an encoder. It loads nothing but a header. A folder without a usable model is CodeInvalid.
func New(cfg Config) (*Encoder, error) {
	e := &Encoder{idle: cfg.Idle, threads: cfg.Threads, kernel: bestKernel()}
	if e.idle <= 0 {
		e.idle = DefaultIdle
	}
	if e.threads <= 0 {
		e.threads = min(runtime.GOMAXPROCS(0), maxThreads)
	}
	e.slots = make(chan struct{}, e.threads)
	path, id := "", builtinID
	if cfg.Dir != "" {
		var err error
		if path, err = findModel(cfg.Dir); err != nil {
			return nil, err
		}
		id = strings.TrimSuffix(filepath.Base(path), ".bin")
	}
	if err := checkHeader(path); err != nil {
		return nil, err
	}
	e.id = id
	e.read = func() (*file, error) { return readModel(path) }
	return e, nil
}

// Model is the id to store with each vector: vectors of two ids are never mixed. It is the file's name without ".bin".
func (e *Encoder) Model() string { return e.id }

// Embed returns a vector of length 1 for each text, in their order. query says that the texts are questions, not stored
// texts. A text of more than MaxTokens ids is cut there. A vector does not depend on the texts beside it. It fails when
// ctx ends, between two groups of texts, and when the model can't be loaded (CodeInvalid).
func (e *Encoder) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	if err := ctx.Err(); err != nil || len(texts) == 0 {
		return nil, err
	}
	net, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer e.release()
	ids := make([][]uint32, len(texts))
	prefix := storedPrefix
	if query {
		prefix = queryPrefix
	}
	if err := e.each(ctx, len(texts), func(i int) { ids[i] = net.tok.encode(prefix+texts[i], net.maxTokens()) }); err != nil {
		return nil, fmt.Errorf("embed %d texts: %w", len(texts), err)
	}
	vectors := make([][]float32, len(texts))
	groups := groupTexts(ids, groupTokens)
	if err := e.each(ctx, len(groups), func(i int) { net.run(ids, vectors, groups[i]) }); err != nil {
		return nil, fmt.Errorf("embed %d texts: %w", len(texts), err)
	}
	return vectors, nil
}

// span is a range of texts.
type span struct{ from, to int }

// groupTexts splits texts, in their order, into groups of at most max tokens; a longer text is a group of its own.
func groupTexts(ids [][]uint32, max int) []span {
	var groups []span
	from, tokens := 0, 0
	for i, list := range ids {
		if i > from && tokens+len(list) > max {
			groups = append(groups, span{from, i})
			from, tokens = i, 0
		}
		tokens += len(list)
	}
	return append(groups, span{from, len(ids)})
}

// each runs do for 0 to n-1, on as many goroutines as the encoder may use, and waits for them. It stops early when ctx ends.
func (e *Encoder) each(ctx context.Context, n int, do func(i int)) error {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	work := func() {
		for i := range next {
			select {
			case <-ctx.Done():
				return
			case e.slots <- struct{}{}:
			}
			if ctx.Err() == nil { // both may have been ready
				do(i)
			}
			<-e.slots
		}
	}
	var wg sync.WaitGroup
	for range min(n, e.threads) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return ctx.Err()
}

// acquire returns the loaded network and keeps it until release.
func (e *Encoder) acquire() (*network, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.net == nil {
		f, err := e.read()
		if err != nil {
			return nil, err
		}
		e.net = load(f, e.kernel, e.threads)
	}
	e.users++
	e.turn++
	return e.net, nil
}

// release ends a use. The last one sets the timer.
func (e *Encoder) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	if e.free != nil {
		e.free.Stop()
	}
	turn := e.turn
	e.free = time.AfterFunc(e.idle, func() { e.drop(turn) })
}

// drop lets go of the weights, unless they were used after the turn, and gives their memory back to the system at once:
// an idle process would keep it long.
func (e *Encoder) drop(turn int) {
	e.mu.Lock()
	idle := e.users == 0 && e.turn == turn && e.net != nil
	if idle {
		e.net = nil
	}
	e.mu.Unlock()
	if idle {
		giveBack()
	}
}

// Close lets go of the weights. The encoder stays usable, and loads them again when it is used.
func (e *Encoder) Close() error {
	e.mu.Lock()
	if e.free != nil {
		e.free.Stop()
	}
	turn := e.turn
	e.mu.Unlock()
	e.drop(turn)
	return nil
}

// findModel returns the only model file of a folder.
func findModel(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil || len(paths) != 1 {
		slices.Sort(paths)
		return "", memgpt.Errorf(memgpt.CodeInvalid, "find the encoder's model in %s: want exactly one file named *.bin, found %d", dir, len(paths))
	}
	return paths[0], nil
}
