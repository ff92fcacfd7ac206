package store

import (
	"time"

	"memgpt"
)

// Erasure is what an owner wants forgotten, as one transaction. It differs from a Commit in that it changes the past: what
// it names is replaced or removed in every table and index, and afterwards no file of the store holds a byte of what was
// there. Versions are checked as in Commit (CodeConflict), and what it names must exist (CodeNotFound), or nothing of it
// happens. An empty one only finishes the cleaning of files that an earlier one could not.
type Erasure struct {
	Now time.Time

	// Threads are stored with their versions plus one, and their leases end: who runs one of them has read what goes, and
	// his commits fail with CodeLeaseLost.
	Threads   []memgpt.Thread
	Blocks    []memgpt.Block
	Histories []History
	Entries   []memgpt.Entry   // Message replaces that of the entry with the thread and Seq; all else of it stays. Sayings of one that is not the agent's any more go
	Passages  []memgpt.Passage // in place of those with the IDs
	Turns     []memgpt.Turn    // in place of those with the IDs
	Events    []memgpt.Event   // in place of pending ones with the IDs; those that are pending no more are passed over
	Keys      []string         // keys of consumed events of Threads that hold one of these, in any case, are dropped
	// Docs say what stays of documents with their owners and IDs: of their terms those that are among Terms, no more often
	// than there, and Length. One without terms is gone from all indexes. Vectors go in either case. An ID without a
	// document is passed over.
	Docs    []Doc
	Records []Record
	Drop    []Record // deleted, whatever their version; those that are not there are passed over

	GoneThreads []memgpt.Thread // removed with their entries, documents, events, turns and sayings; keys of entries stay
	GoneAgents  []memgpt.Agent  // removed with all that they own, their threads too
	GoneBlocks  []memgpt.Block  // removed with their histories
}

// History is a block's edits, oldest first, in place of all that there are.
type History struct {
	Tenant, Block string
	Edits         []BlockEdit
}

// Empty reports whether there is nothing to erase.
func (e *Erasure) Empty() bool {
	return len(e.Threads)+len(e.Blocks)+len(e.Histories)+len(e.Entries)+len(e.Passages)+len(e.Turns)+len(e.Events)+len(e.Docs)+
		len(e.Records)+len(e.Drop)+len(e.GoneThreads)+len(e.GoneAgents)+len(e.GoneBlocks) == 0
}
