package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Library is what an Indexer reads documents from and keeps their vectors in; every store.Store is one.
type Library interface {
	Texts
	Records
	Backlog(ctx context.Context, model string) ([]store.Backlog, error)
	Superseded(ctx context.Context, model string) ([]store.OwnerModel, error)
	Embedded(ctx context.Context, tenant, owner string) (map[string]store.Cursor, error)
	Partials(ctx context.Context, tenant, owner, model string, limit int) ([]store.Partial, error)
	Meta(ctx context.Context, tenant, owner string) (*store.Meta, error)
	DocIDs(ctx context.Context, tenant, owner string, numbers []int64) ([]string, error)
	Change(ctx context.Context) (int64, error)
	Vectors(ctx context.Context, tenant, owner, model string, after int64, yield func(store.Vector) bool) error
}

// IndexerConfig is what an Indexer is made of.
type IndexerConfig struct {
	Store    Library       // required
	Embedder tool.Embedder // required; its Model names the vectors

	Busy   func() bool                // whether work is under way that goes first; nil is never
	Cut    func(text string) []string // cuts a text into the pieces that get a vector each; nil cuts at about 200 words, see cutPieces
	Report func(error)                // is told of an error, once until all is done or another comes; nil drops it
	// Retire drops an owner's vectors of other models once the Embedder's has all of its documents.
	Retire bool

	Texts int           // most texts at a time; 0 is 64
	Size  int           // most characters of them, those of Chinese, Japanese and Korean counted twice; 0 is 24,000 (under 10,000 tokens)
	Poll  time.Duration // how often Run looks whether anything changed; 0 is 1 s

	Now   func() time.Time                     // nil is time.Now
	After func(time.Duration) <-chan time.Time // nil is time.After
}

// Indexer gives documents their vectors, behind everything else. Many may work on one store, in one process or several:
// each document gets the vectors of one of them. It is safe for concurrent use.
type Indexer struct {
	cfg  IndexerConfig
	kick chan struct{}

	// Who puts something into token may use the fields below until he takes it out again.
	token    chan struct{}
	stored   int                       // batches, up to slowStart
	swept    bool                      // nothing is left for Retire to drop, but of owners that were not done then
	priors   priors                    // of the Embedder's model,
	foreseen bool                      // which was asked for
	fails    int                       // since the last batch that was stored
	reported string                    // the error that was told last
	dims     int                       // of the Embedder's vectors; 0 until it gave one
	alike    map[store.OwnerModel]bool // whose stored vectors were seen to have dims

	mu   sync.Mutex
	pace pace
}

// NewIndexer returns an Indexer.
func NewIndexer(cfg IndexerConfig) (*Indexer, error) {
	if cfg.Store == nil || cfg.Embedder == nil || cfg.Embedder.Model() == "" {
		return nil, errors.New("make an indexer: it needs a store and an embedder whose model has a name")
	}
	if cfg.Busy == nil {
		cfg.Busy = func() bool { return false }
	}
	if cfg.Cut == nil {
		cfg.Cut = cutPieces
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.After == nil {
		cfg.After = time.After
	}
	cfg.Texts, cfg.Size, cfg.Poll = cmp.Or(cfg.Texts, 64), cmp.Or(cfg.Size, 24_000), cmp.Or(cfg.Poll, time.Second)
	return &Indexer{cfg: cfg, kick: make(chan struct{}, 1), token: make(chan struct{}, 1), alike: map[store.OwnerModel]bool{},
		priors: priors{records: cfg.Store}}, nil
}

// Kick lets Run look for documents at once. It doesn't block.
func (x *Indexer) Kick() {
	select {
	case x.kick <- struct{}{}:
	default:
	}
}

// How Run waits.
const (
	shortWait = 50 * time.Millisecond
	// maxShort is how often a batch waits for work that goes first: a host that is always busy gets its vectors slowly.
	maxShort  = 40
	firstWait = time.Second // after an error; doubled with each that follows,
	maxWait   = 5 * time.Minute
)

// Run gives documents their vectors until ctx ends, whose error it returns, or the store is closed. What fails is tried
// again, after ever longer waits, and other owners' documents in between.
func (x *Indexer) Run(ctx context.Context) error {
	for fails := 0; ctx.Err() == nil; {
		at, _ := x.cfg.Store.Change(ctx) // what is wrong with the store Some meets too
		x.giveWay(ctx)
		moved, more, err := x.step(ctx, "", "", new(int))
		switch {
		case memgpt.CodeOf(err) == memgpt.CodeClosed:
			return err
		case err != nil:
			x.wait(ctx, min(firstWait<<min(fails, 20), maxWait))
			fails++
			continue
		case !more:
			x.idle(ctx, at)
		case !moved: // another process does the same: let it
			x.wait(ctx, shortWait)
		}
		fails = 0
	}
	return ctx.Err()
}

// giveWay waits for work that goes first.
func (x *Indexer) giveWay(ctx context.Context) {
	for n := 0; n < maxShort && ctx.Err() == nil && x.cfg.Busy(); n++ {
		x.wait(ctx, shortWait)
	}
}

func (x *Indexer) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-x.cfg.After(d):
	}
}

// idle waits until the store isn't what it was at a change, or somebody kicks.
func (x *Indexer) idle(ctx context.Context, at int64) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.kick:
			return
		case <-x.cfg.After(x.cfg.Poll):
			if now, err := x.cfg.Store.Change(ctx); err != nil || now != at {
				return
			}
		}
	}
}

// Progress is how far the vectors have come.
type Progress struct {
	Owners int64   // that have documents without vectors
	Docs   int64   // all documents of these owners
	Done   int64   // those of Docs that have their vectors, or need none
	Rate   float64 // documents a second while embedding, of late; 0 until something was embedded
}

// Progress counts what is done and what is left.
func (x *Indexer) Progress(ctx context.Context) (p Progress, err error) {
	list, err := x.cfg.Store.Backlog(ctx, x.cfg.Embedder.Model())
	if err != nil {
		return p, fmt.Errorf("count what has no vectors: %w", err)
	}
	for _, b := range list {
		p.Owners++
		p.Docs += b.Docs
		p.Done += b.After - b.Partial
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pace.seconds > 0 {
		p.Rate = x.pace.docs / x.pace.seconds
	}
	return p, nil
}

// pace is how fast the embedder was, the later the more it counts.
type pace struct{ docs, size, seconds float64 }

// paceDecay is what a batch leaves of those before it.
const paceDecay = .8

func (x *Indexer) ran(b *batch, took time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := &x.pace
	p.docs = p.docs*paceDecay + float64(b.docs-b.partial)
	p.size = p.size*paceDecay + float64(b.size)
	p.seconds = p.seconds*paceDecay + took.Seconds()
}

// slowStart is how many batches it takes until they are as large as they may be, each twice as large as the one before: a
// process that is always killed early stores something too.
const slowStart = 5

// room is how many texts a batch takes and of what size: all that is allowed, after a slow start, or what can be done in
// half the time that is left, so that a short deadline brings little and not nothing. The first batch under a deadline is
// a probe.
func (x *Indexer) room(ctx context.Context) (texts, size int) {
	deadline, ok := ctx.Deadline()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !ok || x.pace.size == 0 || x.pace.seconds == 0 {
		slow := slowStart - x.stored
		if ok {
			slow = slowStart
		}
		return max(x.cfg.Texts>>slow, 1), x.cfg.Size >> slow
	}
	left := deadline.Sub(x.cfg.Now()).Seconds() / 2
	return x.cfg.Texts, int(min(max(left, 0)*x.pace.size/x.pace.seconds, float64(x.cfg.Size)))
}
