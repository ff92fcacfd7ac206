package eval

import (
	"fmt"
	"slices"
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
	// Scored says that the agent's answer is judged: it must hold the expected one, and all evidence must have been in
	// context.
	Scored bool
}

// Case is material that one agent remembers, with the questions about it.
type Case struct {
	Name      string
	Persona   string        // value of the agent's block persona
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
)

// Suites returns the names of the suites.
func Suites() []string { return []string{SuiteLocomo, SuiteMadial, SuiteDMR, SuiteNestedKV} }

// Load reads the suite of that name from a path: a directory for nested-kv (see [NestedKV]), a file for all others (see
// [Talks]), which alone can be pooled.
func Load(name, path string, pooled bool) (*Suite, error) {
	var s *Suite
	var err error
	switch {
	case name == SuiteNestedKV && pooled:
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "suite %s can't be pooled: its chains share their pairs", name)
	case name == SuiteNestedKV:
		s, err = NestedKV(path)
	case slices.Contains(Suites(), name):
		s, err = Talks(name, path, pooled)
	default:
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "there is no suite %q; the suites are %s", name, strings.Join(Suites(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read the data of suite %s: %w", name, err)
	}
	return s, nil
}

// Skipped counts the questions that name no evidence and are not asked.
func (s *Suite) Skipped() (n int) {
	for _, c := range s.Cases {
		for _, q := range c.Questions {
			if len(q.Gold) == 0 {
				n++
			}
		}
	}
	return n
}

// pick returns the cases with the questions that are asked: those with evidence, evenly thinned out to limit.
func (s *Suite) pick(limit int) []Case {
	totals, seen := map[string]int{}, map[string]int{}
	for _, c := range s.Cases {
		for i := range c.Questions {
			if len(c.Questions[i].Gold) > 0 {
				totals[s.share(&c.Questions[i])]++
			}
		}
	}
	var cases []Case
	for _, c := range s.Cases {
		c.Questions = slices.DeleteFunc(slices.Clone(c.Questions), func(q Question) bool {
			if len(q.Gold) == 0 {
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
	if s.Levels {
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
