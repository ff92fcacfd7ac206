package retrieve_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// memIndex is a store.Index and retrieve.Texts of plain maps.
type memIndex struct {
	analyzer *retrieve.Analyzer
	owners   map[[2]string]*memOwner
	block    int // postings a block
	askedMu  sync.Mutex
	asked    []int64 // what VectorsOf was asked for
	commits  []store.Commit
}

type memOwner struct {
	meta     store.Meta
	ids      []string
	numbers  map[string]int64
	names    map[string]uint32 // of threads, authors and sessions, each after a letter
	vectors  map[string][]store.Vector
	through  map[string]int64 // what Embedded says, if it isn't that all of a model's are there
	postings map[string][]store.Posting
	docs     int
	length   int64
	entries  map[string]memgpt.Entry
	passages map[string]memgpt.Passage
}

func newMemIndex() *memIndex {
	return &memIndex{analyzer: new(retrieve.Analyzer), owners: map[[2]string]*memOwner{}, block: 128}
}

func (m *memIndex) owner(tenant, owner string) *memOwner {
	key := [2]string{tenant, owner}
	o := m.owners[key]
	if o == nil {
		o = &memOwner{numbers: map[string]int64{}, names: map[string]uint32{}, vectors: map[string][]store.Vector{}, postings: map[string][]store.Posting{},
			entries: map[string]memgpt.Entry{}, passages: map[string]memgpt.Passage{}}
		m.owners[key] = o
	}
	return o
}

func (m *memIndex) addEntry(e memgpt.Entry) {
	o := m.owner(e.Tenant, e.Agent)
	o.entries[e.ID] = e
	m.commits = append(m.commits, store.Commit{Entries: []memgpt.Entry{e}})
	m.add(o, store.Doc{Tenant: e.Tenant, Owner: e.Agent, ID: e.ID, Kind: memgpt.KindMessage, Thread: e.Thread, Role: e.Message.Role, Author: e.Message.Author, Session: e.Message.Session, Time: e.Time},
		store.IndexText{Text: e.Message.Said(), Author: e.Message.Author, Time: e.Time})
}

func (m *memIndex) addPassage(p memgpt.Passage) {
	o := m.owner(p.Tenant, p.Owner)
	o.passages[p.ID] = p
	m.commits = append(m.commits, store.Commit{Passages: []memgpt.Passage{p}})
	m.add(o, store.Doc{Tenant: p.Tenant, Owner: p.Owner, ID: p.ID, Kind: memgpt.KindPassage, Time: p.Time}, store.IndexText{Text: p.Text, Time: p.Time, Tags: p.Tags})
}

func (m *memIndex) add(o *memOwner, d store.Doc, text store.IndexText) {
	d.Terms, d.Length = m.analyzer.Analyze(text)
	o.addDoc(d)
	m.commits[len(m.commits)-1].Docs = []store.Doc{d}
}

func (o *memOwner) addDoc(d store.Doc) {
	o.ids = append(o.ids, d.ID)
	n := int64(len(o.ids))
	o.numbers[d.ID] = n
	unix := store.NoTime
	if !d.Time.IsZero() {
		unix = d.Time.Unix()
	}
	o.meta.Time = append(o.meta.Time, unix)
	o.meta.Length = append(o.meta.Length, uint32(d.Length))
	o.meta.Kind = append(o.meta.Kind, uint8(slices.Index(store.MetaKinds, d.Kind)))
	o.meta.Role = append(o.meta.Role, uint8(slices.Index(store.MetaRoles, d.Role)))
	o.meta.Thread = append(o.meta.Thread, o.name("t", d.Thread, &o.meta.Threads))
	o.meta.Author = append(o.meta.Author, o.name("a", d.Author, &o.meta.Authors))
	o.meta.Session = append(o.meta.Session, o.name("s", d.Session, &o.meta.Sessions))
	o.meta.Dead = append(o.meta.Dead, false)
	for _, t := range d.Terms {
		o.postings[t.Term] = append(o.postings[t.Term], store.Posting{Doc: uint32(n), N: uint32(t.N)})
	}
	o.docs++
	o.length += int64(d.Length)
}

// name returns the place of a name in its list.
func (o *memOwner) name(kind, name string, list *[]string) uint32 {
	n, ok := o.names[kind+name]
	if !ok {
		n = uint32(len(*list))
		o.names[kind+name] = n
		*list = append(*list, name)
	}
	return n
}

// kill takes a document of owner "a" out of results.
func (m *memIndex) kill(id string) {
	m.commits = append(m.commits, store.Commit{DeadDocs: []store.DocRef{{Owner: "a", ID: id}}})
	o := m.owner("", "a")
	i := o.numbers[id] - 1
	o.meta.Dead[i] = true
	o.docs--
	o.length -= int64(o.meta.Length[i])
}

func (m *memIndex) Stats(_ context.Context, tenant, owner string, terms []string) (store.Stats, error) {
	o := m.owner(tenant, owner)
	s := store.Stats{Docs: o.docs, Length: o.length, DF: map[string]int{}}
	for _, t := range terms {
		s.DF[t] = len(o.postings[t])
	}
	return s, nil
}

func (m *memIndex) Postings(_ context.Context, tenant, owner, term string, yield func([]store.Posting) bool) error {
	block := make([]store.Posting, 0, m.block)
	for part := range slices.Chunk(m.owner(tenant, owner).postings[term], m.block) {
		block = append(block[:0], part...) // valid until yield returns, and not after
		if !yield(block) {
			return nil
		}
		clear(block)
	}
	return nil
}

func (m *memIndex) Meta(_ context.Context, tenant, owner string) (*store.Meta, error) {
	return &m.owner(tenant, owner).meta, nil
}

func (m *memIndex) DocIDs(_ context.Context, tenant, owner string, numbers []int64) ([]string, error) {
	var ids []string
	for _, n := range numbers {
		ids = append(ids, m.owner(tenant, owner).ids[n-1])
	}
	return ids, nil
}

func (m *memIndex) DocNumbers(_ context.Context, tenant, owner string, ids []string) ([]int64, error) {
	var numbers []int64
	for _, id := range ids {
		if n, ok := m.owner(tenant, owner).numbers[id]; ok {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

func (m *memIndex) Embedded(_ context.Context, tenant, owner string) (map[string]store.Cursor, error) {
	o := m.owner(tenant, owner)
	cursors := map[string]store.Cursor{}
	for model := range o.vectors {
		cursors[model] = store.Cursor{Through: int64(len(o.ids))} // a test embeds all or nothing,
	}
	for model, n := range o.through { // or says how many
		cursors[model] = store.Cursor{Through: n}
	}
	return cursors, nil
}

func (m *memIndex) Vectors(_ context.Context, tenant, owner, model string, after int64, yield func(store.Vector) bool) error {
	for _, v := range m.owner(tenant, owner).vectors[model] {
		if v.Doc > after && !yield(v) {
			return nil
		}
	}
	return nil
}

func (m *memIndex) VectorsOf(_ context.Context, tenant, owner, model string, docs []int64, yield func(store.Vector) bool) error {
	m.askedMu.Lock()
	m.asked = append(m.asked, docs...)
	m.askedMu.Unlock()
	for _, v := range m.owner(tenant, owner).vectors[model] {
		if _, found := slices.BinarySearch(docs, v.Doc); found && !yield(v) {
			return nil
		}
	}
	return nil
}

func (m *memIndex) Backlog(context.Context, string) ([]store.Backlog, error) { return nil, nil }

func (m *memIndex) Superseded(context.Context, string) ([]store.OwnerModel, error) { return nil, nil }

func (m *memIndex) Partials(context.Context, string, string, string, int) ([]store.Partial, error) {
	return nil, nil
}

func (m *memIndex) EntriesByID(_ context.Context, tenant, agent string, ids []string) ([]memgpt.Entry, error) {
	var out []memgpt.Entry
	for _, id := range ids {
		if e, ok := m.owner(tenant, agent).entries[id]; ok {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memIndex) Passages(_ context.Context, tenant, owner string, ids []string) ([]memgpt.Passage, error) {
	var out []memgpt.Passage
	for _, id := range ids {
		if p, ok := m.owner(tenant, owner).passages[id]; ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// store commits all that was added to a new SQLite store.
func (m *memIndex) store(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "store.db"), Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	first := store.Commit{Agents: []memgpt.Agent{{ID: "a", Name: "a"}}}
	for _, th := range m.owner("", "a").meta.Threads {
		if th != "" {
			first.Threads = append(first.Threads, memgpt.Thread{ID: th, Agent: "a", Name: th, Next: 1})
		}
	}
	for _, c := range append([]store.Commit{first}, m.commits...) {
		c.Now = noon
		if _, err := s.Commit(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// message returns an entry of agent "a" in conversation "conv-main".
func message(n int, text string, at time.Time) memgpt.Entry {
	return memgpt.Entry{ID: fmt.Sprintf("message-%d", n), Agent: "a", Thread: "conv-main", Seq: int64(n), Time: at,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)}
}

// passage returns a passage of owner "a".
func passage(n int, text string, at time.Time, tags ...string) memgpt.Passage {
	return memgpt.Passage{ID: fmt.Sprintf("passage-%d", n), Owner: "a", Text: text, Time: at, Tags: tags, Source: "notes.txt",
		Cause: memgpt.Cause{Origin: memgpt.OriginModel}}
}
