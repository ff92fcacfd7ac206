package memgpt

// Update is something that happens in a turn, as it is told to whoever watches. The types of this file are all there
// are. Deltas are provisional until StepCommitted; StepDiscarded takes them back.
type Update interface{ update() }

// TurnStarted opens the updates of a turn.
type TurnStarted struct{ Turn Turn }

// Streamed is a piece of a reply under way.
type Streamed struct {
	Step  int
	Delta Delta
}

// StepDiscarded takes back what a step streamed.
type StepDiscarded struct {
	Step   int
	Reason string
}

// StepCommitted carries the entries that a commit added to the log, in order.
type StepCommitted struct {
	Step    int
	Entries []Entry
	Usage   Usage // of the turn so far: what the step cost is the difference to the commit before
	Context int   // tokens of the step's request by our own count
}

// TookIn tells that the turn took in an event that came while it ran. Turn is that event's own, which so has ended. What
// the updates after it tell has been done in its knowledge.
type TookIn struct{ Turn Turn }

// Spoke is what the agent said to the user. It comes after the commit that holds it.
type Spoke struct {
	Step         int
	Text, Saying string // Saying is the ID of the words in the outbox where nobody asked for them (store.Saying); else ""
}

// Pressured tells of the pressure alert.
type Pressured struct{ Tokens, Mark int }

// Flushed tells of an eviction.
type Flushed struct {
	Messages, Tokens int
	Failed           string // why no summary was written; "" when one was
	ByModel          bool   // the model evicted by itself
}

// Handed tells that the system looked something up and handed it to the model.
type Handed struct{ Hits, Tokens int }

// Warned is something that a person should know, e.g. that the provider truncated the prompt.
type Warned struct{ Code, Text string }

// TurnEnded closes the updates of a turn.
type TurnEnded struct{ Turn Turn }

func (TurnStarted) update()   {}
func (Streamed) update()      {}
func (StepDiscarded) update() {}
func (StepCommitted) update() {}
func (TookIn) update()        {}
func (Spoke) update()         {}
func (Pressured) update()     {}
func (Flushed) update()       {}
func (Handed) update()        {}
func (Warned) update()        {}
func (TurnEnded) update()     {}
