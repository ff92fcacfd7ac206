// Package store is the contract of storage: what is kept, how it is committed and how it is read. It owns no behaviour;
// store/sqlite implements it and store/storetest is what every implementation must pass.
package store

import (
	"context"
	"encoding/json"
	"time"

	"memgpt"
)

// Store keeps everything durably. Commits are atomic and durable when they return; reads see every commit that returned
// before they began. It neither analyses nor scores texts. An implementation is safe for concurrent use by many
// goroutines and processes.
//
// Missing rows are reported as *memgpt.Error with CodeNotFound.
type Store interface {
	Commit(ctx context.Context, c *Commit) (Committed, error)
	// Erase takes text out for good. An error that does not begin with "nothing was erased" says that it is out of reach of
	// every read already, and that remains of it may still be in free space: another Erase, of nothing, goes on there.
	Erase(ctx context.Context, e *Erasure) error

	Agent(ctx context.Context, tenant, id string) (memgpt.Agent, error)
	AgentNamed(ctx context.Context, tenant, name string) (memgpt.Agent, error)
	Agents(ctx context.Context, tenant string) ([]memgpt.Agent, error)

	Thread(ctx context.Context, tenant, id string) (memgpt.Thread, error)
	Threads(ctx context.Context, tenant, agent string) ([]memgpt.Thread, error)

	// Blocks returns the blocks with the ids, in the order of the ids.
	Blocks(ctx context.Context, tenant string, ids []string) ([]memgpt.Block, error)
	// BlockHistory returns a block's edits, oldest first.
	BlockHistory(ctx context.Context, tenant, block string) ([]BlockEdit, error)

	// Entries returns entries of one thread in order of Seq.
	Entries(ctx context.Context, q EntryRange) ([]memgpt.Entry, error)
	// EntriesByID returns those of the agent's entries that exist, in the order of the ids.
	EntriesByID(ctx context.Context, tenant, agent string, ids []string) ([]memgpt.Entry, error)
	// EntryKeys returns those of the keys that entries of the agent have.
	EntryKeys(ctx context.Context, tenant, agent string, keys []string) (map[string]bool, error)

	// Passages returns those of the owner's passages that exist, in the order of the ids, dead ones too.
	Passages(ctx context.Context, tenant, owner string, ids []string) ([]memgpt.Passage, error)
	// PassagesOf returns passages of one owner in order of Seq.
	PassagesOf(ctx context.Context, q PassageRange) ([]memgpt.Passage, error)
	// Sources returns the sources of an owner's live passages, sorted by name.
	Sources(ctx context.Context, tenant, owner string) ([]Source, error)
	// PassageKeyed returns the owner's live passage with the key.
	PassageKeyed(ctx context.Context, tenant, owner, key string) (memgpt.Passage, error)

	// Events returns pending events in the order in which they are to be handled: by Class, then by arrival.
	Events(ctx context.Context, q EventRange) ([]memgpt.Event, error)
	// NextDue returns the time of the earliest pending event of any thread; zero when there is none.
	NextDue(ctx context.Context) (time.Time, error)
	Turn(ctx context.Context, tenant, id string) (memgpt.Turn, error)
	// Turns returns the newest turns of a thread, newest first.
	Turns(ctx context.Context, tenant, thread string, limit int) ([]memgpt.Turn, error)

	// Sayings returns rows of the outbox.
	Sayings(ctx context.Context, q SayingRange) ([]Saying, error)

	// Outside counts what the agent has beyond the queue of the thread.
	Outside(ctx context.Context, tenant, agent, thread string) (memgpt.Outside, error)
	// Sizes counts the agent's tiers.
	Sizes(ctx context.Context, tenant, agent string) (Sizes, error)

	// Spending returns what model calls used, by day, agent and model.
	Spending(ctx context.Context, q SpendingRange) ([]Spending, error)

	// Record returns a resource of an adapter; Records all of a kind, by ID.
	Record(ctx context.Context, tenant, kind, id string) (Record, error)
	Records(ctx context.Context, tenant, kind string) ([]Record, error)

	Index

	// Change is a number that grows with every commit of any process.
	Change(ctx context.Context) (int64, error)
	Close() error
}

// Index is the read side of the inverted index: the same rows on every backend. A text is in it from the commit that
// stored it on.
type Index interface {
	// Stats returns an owner's statistics and the document frequency of each term.
	Stats(ctx context.Context, tenant, owner string, terms []string) (Stats, error)
	// Postings yields the documents that hold a term in blocks of ascending numbers, dead ones too. The block is valid
	// until yield returns; yield returns false to stop.
	Postings(ctx context.Context, tenant, owner, term string, yield func(block []Posting) bool) error
	// Meta returns what is known of every document of an owner. It is a snapshot and must not be changed.
	Meta(ctx context.Context, tenant, owner string) (*Meta, error)
	// DocIDs returns the ids of documents by number.
	DocIDs(ctx context.Context, tenant, owner string, numbers []int64) ([]string, error)
	// DocNumbers returns the numbers of those documents that exist.
	DocNumbers(ctx context.Context, tenant, owner string, ids []string) ([]int64, error)

	// Embedded returns, by model, how far an owner's vectors are.
	Embedded(ctx context.Context, tenant, owner string) (map[string]Cursor, error)
	// Partials returns the first documents, limit at most, that a model's cursor has passed and that don't have all of
	// their vectors yet.
	Partials(ctx context.Context, tenant, owner, model string, limit int) ([]Partial, error)
	// Vectors yields a model's vectors of the owner's documents with numbers over after, in the order of documents and
	// pieces, but for partial documents. Data is valid until yield returns; yield returns false to stop, and may use the store. CodeConflict says that
	// the vectors were dropped meanwhile.
	Vectors(ctx context.Context, tenant, owner, model string, after int64, yield func(Vector) bool) error
	// VectorsOf yields those of the documents with the numbers, which ascend.
	VectorsOf(ctx context.Context, tenant, owner, model string, docs []int64, yield func(Vector) bool) error
	// Backlog returns the owners of all tenants that have documents without all of their vectors by the model, those with
	// the fewest first.
	Backlog(ctx context.Context, model string) ([]Backlog, error)
	// Superseded returns the sets of vectors, of all tenants, by other models than this one whose owners have all of their
	// vectors by this one.
	Superseded(ctx context.Context, model string) ([]OwnerModel, error)
}

// Vector is the embedding of a document, or of one piece of a long one. A document without text to embed has none.
type Vector struct {
	Doc   int64  // Doc.Number
	Piece int    // from 0
	Data  []byte // as retrieve packs it; a store doesn't look into it
}

// Vectors are the vectors of all of an owner's documents with numbers over After, up to Through: a commit of them moves
// the owner's cursor for the model, which must stand at After (else CodeConflict). So no vector is lost or doubled,
// whoever embeds and wherever it is interrupted. Through must be over After, and owner and model must have names; else it
// is CodeInvalid.
type Vectors struct {
	Tenant, Owner, Model string
	After, Through       int64
	List                 []Vector
	Partial              []int64 // documents of these, ascending, of which List has only the first pieces, or none
}

// Cursor is how far an owner's vectors of one model are.
type Cursor struct {
	Through int64 // documents up to this one have their vectors, but for
	Partial int64 // so many of them
	Version int64 // another one when vectors of documents up to Through were added or taken away
}

// Partial is a document that the cursor passed before all of its pieces had vectors: its text is long, or a part of the
// text was erased since. The vectors that it has are kept, and no walk yields them until a Rest makes them whole.
type Partial struct {
	Doc    int64
	Pieces int    // that have their vectors
	First  []byte // what the vector of the first one holds; nil without one
}

// Rest is more vectors of a partial document: a commit of it adds them. What Partials told must be so still, and so must
// the Version of the cursor, read before it (else CodeConflict).
type Rest struct {
	Tenant, Owner, Model string
	Doc                  int64
	Pieces               int // Partial.Pieces
	Version              int64
	List                 []Vector // of the pieces that follow
	Whole                bool     // no piece is left: the document is partial no more
}

// Backlog is an owner whose documents from After+1 to Docs have no vectors yet, and Partial of those before them not all.
type Backlog struct {
	Tenant, Owner        string
	After, Docs, Partial int64
}

// Left is how many documents don't have all of their vectors.
func (b *Backlog) Left() int64 { return b.Docs - b.After + b.Partial }

// OwnerModel names an owner's vectors of one model.
type OwnerModel struct{ Tenant, Owner, Model string }

// Posting is one document under a term.
type Posting struct {
	Doc uint32 // Doc.Number
	N   uint32 // occurrences
}

// Stats describes an owner's documents, dead ones excluded.
type Stats struct {
	Docs   int            // how many
	Length int64          // their lengths added up
	DF     map[string]int // documents a term; merely near where documents died lately
}

// Meta describes documents column by column; index i is the document with number i+1.
type Meta struct {
	Time    []int64  // Unix seconds, NoTime when unknown
	Length  []uint32 // Doc.Length
	Kind    []uint8  // index into MetaKinds
	Role    []uint8  // index into MetaRoles
	Dead    []bool   // out of results: superseded, deleted or forgotten
	Thread  []uint32 // index into Threads
	Author  []uint32 // index into Authors
	Session []uint32 // index into Sessions

	Threads, Authors, Sessions []string // "" is among them where a document has none
}

// NoTime stands in Meta.Time for a document without a time.
const NoTime = int64(-1 << 62)

// MetaKinds and MetaRoles give the codes of Meta.Kind and Meta.Role.
var (
	MetaKinds = []memgpt.DocKind{memgpt.KindMessage, memgpt.KindPassage}
	MetaRoles = []memgpt.Role{"", memgpt.RoleSystem, memgpt.RoleUser, memgpt.RoleAssistant, memgpt.RoleTool}
)

// EntryRange selects entries of one thread: those with After < Seq < Before (0 is open), the last Limit of them if Last
// is set, else the first (0 is all).
type EntryRange struct {
	Tenant, Thread string
	After, Before  int64
	Limit          int
	Last           bool
}

// PassageRange selects passages of one owner: those with After < Seq < Before (0 is open), the last Limit of them if Last
// is set, else the first (0 is all).
type PassageRange struct {
	Tenant, Owner string
	Source        string // "" is all
	After, Before int64
	Limit         int
	Last          bool
	Dead          bool // those that are out of results too
}

// Source is a document that passages came from.
type Source struct {
	Name     string
	Passages int // live ones
}

// EventRange selects pending events. Empty fields are open; Until bounds Due, inclusive.
type EventRange struct {
	Tenant, Agent, Thread string
	Key                   string
	Until                 time.Time
	Limit                 int
	AllTenants            bool // Tenant is not looked at
}

// Sizes are the tiers of an agent's memory: the originals (cold) and the index over them (warm).
type Sizes struct {
	Messages, MessageBytes      int64
	Passages, PassageBytes      int64
	Docs, ForwardBytes          int64
	PostingBlocks, PostingBytes int64
}

// Record is a resource that an adapter keeps in the store.
type Record struct {
	Tenant, Kind, ID string
	Data             json.RawMessage
	Version          int64 // optimistic version, see Commit
}

// Commit is one transaction. Rows with a version (agents, threads, blocks, records, sayings) carry the version that was read and
// are stored with that plus one; 0 creates the row. A different version in the store fails the whole commit with
// CodeConflict, a lease that is not the newest with CodeLeaseLost, and a key that exists with CodeExists.
type Commit struct {
	Now time.Time // the committer's clock

	// Acquire takes the lease of a thread if it is free, has ended or its holder is known to be dead; the lease comes in
	// Committed. It never fails the commit.
	Acquire *Lease // Thread and Until are read
	// Lease must be the newest of its thread; it is renewed to its Until, or ended if Release is set.
	Lease   *Lease
	Release bool

	Agents   []memgpt.Agent
	Threads  []memgpt.Thread
	Blocks   []memgpt.Block
	Edits    []BlockEdit
	Entries  []memgpt.Entry
	Passages []memgpt.Passage // inserted, or replaced by ID
	Docs     []Doc
	DeadDocs []DocRef // out of results from now on
	Vectors  []Vectors
	Rests    []Rest         // stored after Vectors
	Unembed  []OwnerModel   // vectors of an owner to be dropped, with their cursor, before Vectors are stored
	Events   []memgpt.Event // inserted, or replaced by ID; a known Key is reported in Committed and inserts nothing
	Consume  []string       // IDs of events that are done with
	Turns    []memgpt.Turn  // inserted, or replaced by ID
	Spending []Spending     // added to what is there
	Sayings  []Saying       // inserted, or replaced by ID; removed where they are over
	Records  []Record
	Drop     []Record // deleted
}

// DocRef names a document by owner and id.
type DocRef struct{ Tenant, Owner, ID string }

// Committed is what a commit gave.
type Committed struct {
	Lease     *Lease         // the acquired lease; nil when it is another's
	Thread    int64          // version of the thread of Acquire, so that a cached copy can be judged
	Pending   int            // due events of the thread of the lease once the commit is made; 0 without a lease
	Shared    int64          // differs from that of an earlier commit if an agent or a block changed in between, by whomever; 0 tells nothing
	Duplicate []memgpt.Event // for each event whose Key was known: the earlier event (its ID and Turn)
}

// Analyzer turns a text into the terms under which it is found. It is pure and safe for concurrent use.
type Analyzer interface {
	Analyze(text IndexText) (terms []TermCount, length int)
}

// IndexText is a text to be indexed with what belongs to it.
type IndexText struct {
	Text   string
	Author string
	Time   time.Time // in the agent's zone; zero when unknown
	Tags   []string
}

// TermCount is a term and how often it stands in a text.
type TermCount struct {
	Term string
	N    int
}

// Doc is the forward row of one searchable text: what the index keeps of it.
type Doc struct {
	Tenant  string
	Owner   string
	Number  int64 // dense from 1 within the owner, given by the store
	ID      string
	Kind    memgpt.DocKind
	Thread  string
	Role    memgpt.Role
	Author  string    // name of who said it; "" when unknown
	Session string    // sitting that it was said in; "" when unknown
	Time    time.Time // zero when unknown
	Length  int       // in words, as the Analyzer counts
	Terms   []TermCount
}

// Load reads a conversation as a kernel works on it. Its reads are not one snapshot: a holder of the thread's lease sees
// no change between them but to blocks, whose versions a commit checks.
func Load(ctx context.Context, s Store, tenant, thread string) (*State, error) {
	var st State
	var err error
	if st.Thread, err = s.Thread(ctx, tenant, thread); err != nil {
		return nil, err
	}
	if err = Refresh(ctx, s, &st); err != nil {
		return nil, err
	}
	st.Queue, err = s.Entries(ctx, EntryRange{Tenant: tenant, Thread: thread, After: st.Thread.Head})
	if err != nil || st.Thread.Asked == 0 || st.Thread.Asked > st.Thread.Head {
		return &st, err
	}
	asked, err := s.Entries(ctx, EntryRange{Tenant: tenant, Thread: thread, After: st.Thread.Asked - 1, Limit: 1})
	if err == nil && len(asked) == 1 {
		st.Asked = &asked[0]
	}
	return &st, err
}

// Refresh reads the agent of a state and its blocks anew: what others may change while a conversation runs.
func Refresh(ctx context.Context, s Store, st *State) error {
	agent, err := s.Agent(ctx, st.Thread.Tenant, st.Thread.Agent)
	if err != nil {
		return err
	}
	blocks, err := s.Blocks(ctx, st.Thread.Tenant, agent.Blocks)
	if err != nil {
		return err
	}
	st.Agent, st.Blocks = agent, blocks
	return nil
}
