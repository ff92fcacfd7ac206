// Package tool is the contract between the kernel and the functions that a model can call: what a tool is, and the
// memory that a memory function sees. It owns no function; memtool has the built-in ones. Which piece of a long text is shown
// is decided here once ([ExcerptAt]).
package tool

import (
	"context"
	"encoding/json"
	"time"

	"memgpt"
)

// Tool is a function that a model can call.
type Tool struct {
	Spec   memgpt.ToolSpec
	Effect memgpt.Effect
	// Aliases maps older spellings of arguments to the present ones.
	Aliases map[string]string
	// Final marks a function that takes no request_heartbeat argument.
	Final bool
	// Rewrites marks a function that puts a text in place of a whole block which a model made of what it saw there.
	Rewrites bool
	// Accepts is the schema that arguments are checked against, where Spec leaves out some that may be given; nil is Spec's own.
	Accepts json.RawMessage
	// Search marks a function whose results quote what is stored: they are kept out of the index.
	Search bool
	// Call runs the function. Arguments were checked against the schema. An error becomes a failed result whose text is the
	// error's: it speaks to the model and names the fix.
	Call func(ctx context.Context, in Invocation) (string, error)
}

// Invocation is one call of a tool.
type Invocation struct {
	CallID string
	Args   json.RawMessage
	Memory Memory // the step's working copy; nil for tools that are EffectOutside
	Agent  string
	Thread string
	Turn   string
}

// Memory is the working copy of one step as a memory function sees it. What is changed is committed with the step, or
// thrown away. Errors speak to the model.
type Memory interface {
	// Now is the step's time, in the agent's zone.
	Now() time.Time
	// Block returns a block of working context by label.
	Block(label string) (memgpt.Block, error)
	// SetBlock replaces the value of a block. It fails when the block is read-only, or when the value is over the limit
	// and not shorter than before.
	SetBlock(label, value string) (memgpt.Block, error)

	// Say speaks to the user.
	Say(text string)
	// Yield ends the turn after this step.
	Yield()
	// PauseHeartbeats holds timer heartbeats back.
	PauseHeartbeats(d time.Duration)

	// Search looks through the agent's recall and archival storage, and where passages are wanted through the shared archives
	// that it reads. The present turn is left out. Archives are told by name.
	Search(ctx context.Context, q Query) (Hits, error)
	// Read returns the originals of the message or passage with the id, with its neighbours.
	Read(ctx context.Context, id string, around int) ([]Original, error)
	// PageSize is the number of hits a page that the agent's policy sets.
	PageSize() int
	// Fits reports whether a result with this text is shown to the model whole. What does not fit is shown cut at its end.
	Fits(result string) bool
	// Evict moves the oldest whole steps up to the message with the ID through out of the queue ("" for down to the flush
	// target). A summary replaces them; "" leaves it to the queue manager.
	Evict(ctx context.Context, through, summary string) (Eviction, error)

	// Insert stores a passage. Where the same text is stored already, it returns that one and false.
	Insert(ctx context.Context, p NewPassage) (memgpt.Passage, bool, error)
	// Alike returns stored passages that say what a text says in other words, or the same but for facts; best first.
	Alike(ctx context.Context, text string) ([]Alike, error)
	// Supersede stores a passage that replaces others, which keep their own text. They are true no more since ended; zero is
	// since what the new one is about, else since it was learned.
	Supersede(ctx context.Context, ids []string, ended time.Time, p NewPassage) (memgpt.Passage, error)
	// End notes since when a passage is true no more, and leaves it where it is.
	End(ctx context.Context, id string, ended time.Time) (memgpt.Passage, error)
	// Delete takes a passage out of results and counts.
	Delete(ctx context.Context, id string) (memgpt.Passage, error)

	// Schedule has a note come back to the agent, in this conversation.
	Schedule(ctx context.Context, p Plan) (Reminder, error)
	// Schedules returns the agent's schedules whose time has not come, the next one first.
	Schedules(ctx context.Context) ([]Reminder, error)
	// CancelSchedule takes one back for good.
	CancelSchedule(ctx context.Context, id string) (Reminder, error)

	Mailer
}

// Plan is a note and when it is to come back.
type Plan struct {
	Note string
	For  time.Time // the first time
	Cron string    // when again, by the clocks of the agent's zone; "" is never
}

// Reminder is a schedule whose time has not come.
type Reminder struct {
	ID     string
	Note   string
	Thread string // name of its conversation
	Cron   string // "" comes once
	Set    time.Time
	For    time.Time
	Wait   string // why it comes later than For; "" where it doesn't
}

// Original is a stored text as memory_read shows it.
type Original struct {
	ID       string
	Kind     memgpt.DocKind
	Thread   string // name of its conversation, for messages
	Role     memgpt.Role
	Author   string
	Origin   memgpt.Origin
	Type     memgpt.EventType
	Time     time.Time
	Text     string
	Tags     []string
	Archive  string // name of the shared archive that a passage is from; "" for the agent's own
	Source   string
	Heading  string
	Asked    bool          // it is the one that was asked for, not a neighbour
	Calls    []memgpt.Call // of an assistant's message
	Replaced string        // ID of the passage that supersedes it

	About, Learned, Ended, Superseded time.Time // of a passage; zero where nothing says so
	From                              []string  // IDs of the messages that it was taken from
	Replaces                          []string  // IDs of the passages that it replaced, the latest first
	Newest                            string    // ID at the end of the chain of replacements, where that is not Replaced
}

// Eviction tells what conversation_evict did.
type Eviction struct {
	Messages int // how many left the queue
	Tokens   int // how many tokens they held
	Free     int // tokens free up to the flush mark
	Through  string
}

// Query asks for texts of one owner, and of the archives that it reads.
type Query struct {
	Tenant   string
	Owner    string           // agent or archive
	Archives []string         // IDs of further owners, whose texts are ranked among Owner's as if they were its own
	Text     string           // what to look for; "" lists the newest that pass the filters
	Kinds    []memgpt.DocKind // nil is all
	Roles    []memgpt.Role    // of messages; nil is all
	Threads  []string         // IDs; nil is every conversation
	From     time.Time        // inclusive; zero is open
	To       time.Time        // exclusive; zero is open
	AsOf     time.Time        // search what was known right before then; zero is now
	Tags     []string         // passages that have one of them
	Exclude  []string         // IDs that are no hits
	Page     int              // from 0
	Size     int              // hits a page
	Zone     *time.Location
	Now      time.Time // from when "last week" in Text counts; zero is the searcher's clock
	Known    []string  // texts that may say when "my birthday" is: blocks of working context
	Context  int       // turns to bring along before and after each message
	Explain  bool      // bring the parts of each score along
}

// Hits is one page of results, best first.
type Hits struct {
	Total int // texts that match, over all pages
	Page  int
	Size  int
	List  []Hit

	Model      string  // of the vectors that were compared; "" where words alone were
	Words      string  // why words alone, where vectors were wanted; "" otherwise
	Unembedded float64 // share of the owners' texts without a vector yet, 0 to 1
	// Contradictions are pairs of passages of List that say different things of the same; few of the first are compared.
	Contradictions []Contradiction
	Weak           bool // something shares a little with the query, too little to be called a hit: the list is empty
}

// ManyUnembedded is the share of texts without a vector from which on a search says so.
const ManyUnembedded = .01

// Pages is the number of pages that Total fills.
func (h Hits) Pages() int {
	if h.Size <= 0 || h.Total <= 0 {
		return 0
	}
	return (h.Total-1)/h.Size + 1
}

// Hit is one text found. Score falls along a list; it has no unit and compares within one list only.
type Hit struct {
	ID     string
	Kind   memgpt.DocKind
	Thread string // ID of the conversation of a message
	Role   memgpt.Role
	Author string
	Time   time.Time
	Text   string
	Tags   []string
	Source string
	Origin memgpt.Origin
	Score  float64

	Archive string // which of Query.Archives it is from; "" is Query.Owner

	About, Learned, Ended time.Time // of a passage, see memgpt.Passage
	SupersededBy          string    // by what it was replaced since Query.AsOf,
	Superseded            time.Time // and when

	Before, After []Hit  // neighbours of a message in its conversation, in order, as Query.Context asks
	Parts         []Part // what Score is made of, as Query.Explain asks
}

// Part is one summand or factor of a score.
type Part struct {
	Name  string
	Value float64
}

// Searcher finds texts.
type Searcher interface {
	Search(ctx context.Context, q Query) (Hits, error)
	// Alike returns passages of an owner that say what a text says in other words, or the same but for facts; at most
	// limit, best first, the newer first among equals.
	Alike(ctx context.Context, tenant, owner, text string, limit int) ([]Alike, error)
}

// Embedder turns texts into vectors in which texts of like meaning lie near each other. It is safe for concurrent use.
type Embedder interface {
	// Model is the id that is stored with each vector; vectors of two ids are never compared.
	Model() string
	// Embed returns a vector of length 1 for each text, in their order, all of one dimension. query says that the texts are
	// questions, not stored texts. A text that is too long is cut.
	Embed(ctx context.Context, texts []string, query bool) ([][]float32, error)
}

// Contradiction is a pair of passages that say the same but for facts, so that hardly both are true at one time.
type Contradiction struct {
	First, Second string       // IDs
	Newer         string       // ID of the one that counts: it holds, is about a later time, or was learned later; "" where none is told
	Differs       []Difference // Here is First's
}

// Alike is a passage that resembles a text.
type Alike struct {
	Hit
	Differs []Difference // the facts in which they differ; none where it is the same in other words
}

// Difference is a number, a date, a name or a negation that one text has and the other has otherwise or not.
type Difference struct {
	Kind  string // number, date, name or negation
	Here  string // in the text; "" where it has none
	There string // in the passage
}
