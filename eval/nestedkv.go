package eval

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"memgpt"
)

// The files of the paper's nested key-value task (section 3.2.2), as they were published.
const (
	pairsFile     = "kv-retrieval-140_keys.jsonl.gz"
	orderingsFile = "random_orderings_100_samples_140_indices_%d_levels.jsonl"
	maxLevels     = 6 // files of orderings
)

// chainPersona is the standing instruction of the task. In the paper, too, the agent's persona says that it must not stop
// before it has seen that a value is no key.
const chainPersona = "My archival storage holds pairs of keys and values, one pair a passage, written as key: value. When I am" +
	" asked for the value of a key, I search archival storage for it. A value may itself be a key of another pair: so I" +
	" look up each value in turn and go on from it, until a value is the key of nothing. That last value is my answer."

// chainPlain is the same instruction for a prompt that has the pairs in it.
const chainPlain = "It holds pairs of keys and values, one pair a line, written as key: value. A value may itself be a key of another" +
	" pair: then look up that key too, and go on until a value is the key of nothing. That last value is the answer."

// NestedKV reads the paper's nested key-value task from the directory that holds its files: 140 pairs of UUIDs, and
// orderings that chain them. Level k is a question whose answer takes k hops beyond the first pair; its orderings are in
// the file for k+1 indices: the value of each index but the last is replaced by the key of the next.
//
// As in the paper's script only the first example of the pairs is used. Other than there, all orderings are asked (the
// script took 11 of 100, and the paper says 30), search is the system's own and not replaced by a substring match, a page
// of results is as everywhere, and answers are judged: the agent must say the last value and every pair of the chain must
// have been in context. The pairs are archival passages, a line each; the paper's "in main context" is a slip.
func NestedKV(dir string) (*Suite, error) {
	pairs, err := readPairs(dir)
	if err != nil {
		return nil, err
	}
	return readChains(SuiteNestedKV, dir, pairs, chainCase)
}

// readChains makes a suite of the orderings in a directory.
func readChains(name, dir string, pairs [][2]string, toCase func(pairs [][2]string, line []byte, n int) (Case, error)) (*Suite, error) {
	s := &Suite{Name: name, Levels: true, Scored: true}
	for n := 1; n <= maxLevels; n++ {
		path := filepath.Join(dir, fmt.Sprintf(orderingsFile, n))
		err := readLines(path, nil, func(line []byte) error {
			c, err := toCase(pairs, line, n)
			c.Name = "level " + strconv.Itoa(n-1) + " ordering " + strconv.Itoa(len(s.Cases))
			s.Cases = append(s.Cases, c)
			return err
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	if len(s.Cases) == 0 {
		return nil, memgpt.Errorf(memgpt.CodeNotFound, "%s: there are no orderings in it ("+orderingsFile+" and so on)", dir, 1)
	}
	return s, nil
}

// errFirst ends reading after the first line.
var errFirst = errors.New("the first line is enough")

func readPairs(dir string) ([][2]string, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "%s is no directory; name the one that holds %s", dir, pairsFile)
	}
	path := filepath.Join(dir, pairsFile)
	var first struct {
		Pairs [][2]string `json:"ordered_kv_records"`
	}
	unzip := func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	err := readLines(path, unzip, func(line []byte) error {
		if err := json.Unmarshal(line, &first); err != nil {
			return fmt.Errorf("it is no example {\"ordered_kv_records\":[[key, value], …]}: %w", err)
		}
		if len(first.Pairs) == 0 {
			return errors.New("the example has no pairs")
		}
		return errFirst
	})
	if err != nil && !errors.Is(err, errFirst) {
		return nil, err
	}
	if err == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "%s: it is empty", path)
	}
	return first.Pairs, nil
}

// readOrder reads an ordering of n indices, and what they make the values of its pairs.
func readOrder(pairs [][2]string, line []byte, n int) (order []int, next map[int]string, err error) {
	if err := json.Unmarshal(line, &order); err != nil || len(order) != n {
		return nil, nil, fmt.Errorf("it is no list of %d numbers", n)
	}
	next = map[int]string{}
	for i, at := range order {
		if _, twice := next[at]; twice || at < 0 || at >= len(pairs) {
			return nil, nil, fmt.Errorf("the index %d is there twice or not one of 0 to %d", at, len(pairs)-1)
		}
		next[at] = pairs[at][1]
		if i+1 < n && order[i+1] >= 0 && order[i+1] < len(pairs) {
			next[at] = pairs[order[i+1]][0]
		}
	}
	return order, next, nil
}

// chainCase makes the case of one ordering of n indices.
func chainCase(pairs [][2]string, line []byte, n int) (Case, error) {
	order, next, err := readOrder(pairs, line, n)
	if err != nil {
		return Case{}, err
	}
	c := Case{Persona: chainPersona, Plain: chainPlain, Now: timeless}
	for i, p := range pairs {
		value := p[1]
		if v, ok := next[i]; ok {
			value = v
		}
		c.Passages = append(c.Passages, Passage{"passage-" + strconv.Itoa(i), p[0] + ": " + value})
	}
	c.Questions = []Question{chainQuestion(pairs, order, c.Passages)}
	return c, nil
}

func chainQuestion(pairs [][2]string, order []int, passages []Passage) Question {
	last := len(order) - 1
	q := Question{ID: fmt.Sprint(order), Group: strconv.Itoa(last), Answer: pairs[order[last]][1],
		Text: "What is the value of the key " + pairs[order[0]][0] + "? Where a value is a key itself, follow it to the end" +
			" and tell me the last value."}
	for _, at := range order {
		q.Gold = append(q.Gold, Evidence(passages[at]))
	}
	return q
}
