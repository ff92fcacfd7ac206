package eval

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"memgpt"
	"memgpt/kernel"
)

// Suite is an experiment: material to be remembered and questions about it.
type Suite struct {
	Name  string
	Cases []Case
	// Levels says that questions are grouped by level and not by category.
	Levels bool
	// Variants says that each question is asked in several ways, its groups; a report's figures are of the first.
	Variants bool
	// Sessions says that the sessions are ranked which a search brings for a question.
	Sessions bool
	// Weak says that the baseline of one search takes all K texts, also those that are too weak to be shown to an agent.
	Weak bool
	// Contained says that an answer is right if it holds the expected one, where no judge says more.
	Contained bool
	// Scored says that the agent's answer is judged: it must hold the expected one, and all evidence must have been in
	// context.
	Scored bool
	// Data is the name of the file or directory that it was read from, Pooled whether one agent remembers all of it. They are for
	// the reader of a report; no run depends on them.
	Data   string `json:"-"`
	Pooled bool   `json:"-"`
}

// Case is material that one agent remembers, with the questions about it.
type Case struct {
	Name      string
	Persona   string        // value of the agent's block persona
	Human     string        // value of its block human
	Plain     string        // what a baseline is told beside its instructions
	Lines     []kernel.Line // imported into recall storage
	Passages  []Passage     // put into archival storage
	Now       time.Time     // when it is loaded, and asked where a question has no time
	Questions []Question
}

// Passage is a text for archival storage.
type Passage struct{ ID, Text string }

// Question is one question with what is known about its answer.
type Question struct {
	ID     string
	Text   string
	Answer string    // expected; "" when none is known
	Group  string    // category or level
	Time   time.Time // when it is asked; zero leaves it to the case
	Gold   []Evidence
	// Login says that the agent is not asked but told that its user logged in: it is to open the conversation. Persona is
	// what is true of that user, and Opener what a human wrote, "" where that isn't known.
	Login   bool
	Persona []string
	Opener  string
	// Abstain says that the material doesn't hold the answer: saying so is right.
	Abstain bool
	// Faults counts the pieces of evidence that the data names and doesn't have.
	Faults int
}

// Evidence is a stored text that holds the answer to a question, or a part of it.
type Evidence struct{ ID, Text string }

// Names of the suites.
const (
	SuiteLocomo   = "locomo"    // LoCoMo: months of talk between two people
	SuiteMadial   = "madial"    // MADial-Bench: talk in which a memory should come to mind, unasked
	SuiteDMR      = "dmr"       // deep memory retrieval (paper, section 3.1)
	SuiteNestedKV = "nested-kv" // the paper's nested key-value task (section 3.2)

	SuiteRelay       = "relay"       // the same chains in other words
	SuiteOpener      = "opener"      // conversation opener (paper, section 3.1.2)
	SuiteDocQA       = "docqa"       // questions about documents (paper, section 3.2.1)
	SuiteLongMemEval = "longmemeval" // LongMemEval: sessions of a user with an assistant
	SuiteMemDaily    = "memdaily"    // MemDaily: daily notes in Chinese
)

// Suites returns the names of the suites.
func Suites() []string {
	return []string{SuiteLocomo, SuiteMadial, SuiteDMR, SuiteNestedKV, SuiteRelay, SuiteOpener, SuiteDocQA, SuiteLongMemEval, SuiteMemDaily}
}

// Load reads the suite of that name from a path: a directory for nested-kv and relay (see [NestedKV], [Relay]), a file of
// personas for opener (see [Opener]), a file of the unified or a published form for all others (see [Talks], [DocQA]), which alone can
// be pooled.
func Load(name, path string, pooled bool) (*Suite, error) { return LoadSeeded(name, path, pooled, 0) }

// LoadSeeded is Load with a seed for what a suite draws by chance.
func LoadSeeded(name, path string, pooled bool, seed uint64) (*Suite, error) {
	var s *Suite
	var err error
	switch {
	case !slices.Contains(Suites(), name):
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "there is no suite %q; the suites are %s", name, strings.Join(Suites(), ", "))
	case pooled && slices.Contains([]string{SuiteNestedKV, SuiteRelay, SuiteOpener}, name):
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "suite %s can't be pooled: each of its questions has a memory of its own", name)
	case name == SuiteNestedKV:
		s, err = NestedKV(path)
	case name == SuiteRelay:
		s, err = Relay(path)
	case name == SuiteOpener:
		s, err = Opener(path, seed)
	case name == SuiteDocQA:
		s, err = DocQA(path, pooled)
	default:
		s, err = Talks(name, path, pooled)
	}
	if err != nil {
		return nil, fmt.Errorf("read the data of suite %s: %w", name, err)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("name the data of suite %s: %w", name, err)
	}
	s.Data, s.Pooled = filepath.Base(whole), pooled
	s.tellApart()
	return s, nil
}

// tellApart gives questions that share case and id ids of their own, in the order of the data: q, q#2, q#3. Records are paired by
// them, and what a question leaves behind is named by them.
func (s *Suite) tellApart() {
	type key struct{ name, id string }
	taken := map[key]bool{}
	for i := range s.Cases {
		c := &s.Cases[i]
		for j := range c.Questions {
			q := &c.Questions[j]
			id := q.ID
			for n := 2; taken[key{c.Name, q.ID}]; n++ {
				q.ID = id + "#" + strconv.Itoa(n)
			}
			taken[key{c.Name, q.ID}] = true
		}
	}
}

// asked reports whether a question is asked: whether anything is known by which its answer can be measured.
func (q *Question) asked() bool { return len(q.Gold) > 0 || q.Abstain || q.Login }

// Skipped counts the questions that name no evidence and are not asked.
func (s *Suite) Skipped() (n int) {
	for _, c := range s.Cases {
		for _, q := range c.Questions {
			if !q.asked() {
				n++
			}
		}
	}
	return n
}

// pick returns the cases with the questions that are asked: those of which something is known, evenly thinned out to limit.
func (s *Suite) pick(limit int) []Case {
	totals, seen := map[string]int{}, map[string]int{}
	for _, c := range s.Cases {
		for i := range c.Questions {
			if c.Questions[i].asked() {
				totals[s.share(&c.Questions[i])]++
			}
		}
	}
	var cases []Case
	for _, c := range s.Cases {
		c.Questions = slices.DeleteFunc(slices.Clone(c.Questions), func(q Question) bool {
			if !q.asked() {
				return true
			}
			of := s.share(&q)
			i := seen[of]
			seen[of]++
			return !chosen(i, totals[of], limit)
		})
		if len(c.Questions) > 0 {
			cases = append(cases, c)
		}
	}
	return cases
}

// share names the set of questions of which a limit takes its part.
func (s *Suite) share(q *Question) string {
	if s.Levels || s.Variants {
		return q.Group
	}
	return ""
}

// chosen reports whether the i-th of n is among limit that are spread evenly.
func chosen(i, n, limit int) bool {
	return limit <= 0 || limit >= n || i*limit/n != (i+1)*limit/n
}

func countQuestions(cases []Case) (n int) {
	for _, c := range cases {
		n += len(c.Questions)
	}
	return n
}
