package card

import (
	"fmt"
	"strings"
	"unicode"
)

// Verdict is the card in a word.
type Verdict string

// Verdicts.
const (
	Can     Verdict = "can"     // the model can run an agent unaided
	Helped  Verdict = "helped"  // it can with the helps in Card.Settings
	Cannot  Verdict = "cannot"  // it can't, whatever help was tried
	Unknown Verdict = "unknown" // time ran out before that was found out
)

// Names of the settings that the card recommends.
const (
	SettingCalls    = "MEMGPT_CALLS"
	SettingPrefetch = "prefetch=on"
)

// essentials are the checks that an agent can't do without.
func essentials() []string {
	return []string{CheckCalls, CheckAnswers, CheckSaves, CheckRepairs, CheckRemembers}
}

// Raise is a figure that a help raises: above the unaided one, or, where memory is looked up for the model, above that with
// the same way of calling functions.
type Raise struct {
	Check string `json:"check"`
	Way   Way    `json:"way"`
	With  Way    `json:"with,omitempty"` // as Figure.With
	From  string `json:"from"`           // as "0 of 3"
	To    string `json:"to"`
}

func letter(r rune) bool { return unicode.IsLetter(r) }

// of writes a figure down.
func (f *Figure) of() string { return fmt.Sprintf("%d of %d", f.Passed, f.Tries) }

// candidate is a set of helps.
type candidate struct {
	calls    Way
	prefetch bool
}

func candidates() (list []candidate) {
	for _, way := range []Way{WayNative, WayPrompted, WayConstrained} {
		list = append(list, candidate{way, false}, candidate{way, true})
	}
	return list
}

// figure returns the figure of an essential check under the helps; nil where it was not tried.
func (c *Card) under(k candidate, check string) *Figure {
	if k.prefetch && check == CheckRemembers {
		if f := c.Figure(check, WayPrefetch); f != nil && f.With == k.calls {
			return f
		}
		return nil
	}
	return c.Figure(check, k.calls)
}

// works reports whether all that an agent needs works under the helps.
func (c *Card) works(k candidate) bool {
	for _, name := range essentials() {
		if f := c.under(k, name); f == nil || !f.good() {
			return false
		}
	}
	return true
}

// settings returns what to set for the helps.
func (k candidate) settings() (list []string) {
	if k.calls != WayNative {
		list = append(list, SettingCalls+"="+string(k.calls))
	}
	if k.prefetch {
		list = append(list, SettingPrefetch)
	}
	return list
}

// bestCalls is the way of calling functions that does best in what an agent needs; the plainest of equals.
func (c *Card) bestCalls() Way {
	best, most := WayNative, -1.0
	for _, way := range []Way{WayNative, WayPrompted, WayConstrained} {
		sum := 0.0
		for _, name := range essentials() {
			if f := c.Figure(name, way); f != nil {
				sum += f.share()
			}
		}
		if sum > most {
			best, most = way, sum
		}
	}
	return best
}

// judge fills in what is to be made of the figures.
func (c *Card) judge() {
	c.Raises, c.Notes = c.raises(), c.notes()
	for _, k := range candidates() {
		if c.works(k) {
			c.Verdict, c.Settings = Can, k.settings()
			if len(c.Settings) > 0 {
				c.Verdict = Helped
			}
			break
		}
	}
	missing, lacks := c.unaided()
	switch {
	case c.Verdict == Can:
		c.Says = "can run an agent"
	case c.Verdict == Helped:
		c.Says = "can run an agent with help: " + strings.Join(c.Settings, ", ") + ". Unaided it can't: " + strings.Join(append(lacks, missing...), "; ")
	case len(lacks) == 0:
		c.Verdict = Unknown
		c.Says = "not known: " + strings.Join(missing, "; ")
	default:
		c.Verdict, c.Settings = Cannot, c.least()
		c.Says = "can't run an agent unaided: " + strings.Join(lacks, "; ") + c.helps()
	}
	if c.StandIn {
		c.Says = "a rule-based stand-in, not a language model; by the same measure it " + c.Says
		c.Settings = nil
	}
}

// unaided says what an agent needs that wasn't tried unaided, and what failed.
func (c *Card) unaided() (missing, lacks []string) {
	for _, name := range essentials() {
		f := c.Figure(name, WayNative)
		switch {
		case f == nil || f.Tries == 0 && f.Open == "":
			missing = append(missing, name+" was not tried")
		case f.Tries == 0:
			missing = append(missing, name+": "+f.Open)
		case !f.good():
			lacks = append(lacks, name+" "+f.of())
		}
	}
	return missing, lacks
}

// helps says of a model that can't run an agent what helps come to.
func (c *Card) helps() string {
	switch {
	case c.StandIn:
		return ""
	case c.Partial && len(c.Raises) == 0:
		return ". There was no time to try all helps"
	case len(c.Raises) == 0:
		return ". None of the helps raises what it lacks"
	case c.Partial:
		return ". Helps raise some of it, and there was no time to try all of them"
	}
	return ". Helps raise some of it, and not enough"
}

// least are the settings that do most for a model that no setting makes fit.
func (c *Card) least() []string {
	k := candidate{calls: c.bestCalls()}
	for _, r := range c.Raises {
		k.prefetch = k.prefetch || r.Way == WayPrefetch && r.With == k.calls
	}
	return k.settings()
}

// raises compares the figures with helps with those without.
func (c *Card) raises() (list []Raise) {
	for _, line := range c.Lines {
		for i := range line.Figures {
			f, base := &line.Figures[i], WayNative
			if f.Way == WayPrefetch {
				base = f.calls()
			}
			plain := c.Figure(line.Check, base)
			if plain != nil && plain != f && plain.Tries > 0 && f.Tries > 0 && f.share() > plain.share() {
				list = append(list, Raise{line.Check, f.Way, f.With, plain.of(), f.of()})
			}
		}
	}
	return list
}

// notes says what doesn't wholly work of the things that an agent can do without.
func (c *Card) notes() (list []string) {
	for _, n := range []struct{ check, text string }{
		{CheckSpeaks, "it doesn't always speak when it is spoken to"},
		{CheckStreams, "its streams are not what its whole replies are: don't trust what is shown while it writes"},
		{CheckCounts, "its server's counts of tokens can't be foretold: leave room, set a smaller window"},
		{CheckParallel, "it doesn't make several calls in one reply: turns take more steps"},
		{CheckForced, "it doesn't obey where a call is required"},
	} {
		if f := c.Figure(n.check, WayNative); f != nil && f.Tries > 0 && !f.full() {
			list = append(list, n.check+" "+f.of()+": "+n.text)
		}
	}
	return list
}
