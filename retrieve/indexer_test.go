package retrieve

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/store/storetest"
)

// fakeEmbedder gives each text a vector made of its hash.
type fakeEmbedder struct {
	model  string
	before func(texts []string) error                          // nil does nothing
	answer func(texts []string, right [][]float32) [][]float32 // nil answers what is right

	mu    sync.Mutex
	calls [][]string
}

func (f *fakeEmbedder) Model() string { return f.model }

func (f *fakeEmbedder) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	if slices.Equal(texts, plainTexts()) { // no document
		return make([][]float32, len(texts)), errors.New("no prior is wanted")
	}
	f.mu.Lock()
	f.calls = append(f.calls, slices.Clone(texts))
	f.mu.Unlock()
	if query {
		return nil, errors.New("stored texts are no questions")
	}
	if f.before != nil {
		if err := f.before(texts); err != nil {
			return nil, err
		}
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = fakeVector(f.model, text)
	}
	if f.answer != nil {
		vectors = f.answer(texts, vectors)
	}
	return vectors, ctx.Err()
}

func fakeVector(model, text string) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(model + text))
	v := make([]float32, 8)
	for i := range v {
		v[i] = float32(int8(h.Sum64()>>(8*i))) / 128
	}
	return v
}

// stacks is a store with documents whose texts are known.
type stacks struct {
	t    *testing.T
	s    store.Store
	path string
	n    int
	docs map[[2]string][]shelved // by tenant and owner
}

type shelved struct {
	id, text string // text is "" where no vector is wanted
}

func newStacks(t *testing.T) *stacks {
	h := &stacks{t: t, path: filepath.Join(t.TempDir(), "m.db"), docs: map[[2]string][]shelved{}}
	h.s = h.open()
	return h
}

// open opens the storage once more.
func (h *stacks) open() store.Store {
	h.t.Helper()
	s, err := sqlite.Open(h.t.Context(), sqlite.Config{Path: h.path, Unsafe: true})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (h *stacks) commit(c *store.Commit) {
	h.t.Helper()
	if _, err := h.s.Commit(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
}

// say stores messages with their documents, one commit for all.
func (h *stacks) say(tenant, agent string, texts ...string) {
	h.t.Helper()
	key := [2]string{tenant, agent}
	c := &store.Commit{}
	if h.docs[key] == nil {
		c.Agents = []memgpt.Agent{{ID: agent, Tenant: tenant, Name: agent}}
		c.Threads = []memgpt.Thread{{ID: "t-" + agent, Tenant: tenant, Agent: agent, Name: "main", Next: 1}}
	}
	for _, text := range texts {
		h.n++
		id := fmt.Sprint("message ", h.n)
		c.Entries = append(c.Entries, memgpt.Entry{ID: id, Tenant: tenant, Agent: agent, Thread: "t-" + agent, Seq: int64(h.n),
			Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
		c.Docs = append(c.Docs, store.Doc{Tenant: tenant, Owner: agent, ID: id, Kind: memgpt.KindMessage, Length: len(strings.Fields(text))})
		h.docs[key] = append(h.docs[key], shelved{id, text})
	}
	h.commit(c)
}

// archive stores a passage with its document, without it where gone is set.
func (h *stacks) archive(tenant, owner, text string, gone bool) (id string) {
	h.t.Helper()
	h.n++
	id = fmt.Sprint("passage ", h.n)
	c := &store.Commit{Docs: []store.Doc{{Tenant: tenant, Owner: owner, ID: id, Kind: memgpt.KindPassage, Length: len(strings.Fields(text))}}}
	if gone {
		text = ""
	} else {
		c.Passages = []memgpt.Passage{{ID: id, Tenant: tenant, Owner: owner, Text: text}}
	}
	h.commit(c)
	key := [2]string{tenant, owner}
	h.docs[key] = append(h.docs[key], shelved{id, text})
	return id
}

// kill deletes a passage. It must not have its vector yet.
func (h *stacks) kill(tenant, owner, id string) {
	h.t.Helper()
	h.retire(tenant, owner, id, func(p *memgpt.Passage) { p.Deleted = time.Unix(1, 0) })
	for i, d := range h.docs[[2]string{tenant, owner}] {
		if d.id == id {
			h.docs[[2]string{tenant, owner}][i].text = ""
		}
	}
}

// retire takes a passage out of results.
func (h *stacks) retire(tenant, owner, id string, change func(*memgpt.Passage)) {
	h.t.Helper()
	c := &store.Commit{DeadDocs: []store.DocRef{{Tenant: tenant, Owner: owner, ID: id}}}
	list, err := h.s.Passages(h.t.Context(), tenant, owner, []string{id})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range list {
		change(&p)
		c.Passages = append(c.Passages, p)
	}
	h.commit(c)
}

// indexer returns an indexer that has its slow start behind it.
func (h *stacks) indexer(cfg IndexerConfig) *Indexer {
	h.t.Helper()
	if cfg.Store == nil {
		cfg.Store = h.s
	}
	if cfg.Embedder == nil {
		cfg.Embedder = &fakeEmbedder{model: "m"}
	}
	x, err := NewIndexer(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	x.stored = slowStart
	return x
}

// finish embeds batch by batch until nothing is left, and returns how many batches there were.
func (h *stacks) finish(x *Indexer) (batches int) {
	h.t.Helper()
	for {
		_, more, err := x.Some(h.t.Context(), "", "")
		if err != nil {
			h.t.Fatal(err)
		}
		if batches++; !more {
			return batches
		}
		if batches > 10_000 {
			h.t.Fatal("it has no end")
		}
	}
}

// check compares an owner's vectors with what its texts must have, up to its cursor, which is returned.
func (h *stacks) check(tenant, owner, model string) int64 {
	h.t.Helper()
	cursors, err := h.s.Embedded(h.t.Context(), tenant, owner)
	if err != nil {
		h.t.Fatal(err)
	}
	type vector struct {
		Doc   int64
		Piece int
		Data  string
	}
	var want, got []vector
	partial, err := h.s.Partials(h.t.Context(), tenant, owner, model, 1e6)
	if err != nil {
		h.t.Fatal(err)
	}
	for i, d := range h.docs[[2]string{tenant, owner}][:cursors[model].Through] {
		if slices.ContainsFunc(partial, func(p store.Partial) bool { return p.Doc == int64(i+1) }) {
			continue
		}
		for piece, text := range cutPieces(d.text) {
			want = append(want, vector{int64(i + 1), piece, string(packVector(fakeVector(model, text)))})
		}
	}
	err = h.s.Vectors(h.t.Context(), tenant, owner, model, 0, func(v store.Vector) bool {
		got = append(got, vector{v.Doc, v.Piece, string(v.Data)})
		return true
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		h.t.Errorf("vectors of %s differ, error %v (-want +got):\n%.2000s", owner, err, diff)
	}
	return cursors[model].Through
}

// checkAll wants vectors for everything.
func (h *stacks) checkAll(model string) {
	h.t.Helper()
	if list, err := h.s.Backlog(h.t.Context(), model); err != nil || len(list) > 0 {
		h.t.Errorf("the backlog is %+v, error %v", list, err)
	}
	for key, docs := range h.docs {
		if n := h.check(key[0], key[1], model); n != int64(len(docs)) {
			h.t.Errorf("%d of %d documents of %v are done", n, len(docs), key)
		}
	}
}

// fill puts documents of all sorts on the stacks.
func (h *stacks) fill() {
	long := strings.Repeat("A sentence of a few words that goes on. ", 150)
	for i := range 40 {
		h.say("", "a", fmt.Sprint("message number ", i, strings.Repeat(" and more", i*7%13)), "")
		h.say("", fmt.Sprint("small ", i), fmt.Sprint("hello ", i))
	}
	h.say("x", "a", "of another tenant", long, strings.Repeat("我喜欢喝茶。", 300))
	h.archive("", "a", "a fact", false)
	h.archive("", "a", long, false)
	h.archive("", "a", "its original is gone", true)
	h.kill("", "a", h.archive("", "a", "a dead fact", false))
	h.retire("", "a", h.archive("", "a", "a fact that was replaced is found as of then", false), func(p *memgpt.Passage) { p.SupersededBy = "x" })
	h.archive("", "a", " \n ", false)
	h.kill("", "a", h.archive("", "a", "the last is dead", false))
}

func TestIndexer(t *testing.T) {
	h := newStacks(t)
	h.fill()
	f := &fakeEmbedder{model: "m"}
	x := h.indexer(IndexerConfig{Embedder: f, Texts: 16, Size: 2000})
	p, err := x.Progress(t.Context())
	if want := (Progress{Owners: 42, Docs: 130, Done: 0}); err != nil || p != want {
		t.Errorf("progress is %+v, want %+v, error %v", p, want, err)
	}
	if n, more, err := x.Some(t.Context(), "x", "a"); n != 1 || !more || err != nil {
		t.Errorf("of one owner %d were done, more %v, error %v", n, more, err)
	}
	if p, err := x.Progress(t.Context()); err != nil || p.Done != 1 || p.Docs != 130 || p.Rate <= 0 {
		t.Errorf("after a batch progress is %+v, error %v", p, err)
	}
	batches := h.finish(x)
	h.checkAll("m")
	texts, single := 0, 0
	for _, call := range f.calls {
		sum := 0
		for i, text := range call {
			sum += textSize(text)
			if i > 0 && textSize(text) < textSize(call[i-1]) {
				t.Errorf("in a call a text of size %d comes after one of %d", textSize(text), textSize(call[i-1]))
			}
		}
		if len(call) > 16 || len(call) == 0 || len(call) > 1 && sum > 2000 {
			t.Errorf("a call has %d texts of size %d", len(call), sum)
		}
		texts += len(call)
		single += 1 / len(call)
	}
	if len(f.calls) > texts/3 {
		t.Errorf("%d texts took %d calls, %d of them with one, in %d batches", texts, len(f.calls), single, batches)
	}
	if p, err := x.Progress(t.Context()); err != nil || p.Owners+p.Docs+p.Done != 0 {
		t.Errorf("at the end progress is %+v, error %v", p, err)
	}
	if n, more, err := x.Some(t.Context(), "", "none"); n != 0 || more || err != nil {
		t.Errorf("of an owner that isn't there %d were done, more %v, error %v", n, more, err)
	}
	if _, err := NewIndexer(IndexerConfig{Store: h.s, Embedder: &fakeEmbedder{}}); err == nil {
		t.Error("an embedder without a name was taken")
	}
}

// TestIndexerPieces embeds a document of more pieces than a call takes.
func TestIndexerPieces(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one two three four five six seven", "eight")
	f := &fakeEmbedder{model: "m"}
	if n := h.finish(h.indexer(IndexerConfig{Embedder: f, Texts: 3, Cut: strings.Fields})); n != 1 {
		t.Errorf("it took %d batches", n)
	}
	if want := [][]string{{"one", "two", "six"}, {"four", "five", "three"}, {"seven", "eight"}}; !cmp.Equal(f.calls, want) {
		t.Errorf("the calls are %q, want %q", f.calls, want)
	}
	n := 0
	err := h.s.VectorsOf(t.Context(), "", "a", "m", []int64{1}, func(v store.Vector) bool {
		if word := strings.Fields("one two three four five six seven")[v.Piece]; string(v.Data) != string(packVector(fakeVector("m", word))) {
			t.Errorf("piece %d isn't %q", v.Piece, word)
		}
		n++
		return true
	})
	if err != nil || n != 7 {
		t.Errorf("%d pieces, error %v", n, err)
	}
}

// TestIndexerOthers lets another indexer be faster while a text is embedded: what it did stays, the rest of the batch is
// stored.
func TestIndexerOthers(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one", "two")
	h.say("", "b", "three", "four", "five")
	other := h.indexer(IndexerConfig{Store: h.open()})
	f := &fakeEmbedder{model: "m"}
	x := h.indexer(IndexerConfig{Embedder: f})
	f.before = func([]string) error {
		f.before = nil
		_, _, err := other.Some(t.Context(), "", "a")
		return err
	}
	if n, more, err := x.Some(t.Context(), "", ""); n != 3 || !more || err != nil {
		t.Errorf("%d were done, more %v, error %v", n, more, err)
	}
	h.checkAll("m")
	h.say("", "a", "six")
	f.before = func([]string) error {
		f.before = nil
		_, _, err := other.Some(t.Context(), "", "a")
		return err
	}
	if n, more, err := x.Some(t.Context(), "", ""); n != 0 || !more || err != nil {
		t.Errorf("where another did all, %d were done, more %v, error %v", n, more, err)
	}
	if n := h.finish(x); n != 1 {
		t.Errorf("nothing was left, and it took %d batches", n)
	}
	h.checkAll("m")
}

// TestIndexersAtOnce runs three indexers, two of them on one store, while documents come.
func TestIndexersAtOnce(t *testing.T) {
	h := newStacks(t)
	ctx, cancel := context.WithCancel(t.Context())
	second := h.open()
	var wg sync.WaitGroup
	for _, s := range []store.Store{h.s, h.s, second} {
		x := h.indexer(IndexerConfig{Store: s, Texts: 4, Poll: time.Millisecond})
		wg.Go(func() {
			if err := x.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Run ended: %v", err)
			}
		})
	}
	h.fill()
	for {
		list, err := second.Backlog(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		time.Sleep(time.Millisecond) // real time: other goroutines work
	}
	cancel()
	wg.Wait()
	h.checkAllLive("m")
}

// checkAllLive is checkAll where documents may have died after they got their vector.
func (h *stacks) checkAllLive(model string) {
	h.t.Helper()
	for key, docs := range h.docs {
		got := map[int64]string{}
		err := h.s.Vectors(h.t.Context(), key[0], key[1], model, 0, func(v store.Vector) bool {
			got[v.Doc] += string(v.Data)
			return true
		})
		if err != nil {
			h.t.Fatal(err)
		}
		for i, d := range docs {
			var want strings.Builder
			for _, text := range cutPieces(d.text) {
				want.Write(packVector(fakeVector(model, text)))
			}
			if d.text != "" && got[int64(i+1)] != want.String() {
				h.t.Errorf("document %d of %v has the vector of another", i+1, key)
			}
		}
	}
}

// pause is a wait of an indexer; a time put into it ends it.
type pause struct {
	d   time.Duration
	end chan time.Time
}

// waits is a clock whose waits a test ends one by one.
type waits chan pause

func (w waits) After(d time.Duration) <-chan time.Time {
	a := pause{d, make(chan time.Time, 1)}
	w <- a
	return a.end
}

// run starts Run and returns what ends it.
func (h *stacks) run(x *Indexer) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	return func() {
		h.t.Helper()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			h.t.Errorf("Run ended: %v", err)
		}
	}
}

// TestIndexerBackOff lets an embedder fail: it is pause after ever longer waits, told of once, and nothing is lost.
func TestIndexerBackOff(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one", "two")
	h.say("", "b", "three")
	clock := make(waits, 100)
	var told []string
	f := &fakeEmbedder{model: "m", before: func([]string) error { return errors.New("out of order") }}
	x := h.indexer(IndexerConfig{Embedder: f, After: clock.After, Report: func(err error) { told = append(told, err.Error()) }})
	stop := h.run(x)
	want := time.Second
	var last pause
	for i := range 12 {
		last = <-clock
		if last.d != want {
			t.Errorf("a wait of %v, want %v", last.d, want)
		}
		want = min(2*want, 5*time.Minute)
		if i < 11 {
			last.end <- time.Time{}
		}
	}
	if n := h.check("", "a", "m"); n != 0 {
		t.Errorf("%d are done by an embedder that fails", n)
	}
	f.before = nil // Run waits
	last.end <- time.Time{}
	for last = <-clock; last.d != time.Second; last = <-clock {
		last.end <- time.Time{}
	}
	stop()
	h.checkAll("m")
	if len(told) != 1 || !strings.Contains(told[0], "vectors by m: out of order") {
		t.Errorf("told was %q", told)
	}
	// The same error after all was done is told again.
	h.say("", "a", "four")
	f.before = func([]string) error { return errors.New("out of order") }
	h.finishFailing(x, 3)
	if len(told) != 2 {
		t.Errorf("told was %q", told)
	}
}

// finishFailing asks for a batch that fails, n times.
func (h *stacks) finishFailing(x *Indexer, n int) {
	h.t.Helper()
	for range n {
		if n, more, err := x.Some(h.t.Context(), "", ""); n != 0 || !more || err == nil {
			h.t.Errorf("%d were done, more %v, error %v", n, more, err)
		}
	}
}

// TestIndexerPoison has one text that the embedder never takes: everything before it, and the other owners' texts, get
// their vectors.
func TestIndexerPoison(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one", "two", "three", "poison", "four")
	for i := range 5 {
		h.say("", fmt.Sprint("b", i), "five", "six", "seven", "eight", "nine", "ten")
	}
	f := &fakeEmbedder{model: "m", before: func(texts []string) error {
		if slices.Contains(texts, "poison") {
			return errors.New("I can't")
		}
		return nil
	}}
	x := h.indexer(IndexerConfig{Embedder: f, Size: 1000})
	for range 200 {
		_, _, _ = x.Some(t.Context(), "", "")
	}
	if n := h.check("", "a", "m"); n != 3 {
		t.Errorf("%d are done, want those before the one that can't be", n)
	}
	for i := range 5 {
		if n := h.check("", fmt.Sprint("b", i), "m"); n != 6 {
			t.Errorf("%d are done of an owner whose texts can be embedded", n)
		}
	}
	f.before = nil
	h.finish(x)
	h.checkAll("m")
}

// TestIndexerAnswers lets an embedder answer what it mustn't: nothing is stored of it.
func TestIndexerAnswers(t *testing.T) {
	for what, answer := range map[string]func(texts []string, right [][]float32) [][]float32{
		"3 vectors for 4 texts": func(_ []string, r [][]float32) [][]float32 { return r[:3] },
		"5 vectors for 4 texts": func(_ []string, r [][]float32) [][]float32 { return append(r, r[0]) },
		"7 dimensions, want 8":  func(_ []string, r [][]float32) [][]float32 { r[2] = r[2][:7]; return r },
		"0 dimensions": func(_ []string, r [][]float32) [][]float32 {
			for i := range r {
				r[i] = nil
			}
			return r
		},
		"NaN":  func(_ []string, r [][]float32) [][]float32 { r[3][1] = float32(math.NaN()); return r },
		"+Inf": func(_ []string, r [][]float32) [][]float32 { r[0][7] = float32(math.Inf(1)); return r },
	} {
		h := newStacks(t)
		h.say("", "a", "one", "two", "three", "four")
		f := &fakeEmbedder{model: "m", answer: answer}
		x := h.indexer(IndexerConfig{Embedder: f})
		n, more, err := x.Some(t.Context(), "", "")
		if n != 0 || !more || err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %d were done, more %v, error %v", what, n, more, err)
		}
		if n := h.check("", "a", "m"); n != 0 {
			t.Errorf("%s: the cursor stands at %d", what, n)
		}
		f.answer = nil
		h.finish(x)
		h.checkAll("m")
		// A dimension other than that of earlier calls.
		h.say("", "a", "five")
		f.answer = func(_ []string, r [][]float32) [][]float32 { return [][]float32{r[0][:4]} }
		if _, _, err := x.Some(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "4 dimensions, want 8") {
			t.Errorf("another dimension than before: %v", err)
		}
	}
}

// TestIndexerRun wakes Run by a kick and by another store's commit, and lets work go first.
func TestIndexerRun(t *testing.T) {
	h := newStacks(t)
	clock := make(waits, 1000)
	var mu sync.Mutex
	busy := 0
	x := h.indexer(IndexerConfig{After: clock.After, Poll: 7 * time.Second, Busy: func() bool {
		mu.Lock()
		defer mu.Unlock()
		busy--
		return busy >= 0
	}})
	stop := h.run(x)
	poll := func(what string) pause {
		a := <-clock
		if a.d != 7*time.Second {
			t.Errorf("%s: it waits %v", what, a.d)
		}
		return a
	}
	a := poll("at first")
	a.end <- time.Time{}
	a = poll("when nothing changed")
	h.say("", "a", "one")
	x.Kick()
	a = poll("after a kick")
	if n := h.check("", "a", "m"); n != 1 {
		t.Errorf("%d are done after a kick", n)
	}
	mu.Lock()
	busy = 3
	mu.Unlock()
	second := h.s
	h.s = h.open()
	h.say("", "a", "two")
	h.s = second
	a.end <- time.Time{}
	for range 3 {
		w := <-clock
		if w.d != shortWait {
			t.Errorf("while others work it waits %v", w.d)
		}
		if n := h.check("", "a", "m"); n != 1 {
			t.Errorf("%d are done while others work", n)
		}
		w.end <- time.Time{}
	}
	poll("when others are done")
	if n := h.check("", "a", "m"); n != 2 {
		t.Errorf("%d are done when others are done", n)
	}
	stop()
	x.Kick()
	x.Kick() // doesn't block
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, more, err := x.Some(t.Context(), "", ""); !more || memgpt.CodeOf(err) != memgpt.CodeClosed {
		t.Errorf("of a closed store there is more %v, error %v", more, err)
	}
	if err := x.Run(t.Context()); memgpt.CodeOf(err) != memgpt.CodeClosed {
		t.Errorf("Run with a closed store: %v", err)
	}
}

// TestIndexerAlwaysBusy gives documents their vectors where other work never ends.
func TestIndexerAlwaysBusy(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one")
	clock := make(waits, 1000)
	stop := h.run(h.indexer(IndexerConfig{After: clock.After, Busy: func() bool { return true }}))
	n := 0
	for a := <-clock; a.d == shortWait; a = <-clock {
		n++
		a.end <- time.Time{}
	}
	if n != maxShort {
		t.Errorf("it waited %d times", n)
	}
	stop()
	h.checkAll("m")
}

// TestIndexerModels changes the model: it begins at the first document while the old vectors stay, which are dropped
// when the new ones are complete and only where that is wanted.
func TestIndexerModels(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one", "two", "three")
	h.say("", "b", "four")
	h.finish(h.indexer(IndexerConfig{}))
	keep := h.indexer(IndexerConfig{Embedder: &fakeEmbedder{model: "kept"}})
	h.finish(keep)
	h.checkAll("m")
	h.checkAll("kept")
	x := h.indexer(IndexerConfig{Embedder: &fakeEmbedder{model: "new"}, Retire: true, Texts: 2})
	cursors := func() string {
		t.Helper()
		at, err := h.s.Embedded(t.Context(), "", "a")
		if err != nil {
			t.Fatal(err)
		}
		through := map[string]int64{}
		for model, c := range at {
			through[model] = c.Through
		}
		return fmt.Sprint(through)
	}
	if n, more, err := x.Some(t.Context(), "", "a"); n != 2 || !more || err != nil || cursors() != "map[kept:3 m:3 new:2]" {
		t.Errorf("%d were done, more %v, error %v; cursors are %s", n, more, err, cursors())
	}
	h.check("", "a", "m")
	if n, more, err := x.Some(t.Context(), "", "a"); n != 1 || more || err != nil || cursors() != "map[new:3]" {
		t.Errorf("%d were done, more %v, error %v; cursors are %s", n, more, err, cursors())
	}
	if n := h.check("", "b", "m"); n != 1 {
		t.Errorf("the old vectors of an owner without new ones go up to %d", n)
	}
	h.finish(x)
	h.checkAll("new")
}

// TestIndexerDeadline holds a batch to the time that there is, by the embedder's speed: 10 ms a text.
func TestIndexerDeadline(t *testing.T) {
	h := newStacks(t)
	for i := range 60 {
		h.say("", "a", fmt.Sprint("the same length ", i%10))
	}
	now := time.Now()
	end := now.Add(time.Hour)
	f := &fakeEmbedder{model: "m", before: func(texts []string) error {
		now = now.Add(time.Duration(len(texts)) * 10 * time.Millisecond)
		return nil
	}}
	x := h.indexer(IndexerConfig{Embedder: f, Size: 320, Now: func() time.Time { return now }})
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	done := 0
	for _, tt := range []struct {
		left     time.Duration
		min, max int
	}{{300 * time.Millisecond, 1, 1}, {300 * time.Millisecond, 10, 15}, {40 * time.Millisecond, 1, 2}, {-time.Second, 1, 1}, {time.Minute, 13, 13}} {
		now = end.Add(-tt.left)
		n, more, err := x.Some(ctx, "", "")
		if n < tt.min || n > tt.max || !more || err != nil {
			t.Errorf("with %v left %d were done, want %d to %d; more %v, error %v", tt.left, n, tt.min, tt.max, more, err)
		}
		done += n
	}
	if n := h.check("", "a", "m"); n != int64(done) {
		t.Errorf("the cursor stands at %d after %d", n, done)
	}
	// A context that ends while a text is embedded is no failure.
	ended, cancel := context.WithCancel(t.Context())
	f.before = func([]string) error { cancel(); return ended.Err() }
	told := 0
	x.cfg.Report = func(error) { told++ }
	if n, more, err := x.Some(ended, "", ""); n != 0 || !more || !errors.Is(err, context.Canceled) || told != 0 || x.fails != 0 {
		t.Errorf("%d were done, more %v, error %v, told %d times", n, more, err, told)
	}
}

// TestIndexerCrash lets the store die at each commit, before and after it is made; another indexer goes on.
func TestIndexerCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); ; at++ {
			h := newStacks(t)
			h.say("", "a", "one", "two", "three", "four", "five", "six")
			h.say("", "b", "seven", "eight", strings.Repeat("A long text. ", 300))
			faulty := &storetest.Faulty{Inner: h.s, At: at, Commits: true, After: after}
			x := h.indexer(IndexerConfig{Store: faulty, Texts: 2})
			var err error
			for more := true; more && err == nil; {
				_, more, err = x.Some(t.Context(), "", "")
			}
			if faulty.Dead() == (err == nil) {
				t.Fatalf("at %d: the store is dead %v, error %v", at, faulty.Dead(), err)
			}
			h.finish(h.indexer(IndexerConfig{Texts: 2}))
			h.checkAll("m")
			if err == nil {
				if at < 4 {
					t.Errorf("all took %d commits", at-1)
				}
				break
			}
		}
	}
}
