package kernel

import (
	"context"
	"encoding/json"
	"fmt"

	"memgpt"
	"memgpt/store"
)

// A search record says how often a model looked for stored texts by itself in turns of users that need a look. What it
// does where something was handed over says little: it has what it would look for. So of those turns one in trialEvery is
// left to the model alone, and in trialSoon after one in which it searched. Only such turns count, and those in which
// nothing was found to be handed over. The newest recordKept decide, so that a model that begins to search by itself turns
// handing over off, and one that stops turns it on.
const (
	recordKind  = "search_record"
	recordLeast = 5  // turns before which nothing is known (handing over stays off)
	recordKept  = 10 // turns that decide
	trialEvery  = 8
	trialSoon   = 2
)

// searchRecord is the record of one tenant's model, as it is stored under the model's name.
type searchRecord struct {
	Turns    int    `json:"turns"`    // counted since ever
	Searched int    `json:"searched"` // of them, with a search of the model's own
	Recent   string `json:"recent"`   // the newest of them, oldest first: "1" searched, "0" did not
	Handed   int    `json:"handed"`   // turns since the last trial in which something was handed over

	version int64
}

// low reports whether the record shows that the model searches too little.
func (s *searchRecord) low() bool {
	n := 0
	for _, c := range s.Recent {
		if c == '1' {
			n++
		}
	}
	return len(s.Recent) >= recordLeast && 2*n < len(s.Recent)
}

// trial reports whether the next turn is left to the model alone.
func (s *searchRecord) trial() bool {
	every := trialEvery
	if n := len(s.Recent); n > 0 && s.Recent[n-1] == '1' {
		every = trialSoon
	}
	return s.Handed >= every
}

// count takes a turn in.
func (s *searchRecord) count(handed, searched bool) {
	if handed {
		s.Handed++
		return
	}
	mark := "0"
	s.Turns++
	if searched {
		s.Searched++
		mark = "1"
	}
	s.Recent += mark
	s.Recent = s.Recent[max(len(s.Recent)-recordKept, 0):]
	s.Handed = 0
}

// readSearchRecord reads the record of the turn's model where the mode is auto.
func (r *run) readSearchRecord(ctx context.Context) {
	r.handing.record = nil
	if r.st.Agent.Prefetch.Mode != memgpt.PrefetchAuto {
		return
	}
	rec := new(searchRecord)
	found, err := r.k.cfg.Store.Record(ctx, r.st.Thread.Tenant, recordKind, r.name)
	if err == nil {
		err = json.Unmarshal(found.Data, rec)
		rec.version = found.Version
	} else if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		err = nil
	}
	if err != nil && ctx.Err() == nil {
		r.warnPrefetch(fmt.Errorf("read the record of %s: %w", r.name, err))
	}
	r.handing.record = rec
}

// mayHandOver returns why nothing is handed over to the turn's model; "" where something may be.
func (r *run) mayHandOver() string {
	switch rec := r.handing.record; {
	case rec == nil: // mode on
	case len(rec.Recent) < recordLeast:
		return fmt.Sprintf("auto: only %d turns of the model are known", len(rec.Recent))
	case !rec.low():
		return "auto: the model searches by itself"
	case rec.trial():
		return "auto: left to the model, to see whether it searches by itself"
	}
	return ""
}

// addSearchRecord puts the record, with the turn that ends, into its last commit. After a conflict it is left out: the
// count of one turn is not worth doing a step again and again.
func (r *run) addSearchRecord(c *store.Commit) {
	rec := r.handing.record
	if rec == nil || r.turn.State != memgpt.TurnDone {
		return
	}
	next := *rec
	next.count(r.handing.handed, r.turn.Searches > 0)
	c.Records = append(c.Records, store.Record{Tenant: r.st.Thread.Tenant, Kind: recordKind, ID: r.name, Data: mustJSON(next), Version: rec.version})
}
