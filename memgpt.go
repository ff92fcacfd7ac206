// Package memgpt is the vocabulary of an operating system's memory for language models: agents, conversations, messages,
// blocks, passages, events and turns as plain values, and the contracts by which the packages of this module meet
// ([Model], [Store], [Tool], [Memory], [Searcher], [Analyzer]).
//
// It owns no behaviour beyond encoding and cleaning, does no I/O and imports the standard library only. What runs an
// agent is package kernel, what schedules many is package host.
package memgpt

import "time"

// Agent is the identity and configuration of one agent. Its memory (threads, blocks, passages) refers to it by ID.
type Agent struct {
	ID     string // "agent-" and a UUID
	Tenant string // whose it is; "" on a single-user machine
	Name   string // unique within the tenant

	System    string        // replaces the built-in system instructions; "" keeps them
	Protocol  Protocol      // "" is ProtocolMemGPT
	Model     string        // model's name as its provider knows it; "" leaves it to the kernel's configuration
	Window    int           // tokens of the model's context window that may be used; 0 leaves it to the kernel's configuration
	Zone      string        // IANA time zone in which the agent is shown times; "" is UTC
	Blocks    []string      // IDs of its blocks, in the order in which they are shown
	Tools     []string      // names of tools beside the memory functions; nil means every configured one
	Archives  []string      // names of the shared archives that it reads
	Policy    Policy        // thresholds; zero values mean the defaults
	Heartbeat time.Duration // interval of timer heartbeats; 0 is none
	Prefetch  Prefetch      // the zero value is off
	Budget    Budget        // the zero value is none
	Timers    Timers
	Reach     Reach // the zero value is none
	Tidy      Tidy  // the zero value is off

	Created time.Time
	Version int64 // optimistic version, see Commit
}

// Protocol is the control protocol between kernel and model.
type Protocol string

const (
	// ProtocolMemGPT is the paper's: send_message speaks, text beside a call is inner monologue, request_heartbeat chains.
	ProtocolMemGPT Protocol = "memgpt"
	// ProtocolNative is for models trained on tool use: text speaks, the turn goes on while functions are called.
	ProtocolNative Protocol = "native"
)

// Policy holds the thresholds of the queue manager and the executor. Shares are of the usable window (DESIGN, section 1).
type Policy struct {
	Alert      float64 // share at which the pressure alert is raised; 0 is 0.7 (paper, section 2.2)
	Flush      float64 // share at which the queue is flushed; 0 is 1.0 (paper, section 2.2)
	Target     float64 // share down to which a flush evicts; 0 is 0.5 (paper, section 2.2)
	PageSize   int     // hits a page of search results; 0 is 5 (first implementation)
	MaxSteps   int     // steps a turn; 0 is 50
	MaxRepeats int     // identical calls in a row before the turn is stopped; 0 is 3
}

// Prefetch says when the system looks things up itself for a message of a user and hands them over before the model reads it.
type Prefetch struct {
	Mode   PrefetchMode
	Budget int           // tokens of what is handed over; 0 is 1,000
	Age    time.Duration // what is older is left out; 0 leaves nothing out
}

// PrefetchMode is when the system looks.
type PrefetchMode string

// Modes of prefetch. The zero value is PrefetchOff.
const (
	PrefetchOff  PrefetchMode = "off"
	PrefetchOn   PrefetchMode = "on"
	PrefetchAuto PrefetchMode = "auto" // on for models whose record shows that they search too little
)

// Budget bounds what model calls may use; zeros are no bounds. A day is one of the agent's zone.
type Budget struct{ Tokens, TokensTotal, Nano, NanoTotal int64 } // tokens a day and in all, nano-dollars a day and in all
// Timers says when timers may wake an agent, by the clocks of its zone.
type Timers struct {
	Cron     string // cron line of heartbeats, beside Agent.Heartbeat; "" is none
	Quiet    string // hours, as 22:00-07:00, in which heartbeats and repeating schedules wait; "" is none
	QuietAll bool   // single reminders wait too
	CatchUp  string // what becomes of missed times of repeating schedules: skip, all or once; "" is once
	Turns    int    // that timers may cause on a day; 0 is 48, one in half an hour
}

// Reach says whom an agent reaches beside the users that write to it.
type Reach struct {
	Agents bool          // it may write to other agents, and they to it
	Tags   []string      // under which others find it
	Wait   time.Duration // for another's answer; 0 is 2 minutes
	Hook   string        // URL that is told what it says unasked; "" is none
}

// Tidy says when the agent's memory is tidied in the background, and by whom.
type Tidy struct {
	On    bool
	Turns int           // after so many; 0 is 8
	Idle  time.Duration // after so long without a turn; 0 is 10 minutes
	Model string        // [provider:]model that does it; "" is the agent's own
}

// Thread is one conversation of an agent: a log, and the position in it from which the log is in main context.
type Thread struct {
	ID     string // "conv-" and a UUID
	Tenant string
	Agent  string
	Name   string // unique within the agent; the first one is "main"

	Next   int64 // Seq that the next entry gets; the first is 1
	Head   int64 // entries with Seq <= Head are out of context
	Folded int64 // entries with Seq <= Folded are in Summary; those in (Folded, Head] are set aside and not yet folded
	Asked  int64 // Seq of the newest message of a user; shown even where it is at or before Head; 0 is none

	Summary Summary
	Alerted bool       // the pressure alert of this fill was raised
	Open    []OpenCall // started calls whose results are not in the log
	Paused  time.Time  // timer heartbeats are held back until then
	Seen    time.Time  // time of the last event that a user caused

	Created time.Time
	Version int64 // optimistic version, see Commit
}

// Summary is the head of a thread's queue: the recursive summary and what lay outside main context when it was written.
// It changes only when it is rewritten, so that the prompt's prefix stays (invariant 7).
type Summary struct {
	Text    string // "" when nothing was folded yet
	Covers  int    // how many messages Text stands for
	Outside Outside
	Time    time.Time // when it was written; zero when there is none
	Failed  string    // why the last attempt to fold failed; "" when it did not
}

// Outside counts what an agent has beyond main context. Times are zero when unknown.
type Outside struct {
	Hidden    int       // messages of this thread that are out of context
	First     time.Time // time of the oldest hidden message
	Last      time.Time // time of the newest hidden message
	Elsewhere int       // messages in the agent's other threads
	Passages  int       // live passages in archival storage
	Sources   []string  // names of the sources of passages, sorted
}

// OpenCall is a call that was started and has no result in the log yet.
type OpenCall struct {
	Entry  string // ID of the assistant entry that made it
	CallID string
	Name   string
	Effect Effect
	On     string // with EffectDeferred: ID of the conversation whose answer the turn waits for
}

// Block is a labelled piece of working context.
type Block struct {
	ID          string // "block-" and a UUID
	Tenant      string
	Label       string // unique within an agent
	Description string // tells the model what belongs in it
	Value       string
	Limit       int // in characters (Unicode code points)
	ReadOnly    bool
	Version     int64 // optimistic version, see Commit; counts the edits
}

// Cause says which event led to a change of memory and what kind of origin the event had.
type Cause struct {
	Event  string // ID of the event; "" for the owner's own edits
	Origin Origin
	Agent  string
	Turn   string
	Call   string // name of the function that made the change; in tidying with the id of its call
}

// Passage is one text of archival storage. It is never changed: an update stores a new one that supersedes it.
type Passage struct {
	ID           string // "passage-" and a UUID
	Tenant       string
	Owner        string // agent or shared archive that it belongs to
	Text         string
	Tags         []string
	Seq          int64     // place in the order in which the owner's passages were stored, from 1, given by the store
	Source       string    // name of the document it came from; "" when the agent wrote it
	Heading      string    // what it stands under in the document, as "Part > Chapter"; "" when nothing does
	Position     int64     // where it begins in the document, in bytes of UTF-8
	Time         time.Time // when it was stored
	About        time.Time // from when what it says holds, or when it happened; zero where nothing says so
	Ended        time.Time // since when that is true no more; zero where it is, or nothing says so
	Learned      time.Time // when the agent was told; zero is Time
	From         []string  // IDs of the messages that it was taken from
	Key          string    // normal form of Text, hashed (PassageKey); one live passage an owner and key
	SupersededBy string    // ID of the passage that replaces it
	Superseded   time.Time // since when, by what the agent knew
	Replaced     time.Time // when that was stored; zero where nothing replaced it, and of what older versions of memgpt wrote
	WasEnded     time.Time // Ended before that
	Deleted      time.Time // since when it is out of results; the text stays until the owner forgets it
	Cause        Cause
}

// Live reports whether a passage is part of default results and counts.
func (p *Passage) Live() bool { return p.SupersededBy == "" && p.Deleted.IsZero() }

// Entry is one message in the log of a thread.
type Entry struct {
	ID      string // "message-" and a UUID, or the imported line's own id
	Tenant  string
	Agent   string
	Thread  string
	Seq     int64  // position in the thread's log, from 1
	Turn    string // "" for imported entries
	Step    int    // step of the turn, from 1; 0 for what came before the first
	Time    time.Time
	Key     string // idempotency key of an imported line, unique within the agent; "" for none
	Message Message

	Tokens int // its size in the prompt as last counted, 0 when it wasn't; not stored
}

// Event is one row of the durable inbox. It is consumed by the commit that ends its turn.
type Event struct {
	ID      string // "event-" and a UUID
	Tenant  string
	Agent   string
	Thread  string
	Type    EventType
	Key     string    // idempotency key, unique among the thread's events for a day after consumption; "" for none
	Due     time.Time // not before
	Created time.Time
	Message Message // what the model is told
	Turn    string  // ID of its turn, given at acceptance
	Step    int     // last committed step of its turn; 0 before the first
	Begun   bool    // its message is in the log: its turn has begun and goes on before others begin
	// Delivery says what becomes of an event that comes while a turn runs; "" is DeliverSteer for a user's message and
	// DeliverQueue for all others.
	Delivery Delivery
	Timer    *Timer // of a timer's event; nil for others, and for heartbeats that earlier versions set
	Mail     *Mail  // of a message of another agent; nil for others
	Order    int64  // position in the inbox, given by the store: by store.Class, then by arrival
}

// Mail is what a message between agents carries beside its text.
type Mail struct {
	Thread, Call string   // conversation that it comes from, and what there waits for an answer; "" is nothing
	Answers      string   // Call of the message that it answers; "" is none
	Chain        []string // IDs of the agents that wait for what comes of it, the nearest last
	Hops         int      // messages of agents that led to it, itself included
}

// Timer is what a timer's event knows of its time. Until it has rung, the Message of a schedule's event is the bare note.
type Timer struct {
	Schedule, Cron string    // "schedule-" and a UUID, "" is a heartbeat; when it comes again, "" is never
	Set, For       time.Time // when it was made, and for when; Event.Due is later where it has to wait
	Wait           string    // why it waits, for people
	// After is For of the time before, zero for the first; Seen what the clock showed when For was worked out.
	After, Seen time.Time
	Rung        bool // its time has come: Message is what the model is told
}

// Delivery says what becomes of an event that comes while a turn of its conversation runs.
type Delivery string

// Ways of delivery. Where no turn runs, or where it ends before it could take an event in, the event gets its own turn.
const (
	DeliverSteer   Delivery = "steer"   // the running turn takes it in before its next step
	DeliverQueue   Delivery = "queue"   // it waits for the end of the turn
	DeliverReplace Delivery = "replace" // the turn ends first, cancelled, and the event is handled next
)

// EventType names what happened. It is the "type" of the envelope in which the model reads it.
type EventType string

// Types of events and of the system's entries in the queue.
const (
	EventUser      EventType = "user_message"
	EventAlert     EventType = "system_alert"
	EventHeartbeat EventType = "heartbeat" // requested by a call, or after a failure
	EventTimer     EventType = "timer_heartbeat"
	EventLogin     EventType = "login"
	EventDocument  EventType = "document_loaded"
	EventNotice    EventType = "notice"
	EventSummary   EventType = "summary"
	EventPrefetch  EventType = "prefetch"
	EventAgent     EventType = "agent_message"
	EventOutside   EventType = "outside_event" // from another program
	EventTidy      EventType = "memory_work"   // tidying in the background
)

// Turn is the record of one event's handling.
type Turn struct {
	ID      string // "turn-" and a UUID
	Tenant  string
	Agent   string
	Thread  string
	Event   string
	Type    EventType
	State   TurnState
	Stop    StopReason // "" until it ended
	Into    string     // with StopSteered: ID of the turn that took the event in, where it is answered
	Error   string     // text for a person when State is TurnFailed
	Steps   int
	Spoke   int // messages said to the user
	Usage   Usage
	Flags   []string // what the caller should know, e.g. "memory_write_failed", "upstream_truncated"
	Started time.Time
	Ended   time.Time

	Searches int         // calls by which the model itself looked for stored texts
	Prefetch *Prefetched // what the system looked up for it; nil where it didn't consider to
}

// Prefetched tells what the system looked up for a turn and what came of it.
type Prefetched struct {
	Why    string // why nothing was handed over, e.g. "greeting", "nothing found"; "" where something was
	Query  string
	Hits   []PrefetchHit
	Tokens int  // of what was handed over, by the counter's encoding
	Millis int  // that it took
	Second bool // it looked once more, since the first reply said that it doesn't know
	Used   int  // hits that the model then read or quoted
}

// PrefetchHit is a text that was handed over.
type PrefetchHit struct {
	ID    string
	Kind  DocKind
	Score float64 // see tool.Hit
	Why   string  // the parts of Score
}

// TurnState is where a turn stands.
type TurnState string

// States of a turn.
const (
	TurnQueued    TurnState = "queued"
	TurnRunning   TurnState = "running"
	TurnWaiting   TurnState = "waiting" // for the result of a deferred call
	TurnDone      TurnState = "done"
	TurnFailed    TurnState = "failed"
	TurnCancelled TurnState = "cancelled"
	TurnWithdrawn TurnState = "withdrawn" // its event was taken back before it ran
)

// StopReason says why a turn ended.
type StopReason string

// Reasons for the end of a turn. The first four and StopSteered are good ends.
const (
	StopEnd         StopReason = "end_turn"     // a step asked for no heartbeat
	StopYield       StopReason = "yield"        // the model called yield
	StopSilent      StopReason = "yield_silent" // a user's turn ended without a word
	StopMonologue   StopReason = "monologue"    // nothing was asked, the reply was inner monologue
	StopMaxSteps    StopReason = "max_steps"
	StopRepeated    StopReason = "repeated_call" // the same call with the same arguments again and again
	StopTruncated   StopReason = "truncated"     // the model's replies were cut off repeatedly
	StopEmpty       StopReason = "empty_reply"   // the model answered nothing repeatedly
	StopModel       StopReason = "model_error"
	StopBudget      StopReason = "budget"  // a budget is spent; Turn.Error says which
	StopSteered     StopReason = "steered" // another turn, which ran, took the event in: see Turn.Into
	StopCancelled   StopReason = "cancelled"
	StopReplaced    StopReason = "replaced"    // a later event took its place
	StopInterrupted StopReason = "interrupted" // the process was asked to end; the turn goes on at the next start
)

// Good reports whether the turn did what it was for.
func (r StopReason) Good() bool {
	return r == StopEnd || r == StopYield || r == StopSilent || r == StopMonologue || r == StopSteered
}

// Usage counts tokens as the provider reported them, and what they cost where that is known: for Priced of Calls.
type Usage struct {
	Input     int   `json:"input"`             // tokens of requests, cached and written ones included
	Cached    int   `json:"cached"`            // tokens of Input that came from the provider's cache
	Written   int   `json:"written,omitempty"` // tokens of Input that were put into it
	Output    int   `json:"output"`            // tokens of replies, reasoning included
	Reasoning int   `json:"reasoning"`
	Calls     int   `json:"calls"`                  // model calls
	Priced    int   `json:"priced,omitempty"`       // calls whose cost is in Nano
	Nano      int64 `json:"nano_dollars,omitempty"` // cost
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Cached + v.Cached, u.Written + v.Written, u.Output + v.Output, u.Reasoning + v.Reasoning,
		u.Calls + v.Calls, u.Priced + v.Priced, u.Nano + v.Nano}
}

// DocKind is what a searchable text is.
type DocKind string

// Kinds of searchable texts.
const (
	KindMessage DocKind = "message"
	KindPassage DocKind = "passage"
)
