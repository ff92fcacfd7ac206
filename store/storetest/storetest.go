// Package storetest is the contract of store.Store as tests: Run for one open store, RunShared for storage that can be
// opened again and twice at once. It owns the naive model that the index is compared with, and Faulty, a store that dies
// at a chosen call. It knows no implementation.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"memgpt"
	"memgpt/store"
)

// Run tests a store. open returns an empty one; Run closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, test := range []struct {
		name string
		run  func(e *env)
	}{
		{"AgentsRoundTrip", testAgents}, {"ThreadsRoundTrip", testThreads}, {"Versions", testVersions},
		{"NamesAreUnique", testNames}, {"Blocks", testBlocks}, {"Records", testRecords}, {"Spending", testSpending}, {"SpendingRefused", testSpendingRefused}, {"SpendingAtOnce", testSpendingAtOnce},
		{"Sayings", testSayings}, {"SayingsWithTheStep", testSayingsWithTheStep}, {"SayingsClaimedOnce", testSayingsClaimedOnce},
		{"SayingsBound", testSayingsBound}, {"SayingsErased", testSayingsErased},
		{"ConflictUndoesAll", testConflictUndoesAll}, {"NotFound", testNotFound}, {"CancelledCommit", testCancelled},
		{"Entries", testEntries}, {"EntryRanges", testRanges}, {"EntryOrderOfIDs", testEntriesByID},
		{"EntryKeys", testEntryKeys}, {"EntriesTaken", testEntriesTaken}, {"EveryPart", testParts},
		{"Unicode", testUnicode}, {"Times", testTimes},
		{"Passages", testPassages}, {"PassageRanges", testPassageRanges}, {"PassageKeys", testPassageKeys},
		{"Turns", testTurns}, {"Outside", testOutside}, {"OutsideRandom", testOutsideRandom}, {"Sizes", testSizes},
		{"EventOrder", testEventOrder}, {"EventClasses", testEventClasses}, {"EventRanges", testEventRanges}, {"EventReplaced", testEventReplaced},
		{"EventKeys", testEventKeys}, {"EventKeyExpires", testEventKeyExpires}, {"Consume", testConsume},
		{"NextDue", testNextDue},
		{"LeaseNumbers", testLeaseNumbers}, {"LeaseGuards", testLeaseGuards}, {"LeaseExpires", testLeaseExpires},
		{"LeaseThreadVersion", testLeaseThreadVersion},
		{"LeasePending", testLeasePending},
		{"Shared", testShared},
		{"Tenants", testTenants}, {"IndexBasics", testIndexBasics}, {"IndexStops", testIndexStops},
		{"IndexRandom", testIndexRandom}, {"Vectors", testVectors}, {"VectorsRefused", testVectorsRefused},
		{"VectorsAlone", testVectorsAlone}, {"VectorsDead", testVectorsDead}, {"Unembed", testUnembed}, {"VectorTenants", testVectorTenants},
		{"VectorsStop", testVectorsStop}, {"Backlog", testBacklog}, {"VectorsRandom", testVectorsRandom},
		{"Erase", testErase}, {"EraseRefused", testEraseRefused}, {"EraseWhole", testEraseWhole}, {"EraseIndex", testEraseIndex},
		{"EraseVectors", testEraseVectors}, {"ErasePartials", testErasePartials},
		{"Partials", testPartials}, {"PartialsRefused", testPartialsRefused}, {"Superseded", testSuperseded},
		{"Concurrent", testConcurrent}, {"ConcurrentReads", testConcurrentReads},
		{"Change", testChange}, {"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { _ = s.Close() })
			test.run(newEnv(t, s))
		})
	}
}

// RunShared tests storage that outlives a store. storage makes an empty one and returns what opens it, as often as it is
// called, also while it is open.
func RunShared(t *testing.T, storage func(t *testing.T) (open func() store.Store)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open func() store.Store)
	}{
		{"Reopen", testReopen}, {"TwoAtOnce", testTwoAtOnce}, {"TwoHolders", testTwoHolders},
		{"ClosedHolder", testClosedHolder}, {"ChangeOfOthers", testChangeOfOthers}, {"SharedOfOthers", testSharedOfOthers},
		{"IndexOfOthers", testIndexOfOthers}, {"TwoWriters", testTwoWriters}, {"OrderOfOthers", testOrderOfOthers},
		{"EraseOfOthers", testEraseOfOthers},
		{"VectorsOfOthers", testVectorsOfOthers}, {"VectorsRace", testVectorsRace},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, storage(t)) })
	}
}

// env is a store under test with a clock that stands still unless it is moved.
type env struct {
	*testing.T
	s   store.Store
	ctx context.Context
	now time.Time
	n   int
}

func newEnv(t *testing.T, s store.Store) *env {
	return &env{T: t, s: s, ctx: t.Context(), now: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)}
}

// with is the same test on another store.
func (e *env) with(s store.Store) *env {
	c := *e
	c.s = s
	return &c
}

// id returns a new id of the form that NewIDs gives.
func (e *env) id(kind string) string {
	e.n++
	return fmt.Sprintf("%s-%08x-0000-7000-8000-%012x", kind, e.n, e.n*7919)
}

func (e *env) commit(c *store.Commit) store.Committed {
	e.Helper()
	if c.Now.IsZero() {
		c.Now = e.now
	}
	out, err := e.s.Commit(e.ctx, c)
	if err != nil {
		e.Fatalf("commit: %v", err)
	}
	return out
}

// refuse makes a commit that must fail with a code.
func (e *env) refuse(c *store.Commit, code memgpt.Code) error {
	e.Helper()
	if c.Now.IsZero() {
		c.Now = e.now
	}
	out, err := e.s.Commit(e.ctx, c)
	if memgpt.CodeOf(err) != code {
		e.Fatalf("commit: got %+v, error %v; want code %s", out, err, code)
	}
	return err
}

// agent makes an agent with a conversation of the same name.
func (e *env) agent(tenant, id string) (memgpt.Agent, memgpt.Thread) {
	e.Helper()
	a := memgpt.Agent{ID: id, Tenant: tenant, Name: id, Created: e.now}
	t := memgpt.Thread{ID: "t-" + id, Tenant: tenant, Agent: id, Name: "main", Next: 1, Created: e.now}
	e.commit(&store.Commit{Agents: []memgpt.Agent{a}, Threads: []memgpt.Thread{t}})
	a.Version, t.Version = 1, 1
	return a, t
}

// thread makes another conversation of an agent.
func (e *env) thread(a memgpt.Agent, id string) memgpt.Thread {
	e.Helper()
	t := memgpt.Thread{ID: id, Tenant: a.Tenant, Agent: a.ID, Name: id, Next: 1, Created: e.now}
	e.commit(&store.Commit{Threads: []memgpt.Thread{t}})
	t.Version = 1
	return t
}

func (e *env) entry(t memgpt.Thread, seq int64, text string) memgpt.Entry {
	return memgpt.Entry{ID: e.id("message"), Tenant: t.Tenant, Agent: t.Agent, Thread: t.ID, Seq: seq, Turn: e.id("turn"), Step: 1,
		Time: e.now.Add(time.Duration(seq) * time.Second), Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)}
}

func (e *env) event(t memgpt.Thread, due time.Time, text string) memgpt.Event {
	return memgpt.Event{ID: e.id("event"), Tenant: t.Tenant, Agent: t.Agent, Thread: t.ID, Type: memgpt.EventUser, Due: due,
		Created: e.now, Turn: e.id("turn"), Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)}
}

// must returns a value that was read without an error.
func must[T any](v T, err error) func(e *env) T {
	return func(e *env) T {
		e.Helper()
		if err != nil {
			e.Fatalf("read: %v", err)
		}
		return v
	}
}

// same compares; empty and nil lists are the same, and times the same if they are the same instant.
func (e *env) same(what string, got, want any) {
	e.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		e.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func (e *env) missing(what string, err error) {
	e.Helper()
	if memgpt.CodeOf(err) != memgpt.CodeNotFound {
		e.Errorf("%s: error %v, want code %s", what, err, memgpt.CodeNotFound)
	}
}

func (e *env) entries(q store.EntryRange) []memgpt.Entry {
	e.Helper()
	return must(e.s.Entries(e.ctx, q))(e)
}

func (e *env) events(q store.EventRange) []string {
	e.Helper()
	return idsOf(must(e.s.Events(e.ctx, q))(e), func(ev memgpt.Event) string { return ev.ID })
}

func idsOf[T any](list []T, id func(T) string) []string {
	out := make([]string, 0, len(list))
	for _, v := range list {
		out = append(out, id(v))
	}
	return out
}

func sortedIDs[T any](list []T, id func(T) string) []string {
	out := idsOf(list, id)
	slices.Sort(out)
	return out
}
