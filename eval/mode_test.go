package eval

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/offline"
	"memgpt/model/script"
)

// mute says one thing and never searches, whatever it is offered.
func mute() memgpt.Model {
	return scripted(func(*memgpt.Message, *memgpt.Request) script.Reply { return script.Say("hm") })
}

func TestModesSayWhoLooks(t *testing.T) {
	for _, test := range []struct {
		mode          Mode
		model         memgpt.Model
		seen, handed  bool
		wantsPrefetch bool
	}{
		{ModeNone, seeker("conversation_search", "so"), false, false, false},
		{ModeMemGPT, mute(), false, false, false},
		{ModeMemGPT, seeker("conversation_search", "so"), true, false, false},
		{ModePrefetch, mute(), true, true, true},
		{ModePrefetch, seeker("conversation_search", "so"), true, true, true}, // its call fails: it has no such function
		{ModeBoth, mute(), true, true, true},
	} {
		rep := run(t, Config{Model: test.model, Mode: test.mode}, talkSuite(t))
		if (rep.Evidence > 0) != test.seen || rep.Mode != test.mode || rep.Search != test.mode.searches() || (rep.Prefetch != nil) != test.wantsPrefetch {
			t.Errorf("%s: %+v", test.mode, rep)
		}
		if p := rep.Prefetch; p != nil && (p.Evidence == 0 || p.Turns == 0 || p.Hits == 0 || p.Tokens < 20 || p.Tokens > 1000) {
			t.Errorf("%s: %+v", test.mode, p)
		}
		if test.mode == ModePrefetch && rep.Prefetch.Evidence != rep.Evidence {
			t.Errorf("%v %% of the evidence came from somewhere else than from the system: %+v", rep.Evidence, rep.Prefetch)
		}
	}
	if _, err := Run(t.Context(), Config{Open: newOpener(t).make, Model: mute(), Mode: "dream"}, talkSuite(t)); memgpt.CodeOf(err) != memgpt.CodeInvalid ||
		!strings.Contains(err.Error(), "prefetch, memgpt, both, none") {
		t.Errorf("got %v", err)
	}
}

func TestBudgetBoundsWhatIsHandedOver(t *testing.T) {
	s := talkSuite(t)
	s.Cases = s.Cases[:1]
	s.Cases[0].Questions = s.Cases[0].Questions[:1]
	plants := strings.Fields("pear quince medlar cherry walnut fig mulberry hazel almond apricot peach gooseberry currant elder rowan hawthorn" +
		" damson olive lemon orange chestnut pomegranate persimmon loquat")
	for i, plant := range plants { // more than fits
		s.Cases[0].Lines = append(s.Cases[0].Lines, kernel.Line{ID: fmt.Sprint("x", i), Speaker: "Ana", Time: s.Cases[0].Lines[0].Time,
			Text: "Ana did plant a " + plant + " too, and I watered the " + plant + " every evening until the well was dry."})
	}
	var hits []float64
	for _, budget := range []int{200, 400, 0} {
		rep := run(t, Config{Model: mute(), Mode: ModePrefetch, Budget: budget}, s)
		if limit := float64(max(budget, 1000*(1-min(budget, 1)))); rep.Prefetch.Tokens > limit || rep.Prefetch.Tokens < limit/2 {
			t.Errorf("budget %d: %+v", budget, rep.Prefetch)
		}
		hits = append(hits, rep.Prefetch.Hits)
	}
	if hits[0] >= hits[1] || hits[1] >= hits[2] {
		t.Errorf("hits by budget: %v", hits)
	}
}

func TestFloors(t *testing.T) {
	at := func(score float64, handed int) Record {
		o := Record{Evidence: []Piece{{Handed: handed > 0}, {Handed: handed > 1}}}
		if score > 0 {
			o.Prefetch.Hits = []LookupHit{{Score: score / 2}, {Score: score}}
		}
		return o
	}
	got := floors([]Record{at(3, 2), at(0, 0), at(9, 1), at(5, 0)})
	want := []PrefetchFloor{{9, 25, 12.5}, {5, 50, 12.5}, {3, 75, 37.5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := floors([]Record{at(0, 0)}); got != nil {
		t.Errorf("nothing was said, and yet %v", got)
	}
}

func TestSlipsRepeat(t *testing.T) {
	s := talkSuite(t)
	for i := range 30 {
		q := s.Cases[0].Questions[0]
		q.ID, q.Text = fmt.Sprint("more", i), fmt.Sprintf("What did Ana plant in year %d?", 1990+i)
		s.Cases[0].Questions = append(s.Cases[0].Questions, q)
	}
	rep := func(c offline.Config, mode Mode) *Report {
		m, err := offline.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return run(t, Config{Model: m, Mode: mode}, s)
	}
	never, always := rep(offline.Config{}, ModeMemGPT), rep(offline.Config{ForgetSearch: 1}, ModeMemGPT)
	if always.Searches != 0 || always.Evidence != 0 || never.Evidence < 80 {
		t.Errorf("never: %+v, always: %+v", never, always)
	}
	half := rep(offline.Config{ForgetSearch: .5, Seed: 1}, ModeMemGPT)
	if half.Evidence < never.Evidence/4 || half.Evidence > never.Evidence*3/4 {
		t.Errorf("half: %v of %v", half.Evidence, never.Evidence)
	}
	if diff := cmp.Diff(half, rep(offline.Config{ForgetSearch: .5, Seed: 1}, ModeMemGPT)); diff != "" {
		t.Errorf("it did not repeat: %s", diff)
	}
	other := rep(offline.Config{ForgetSearch: .5, Seed: 2}, ModeMemGPT)
	same := true
	for i := range other.Records {
		same = same && other.Records[i].Searches == half.Records[i].Searches
	}
	if same {
		t.Error("two seeds slip in the same turns")
	}
	if both := rep(offline.Config{ForgetSearch: 1}, ModeBoth); both.Evidence < 80 {
		t.Errorf("the system forgets with the model: %+v", both)
	}
}
