package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/tool"
)

// toldFact is a passage of the naive reference: a row of a table with the three times that say when it was known.
type toldFact struct {
	id, text                string
	told, replaced, deleted time.Time
	by                      string // what replaced it
}

func (f *toldFact) live() bool { return f.by == "" && f.deleted.IsZero() }

func (f *toldFact) knownBefore(t time.Time) bool {
	return f.told.Before(t) && (f.replaced.IsZero() || !f.replaced.Before(t)) && (f.deleted.IsZero() || !f.deleted.Before(t))
}

// factWorld plays a random history through the functions, and keeps the reference beside it.
type factWorld struct {
	*env
	m     *script.Model
	r     *rand.Rand
	facts []*toldFact
	notes []memgpt.Entry // messages that facts may be taken from
	n     int
}

func (w *factWorld) text() string {
	w.n++
	return []string{fmt.Sprintf("The harbour has berth %d free.", w.n), fmt.Sprintf("港口 harbour 第%d号泊位是空的。", w.n)}[w.n%2]
}

// source picks where a fact is from: nowhere, or some messages. It returns the arguments and when it was told.
func (w *factWorld) source() (args []any, told time.Time) {
	if len(w.notes) == 0 || w.r.IntN(2) == 0 {
		return nil, time.Time{}
	}
	var ids []string
	for range 1 + w.r.IntN(2) {
		e := w.notes[w.r.IntN(len(w.notes))]
		ids = append(ids, e.ID)
		if e.Time.After(told) {
			told = e.Time
		}
	}
	return []any{"from", ids}, told
}

func (w *factWorld) pick(n int) []*toldFact {
	var live []*toldFact
	for _, f := range w.facts {
		if f.live() {
			live = append(live, f)
		}
	}
	w.r.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	return live[:min(n, len(live))]
}

// done notes a new passage that replaces others. The clock stands where it stood when the function ran.
func (w *factWorld) done(result, text string, told time.Time, old []*toldFact) {
	w.t.Helper()
	id, now := passageID.FindString(result), w.now
	f := &toldFact{id: id, text: text, told: told}
	if told.IsZero() {
		f.told = now
	}
	for _, o := range old {
		o.by, o.replaced = id, f.told
		if !o.told.Before(f.told) {
			o.replaced = now
		}
	}
	w.facts = append(w.facts, f)
}

func (w *factWorld) step() {
	w.now = w.now.Add(time.Duration(1+w.r.IntN(9*24)) * time.Hour)
	args, told := w.source()
	text := w.text()
	switch old := w.pick(1 + w.r.IntN(3)); w.r.IntN(9) {
	case 0:
		w.m.Add(script.Say("noted"))
		w.say("A note on ships.")
		for _, e := range w.log() {
			if e.Message.Role == memgpt.RoleUser && e.Message.Said() == "A note on ships." && !slices.ContainsFunc(w.notes, func(n memgpt.Entry) bool { return n.ID == e.ID }) {
				w.notes = append(w.notes, e)
			}
		}
	case 1, 2, 3:
		w.done(w.ok(w.m, "archival_memory_insert", append(args, "content", text, "about", "2020-0"+fmt.Sprint(1+w.r.IntN(9)))...), text, told, nil)
	case 4, 5:
		if len(old) > 0 {
			w.done(w.ok(w.m, "archival_memory_update", append(args, "content", text, "id", old[0].id)...), text, told, old[:1])
		}
	case 6:
		if len(old) > 1 {
			var ids []string
			for _, o := range old {
				ids = append(ids, o.id)
			}
			w.done(w.ok(w.m, "archival_memory_merge", append(args, "content", text, "ids", ids)...), text, told, old)
		}
	case 7:
		if len(old) > 0 {
			w.ok(w.m, "archival_memory_delete", "id", old[0].id)
			old[0].deleted = w.now
		}
	case 8:
		w.undo(old)
	}
}

// undo takes the replacement back that stored a live passage.
func (w *factWorld) undo(old []*toldFact) {
	if len(old) == 0 {
		return
	}
	var back []*toldFact
	for _, f := range w.facts {
		if f.by == old[0].id {
			back = append(back, f)
		}
	}
	done, err := w.kernel.Revive(w.t.Context(), "", w.agent.ID, time.UTC, old[0].id)
	if len(back) == 0 {
		if memgpt.CodeOf(err) != memgpt.CodeInvalid {
			w.t.Errorf("what replaced nothing was taken back: %+v, %v", done, err)
		}
		return
	}
	must(w.t, err)
	if len(done.Live) != len(back) || done.Retired != old[0].id {
		w.t.Errorf("of %d passages came back: %+v", len(back), done)
	}
	old[0].deleted = w.now
	for _, f := range back {
		f.by, f.replaced = "", time.Time{}
	}
}

// check compares a search with the reference. A zero time is a search of now.
func (w *factWorld) check(asOf time.Time) {
	w.t.Helper()
	var want []string
	args := []any{"query", "harbour"}
	for _, f := range w.facts {
		if asOf.IsZero() && f.live() || !asOf.IsZero() && f.knownBefore(asOf) {
			want = append(want, f.id+" "+f.text+" "+f.by)
		}
	}
	if !asOf.IsZero() {
		args = append(args, "as_of", asOf.AddDate(0, 0, -1).Format("2006-01-02"))
	}
	var got []string
	found := w.ok(w.m, "archival_memory_search", args...)
	if total := fmt.Sprintf(" of %d (", len(want)); len(want) > 0 && !strings.Contains(found, total) { // the index knows it as well as the passages do
		w.t.Errorf("as of %v not%s: %.80s", asOf, total, found)
	}
	for _, h := range hits(w.t, found) {
		got = append(got, h.ID+" "+h.Text+" "+h.SupersededBy)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		w.t.Errorf("as of %v, now %v:\nwant\n%s\ngot\n%s", asOf, w.now, strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// TestFactsOverTime plays random histories of inserts, updates, merges, deletions and undone replacements, in which facts are told
// out of order, and asks for every month, before and after the end, what was known.
func TestFactsOverTime(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := script.Of()
			w := &factWorld{env: newEnv(t, m, options{seed: seed, window: 200_000, policy: memgpt.Policy{PageSize: 100}}), m: m, r: rand.New(rand.NewPCG(seed, 9))}
			first := w.now
			for i := range 45 {
				w.step()
				if i%15 == 7 { // a searcher that has looked before reads on from there
					w.check(w.now.AddDate(0, -2, 0).Truncate(24 * time.Hour))
				}
			}
			w.check(time.Time{})
			for at := time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, time.UTC); at.Before(w.now.AddDate(0, 2, 0)); at = at.AddDate(0, 1, 0) {
				w.check(at)
			}
			if t.Failed() {
				return
			}
			if n := len(w.facts); n < 10 {
				t.Errorf("only %d facts were told", n)
			}
		})
	}
}

// factsOf returns the agent's passages, dead ones too, by text.
func (e *env) factsOf() map[string]memgpt.Passage {
	e.t.Helper()
	list, err := e.base.PassagesOf(e.t.Context(), store.PassageRange{Owner: e.agent.ID, Dead: true})
	must(e.t, err)
	out := map[string]memgpt.Passage{}
	for _, p := range list {
		out[p.Text] = p
	}
	return out
}

// TestFactsThroughFunctions stores facts with all that can be said of their time, and reads back what was kept.
func TestFactsThroughFunctions(t *testing.T) {
	m := script.Of(script.Say("ok"))
	e := newEnv(t, m, options{zone: "Asia/Tokyo"})
	e.say("I moved to Rome in March, and 我三月搬到了罗马.")
	told := e.log()[0]
	e.now = e.now.AddDate(0, 8, 0)
	first := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "她住在罗马。", "about", "2026年3月", "from", []string{told.ID}))
	p := e.factsOf()["她住在罗马。"]
	if tool.DateText(p.About, e.agent.Location()) != "2026-03" || !p.Learned.Equal(told.Time) || !slices.Equal(p.From, []string{told.ID}) || !p.Time.After(p.Learned.AddDate(0, 7, 0)) {
		t.Errorf("%+v", p)
	}
	contains(t, e.ok(m, "archival_memory_search", "query", "罗马", "as_of", "2026-05"), first)
	contains(t, e.ok(m, "archival_memory_search", "query", "罗马", "as_of", "2026-03"), "No results", "as_of")
	contains(t, e.ok(m, "archival_memory_search", "query", "罗马", "start_date", "2026-03", "end_date", "2026-03"), first)

	for name, args := range map[string][]any{"archival_memory_insert": {"content", "x"}, "archival_memory_update": {"content", "x", "id", first},
		"archival_memory_merge": {"content", "x", "ids", []string{first, first + "0"}}} {
		res := e.do(m, name, append(args, "from", []string{"message-none"})...)
		if !res.Failed || name != "archival_memory_merge" && !strings.Contains(res.Text, "message-none") {
			t.Errorf("%s: %+v", name, res)
		}
	}
	if n := len(e.factsOf()); n != 1 {
		t.Errorf("%d passages after calls that failed", n)
	}

	// What the new text is about ends the old one; an end that is given counts more.
	second := passageID.FindString(strings.TrimPrefix(e.ok(m, "archival_memory_update", "id", first, "content", "她住在巴黎。", "about", "2026-11"), "Stored as "))
	third := passageID.FindString(e.ok(m, "archival_memory_update", "id", second, "content", "她住在奥斯陆。", "ended", "2026-12-02"))
	for text, want := range map[string]string{"她住在罗马。": "2026-11", "她住在巴黎。": "2026-12-02", "她住在奥斯陆。": ""} {
		if got := tool.DateText(e.factsOf()[text].Ended, e.agent.Location()); got != want {
			t.Errorf("%s ended %q, want %q", text, got, want)
		}
	}
	contains(t, e.ok(m, "memory_read", "id", first), `"about":"2026-03"`, `"ended":"2026-11"`, `"learned":"2026-04-07`, `"superseded_by":"`+second, `"newest":"`+third, told.ID)
	contains(t, e.ok(m, "memory_read", "id", third), `"replaces":["`+second)

	// One that is true no more without anything in its place stays where it is.
	contains(t, e.ok(m, "archival_memory_update", "id", third, "content", "", "ended", "2027"), "true until 2027")
	contains(t, e.ok(m, "archival_memory_search", "query", "奥斯陆"), `"ended":"2027"`, third)
	e.counts(1)

	preview, err := e.kernel.PreviewForget(t.Context(), kernel.Forgetting{Agent: e.agent, Messages: []string{told.ID}})
	must(t, err)
	contains(t, strings.Join(preview.Kept, "\n"), first, "took from it")
}

// TestContradictionsThroughFunctions shows both dates when a fact is stored beside another one, and when both are found.
func TestContradictionsThroughFunctions(t *testing.T) {
	m := script.Of()
	e := newEnv(t, m, options{})
	old := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "Lin works at the Kestrel bakery in Rome.", "about", "2019"))
	e.now = e.now.AddDate(0, 1, 0)
	text := e.ok(m, "archival_memory_insert", "content", "Lin works at the Kestrel bakery in Oslo.", "about", "2023-05")
	contains(t, text, "about 2023-05", old, `"about":"2019"`, `"newer":"new"`, "with ended")
	fresh := passageID.FindString(text)
	text = e.ok(m, "archival_memory_search", "query", "where is the Kestrel bakery in Rome")
	contains(t, text, `{"contradict":[{"id":"`+fresh+`","about":"2023-05"`, `{"id":"`+old+`","about":"2019"`, `"newer":"`+fresh)
	if found := hits(t, text); found[0].ID != fresh {
		t.Errorf("the outdated one stands first: %s", text)
	}
}

// TestReviveWhereTheTextIsBack takes a replacement back whose text was stored anew meanwhile, and a merge of several.
func TestReviveWhereTheTextIsBack(t *testing.T) {
	m := script.Of()
	e := newEnv(t, m, options{})
	insert := func(text string) string {
		return passageID.FindString(e.ok(m, "archival_memory_insert", "content", text))
	}
	a, b := insert("Alpha is tall."), insert("Beta is short.")
	merged := passageID.FindString(e.ok(m, "archival_memory_merge", "ids", []string{a, b}, "content", "Alpha is tall, Beta is short."))
	again := insert("alpha is TALL.")
	e.counts(2)
	done, err := e.kernel.Revive(t.Context(), "", e.agent.ID, time.UTC, a)
	must(t, err)
	if len(done.Live) != 1 || done.Live[0].ID != b || len(done.Same) != 1 || done.Same[0].ID != a || done.Same[0].SupersededBy != again || done.Retired != merged {
		t.Errorf("%+v", done)
	}
	e.counts(2)
	found := e.ok(m, "archival_memory_search", "query", "tall short")
	contains(t, found, b, again, "of 2 ")
	excludes(t, found, merged)

	// A passage of its own that was only found to say the same stays, and one that was replaced since is taken back first.
	c := insert("Gamma is round.")
	e.ok(m, "archival_memory_update", "id", b, "content", "Gamma is round.")
	if _, err = e.kernel.Revive(t.Context(), "", e.agent.ID, time.UTC, merged); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("a replacement that is taken back already: %v", err)
	}
	d := passageID.FindString(e.ok(m, "archival_memory_update", "id", c, "content", "Gamma is square."))
	if _, err = e.kernel.Revive(t.Context(), "", e.agent.ID, time.UTC, b); memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), d) {
		t.Errorf("%v", err)
	}
	for _, id := range []string{d, b} {
		done, err = e.kernel.Revive(t.Context(), "", e.agent.ID, time.UTC, id)
		must(t, err)
	}
	if len(done.Live) != 1 || done.Retired != "" {
		t.Errorf("%+v", done)
	}
	e.counts(3)
	if list, err := e.kernel.History(t.Context(), "", e.agent.ID, d); err != nil || len(list) != 1 {
		t.Errorf("the history of what was taken back: %+v, %v", list, err)
	}
}

// TestReviveOneOfSeveral takes replacements back one at a time where a passage replaced others more than once: what it was stored
// for, and what was found to say the same later.
func TestReviveOneOfSeveral(t *testing.T) {
	for _, by := range []string{"what was merged", "what stands, twice", "what was updated"} {
		t.Run(by, func(t *testing.T) {
			m := script.Of()
			e := newEnv(t, m, options{})
			do := func(function string, args ...any) string {
				t.Helper()
				e.now = e.now.Add(time.Hour)
				return passageID.FindString(e.ok(m, function, args...))
			}
			first := do("archival_memory_insert", "content", "Xavier is 30.")
			stands := do("archival_memory_update", "id", first, "content", "Xavier is 31.")
			other := do("archival_memory_insert", "content", "Xavier is thirty-one.")
			do("archival_memory_merge", "ids", []string{stands, other}, "content", "Xavier is 31.")
			third := do("archival_memory_insert", "content", "Xavier counts 31 years.")
			do("archival_memory_update", "id", third, "content", "Xavier is 31.")
			e.counts(1)
			revive := func(id, back, retired, stays string) {
				t.Helper()
				e.now = e.now.Add(time.Hour)
				done, err := e.kernel.Revive(t.Context(), "", e.agent.ID, time.UTC, id)
				must(t, err)
				var ids []string
				for _, p := range done.Live {
					ids = append(ids, p.ID)
				}
				slices.Sort(ids)
				if strings.Join(ids, " ") != back || done.Retired != retired || done.Stays != stays {
					t.Errorf("undo %s: %+v", id, done)
				}
			}
			switch by {
			case "what was merged": // by the id of one of the replaced: that one alone
				revive(other, other, "", stands)
				e.counts(2)
				revive(third, third, "", stands)
				revive(first, first, stands, "")
			case "what stands, twice": // by its own id: the last, the one before, what it was stored for
				revive(stands, third, "", stands)
				revive(stands, other, "", stands)
				e.counts(3)
				revive(stands, first, stands, "")
			case "what was updated": // it goes, and so nothing may stay replaced by it
				all := []string{first, other, third}
				slices.Sort(all)
				revive(first, strings.Join(all, " "), stands, "")
			}
			e.counts(3)
			if _, err := e.kernel.Revive(t.Context(), "", e.agent.ID, time.UTC, stands); memgpt.CodeOf(err) != memgpt.CodeInvalid {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

// TestReviveKeepsTheEnd: what a passage was marked with before it was replaced is there again; what the replacement marked is not.
func TestReviveKeepsTheEnd(t *testing.T) {
	m := script.Of()
	e := newEnv(t, m, options{})
	id := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "Zoe works at Acme.", "about", "2019"))
	for _, want := range []string{"", "2023-05"} {
		if want != "" {
			e.ok(m, "archival_memory_update", "id", id, "content", "", "ended", want)
		}
		by := passageID.FindString(e.ok(m, "archival_memory_update", "id", id, "content", "Zoe worked at Acme until "+want, "ended", "2024"))
		if got := tool.DateText(e.factsOf()["Zoe works at Acme."].Ended, nil); got != "2024" {
			t.Errorf("replaced, it ended %q", got)
		}
		_, err := e.kernel.Revive(t.Context(), "", e.agent.ID, time.UTC, by)
		must(t, err)
		if p := e.factsOf()["Zoe works at Acme."]; tool.DateText(p.Ended, nil) != want || !p.WasEnded.IsZero() || !p.Replaced.IsZero() {
			t.Errorf("it came back as %+v, want ended %q", p, want)
		}
	}
}

// TestEndsBeforeItBegan: no passage ends before what it is about; a year that holds it is no such end.
func TestEndsBeforeItBegan(t *testing.T) {
	m := script.Of()
	e := newEnv(t, m, options{})
	insert := func(text, about string) string {
		return passageID.FindString(e.ok(m, "archival_memory_insert", "content", text, "about", about))
	}
	refused := func(args []any, function string, words ...string) {
		t.Helper()
		res := e.do(m, function, args...)
		if contains(t, res.Text, words...); !res.Failed {
			t.Errorf("%s %v was done: %s", function, args, res.Text)
		}
	}
	a, b := insert("Eve works at Acme.", "2020-05"), insert("Finn lives in Graz.", "2019")
	for _, args := range [][]any{{"id", a, "content", ""}, {"id", a, "content", "Eve worked at Acme."}} {
		refused(append(args, "ended", "2019"), "archival_memory_update", "2019", "2020-05", a, "nothing was changed")
	}
	refused([]any{"ids", []string{a, b}, "content", "Eve and Finn", "ended", "2020-04"}, "archival_memory_merge", "2020-04", a)
	e.counts(2)
	for text, p := range e.factsOf() {
		if !p.Ended.IsZero() || !p.Live() {
			t.Errorf("%s: %+v", text, p)
		}
	}
	e.ok(m, "archival_memory_update", "id", a, "content", "", "ended", "2020")
	e.ok(m, "archival_memory_update", "id", b, "content", "Finn lives in Linz.", "about", "2015")
	if got := tool.DateText(e.factsOf()["Finn lives in Graz."].Ended, nil); got != "2019" {
		t.Errorf("what never held ended %q", got)
	}
}

// TestForgetDates: what a forgotten passage was about, and when it ended, is gone with it: from the passage, from the calls that
// said so under any name, and from their results. Dates of other passages stay.
func TestForgetDates(t *testing.T) {
	m := script.Of()
	e := newEnv(t, m, options{})
	kept := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "The lighthouse of Skagen was lit.", "about", "1858-11-01"))
	var ids []string
	for i, about := range []string{"about", "date", "valid_from"} {
		day := fmt.Sprint("1815-12-1", i)
		ids = append(ids, passageID.FindString(e.ok(m, "archival_memory_insert", "content", fmt.Sprintf("Ada of house number%d was born in Sils.", i), about, day)))
	}
	e.ok(m, "archival_memory_update", "id", ids[0], "content", "", "ended", "1852-11-27")
	ids[1] = passageID.FindString(e.ok(m, "archival_memory_update", "id", ids[1], "content", "Ada of the mill was born in Sils.", "until", "1852-11-28", "about", 1777))
	e.forget(kernel.Forgetting{Passages: ids})
	if found := e.fileBytes("1815-12-1", "1852-11-2", "1777"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if p := e.factsOf()["The lighthouse of Skagen was lit."]; tool.DateText(p.About, nil) != "1858-11-01" {
		t.Errorf("another passage is %+v", p)
	}
	contains(t, e.ok(m, "memory_read", "id", kept), "1858-11-01")
	if log := fmt.Sprintf("%+v", e.log()); !strings.Contains(log, `"about":"1858-11-01"`) || !strings.Contains(log, "(about 1858-11-01)") {
		t.Error("what was said of another passage went")
	}
}
