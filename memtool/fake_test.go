package memtool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/schema"
	"memgpt/tool"
)

// fake is a memory that records what it was asked and answers what it was told to.
type fake struct {
	room   int // characters of a result that are shown; 0 is no bound
	now    time.Time
	blocks []memgpt.Block
	log    []string // what was done to it
	err    error    // answers every call that can fail, blocks aside
	setErr error

	query     tool.Query
	hits      tool.Hits
	originals []tool.Original
	around    int
	eviction  tool.Eviction
	passages  map[string]string // id by text
	tags      []string
	fact      tool.NewPassage
	ended     time.Time
	alike     []tool.Alike
	reminders []tool.Reminder
}

var tokyo = time.FixedZone("JST", 9*3600)

func newFake() *fake {
	return &fake{
		now: time.Date(2024, 10, 14, 15, 4, 5, 0, tokyo),
		blocks: []memgpt.Block{
			{Label: "human", Value: "Name: Lin\nCity: Hangzhou\nPet: cat", Limit: 2000},
			{Label: "persona", Limit: 2000},
			{Label: "rules", Value: "be kind", Limit: 2000, ReadOnly: true},
		},
		passages: map[string]string{},
	}
}

func (f *fake) note(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

func (f *fake) Now() time.Time { return f.now }

func (f *fake) Block(label string) (memgpt.Block, error) {
	var labels []string
	for _, b := range f.blocks {
		if b.Label == label {
			return b, nil
		}
		labels = append(labels, b.Label)
	}
	return memgpt.Block{}, fmt.Errorf("no block %q; labels are %s", label, strings.Join(labels, ", "))
}

func (f *fake) SetBlock(label, value string) (memgpt.Block, error) {
	if f.setErr != nil {
		return memgpt.Block{}, f.setErr
	}
	i := slices.IndexFunc(f.blocks, func(b memgpt.Block) bool { return b.Label == label })
	f.note("set %s", label)
	f.blocks[i].Value = value
	return f.blocks[i], nil
}

func (f *fake) Say(text string)                 { f.note("say %s", text) }
func (f *fake) Yield()                          { f.note("yield") }
func (f *fake) PauseHeartbeats(d time.Duration) { f.note("pause %v", d) }
func (f *fake) PageSize() int                   { return 5 }
func (f *fake) Fits(result string) bool         { return f.room == 0 || memgpt.Runes(result) <= f.room }

func (f *fake) Search(_ context.Context, q tool.Query) (tool.Hits, error) {
	f.query = q
	return f.hits, f.err
}

func (f *fake) Read(_ context.Context, id string, around int) ([]tool.Original, error) {
	f.around = around
	return f.originals, f.err
}

func (f *fake) Evict(_ context.Context, through, summary string) (tool.Eviction, error) {
	f.note("evict %q %q", through, summary)
	return f.eviction, f.err
}

func (f *fake) Insert(_ context.Context, p tool.NewPassage) (memgpt.Passage, bool, error) {
	if f.err != nil {
		return memgpt.Passage{}, false, f.err
	}
	if id, ok := f.passages[p.Text]; ok {
		return memgpt.Passage{ID: id, Time: f.now.Add(-time.Hour)}, false, nil
	}
	id := fmt.Sprintf("passage-%d", len(f.passages)+1)
	f.passages[p.Text], f.tags, f.fact = id, p.Tags, p
	return memgpt.Passage{ID: id, Time: f.now, About: p.About}, true, nil
}

func (f *fake) Alike(context.Context, string) ([]tool.Alike, error) { return f.alike, f.err }

func (f *fake) Supersede(_ context.Context, ids []string, ended time.Time, p tool.NewPassage) (memgpt.Passage, error) {
	f.fact, f.ended = p, ended
	f.note("supersede %v by %s", ids, p.Text)
	return memgpt.Passage{ID: "passage-new"}, f.err
}

func (f *fake) End(_ context.Context, id string, ended time.Time) (memgpt.Passage, error) {
	f.note("end %s %s", id, tool.DateText(ended, f.now.Location()))
	return memgpt.Passage{ID: id, Ended: ended}, f.err
}

func (f *fake) Schedule(_ context.Context, p tool.Plan) (tool.Reminder, error) {
	f.note("schedule %q for %s cron %q", p.Note, calendar.Format(p.For, f.now.Location()), p.Cron)
	return tool.Reminder{ID: "schedule-1", Note: p.Note, For: p.For, Cron: p.Cron, Set: f.now}, f.err
}

func (f *fake) Schedules(context.Context) ([]tool.Reminder, error) { return f.reminders, f.err }

func (f *fake) CancelSchedule(_ context.Context, id string) (tool.Reminder, error) {
	f.note("cancel %s", id)
	return tool.Reminder{ID: id, Note: "feed\nthe cat", For: f.now}, f.err
}

func (f *fake) Delete(_ context.Context, id string) (memgpt.Passage, error) {
	f.note("delete %s", id)
	return memgpt.Passage{ID: id}, f.err
}

// ready is a function as the executor keeps it.
type ready struct {
	tool.Tool
	schema *schema.Schema
}

// made keeps the functions of each form: making them is costly, and tests make thousands of calls.
var made sync.Map

// named returns a function by name.
func named(t testing.TB, form Form, name string) ready {
	t.Helper()
	if all, ok := made.Load(form); ok {
		return all.(map[string]ready)[name]
	}
	tools, err := Tools(form)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]ready{}
	for _, x := range tools {
		s, err := schema.Parse(accepted(x))
		if err != nil {
			t.Fatal(err)
		}
		all[x.Spec.Name] = ready{x, s}
	}
	made.Store(form, all)
	return all[name]
}

// run calls a function as the executor does: arguments pass through its schema, then it runs.
func (f *fake) run(t testing.TB, form Form, name, args string) (string, error) {
	t.Helper()
	fn := named(t, form, name)
	if fn.schema == nil {
		t.Fatalf("there is no function %s", name)
	}
	fit, _, err := fn.schema.Decode(args, schema.Options{Function: name, Aliases: fn.Aliases})
	if err != nil {
		return "", err
	}
	return fn.Call(context.Background(), tool.Invocation{Args: fit, Memory: f})
}

func (f *fake) ok(t testing.TB, name, args string) string {
	t.Helper()
	text, err := f.run(t, Form{}, name, args)
	if err != nil {
		t.Fatalf("%s(%s): %v", name, args, err)
	}
	return text
}

// fails expects an error that has all the words, and that nothing was done.
func (f *fake) fails(t testing.TB, name, args string, words ...string) {
	t.Helper()
	before, done := slices.Clone(f.blocks), len(f.log)
	text, err := f.run(t, Form{}, name, args)
	if err == nil {
		t.Errorf("%s(%s) gave %q, want an error", name, args, text)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s(%s): %q lacks %q", name, args, err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") || len(f.log) != done {
		t.Errorf("%s(%s): %q, done %v", name, args, err, f.log[done:])
	}
	for i, b := range f.blocks {
		if b.Value != before[i].Value {
			t.Errorf("%s(%s) failed and changed block %s to %q", name, args, b.Label, b.Value)
		}
	}
}

func (f *fake) holds(t testing.TB, label, want string) {
	t.Helper()
	if b, _ := f.Block(label); b.Value != want {
		t.Errorf("block %s is %q, want %q", label, b.Value, want)
	}
}

func argsJSON(t testing.TB, args map[string]any) string {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (f *fake) Write(_ context.Context, agent, text string, ask bool) (string, error) {
	f.note("write %s %q %v", agent, text, ask)
	return agent, f.err
}

func (f *fake) WriteTagged(_ context.Context, tags []string, text string) (names, refused []string, err error) {
	f.note("write tagged %q %q", tags, text)
	return []string{"Ada", "Bo"}, []string{"Cy: busy"}, f.err
}
