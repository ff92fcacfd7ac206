package retrieve_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/tool"
)

// pool is one line of the evaluation data: a conversation or a set of passages with questions.
type pool struct {
	Docs    []struct{ ID, Text, Time, Who, Session string }
	Queries []struct {
		Q, Cat, Time string
		Gold         []string
	}
}

// sharedData finds the folder of evaluation data beside the module; the test is skipped where there is none.
func sharedData(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Skip("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	data := filepath.Join(dir, "..", "shared", "data", "memory")
	if _, err := os.Stat(data); err != nil {
		t.Skip("evaluation data (../shared/data/memory) is not here")
	}
	return data
}

func readPools(t testing.TB, file string) []pool {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Skipf("evaluation data is not here: %v", err)
	}
	defer f.Close()
	var pools []pool
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var p pool
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		pools = append(pools, p)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return pools
}

var weekday = regexp.MustCompile(` \(\w+\)| 周.`)

// poolTime reads the data's times; zero when there is none.
func poolTime(s string) time.Time {
	s = weekday.ReplaceAllString(s, "")
	for _, layout := range []string{"3:04 pm on 2 January, 2006", "2006/01/02 15:04", "2006-01-02", "2006年01月02日 15:04", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

// indexPool stores a pool as messages. The data repeats the speaker's name before the text; here it is the author.
func indexPool(p pool) *memIndex {
	m := newMemIndex()
	for n, d := range p.Docs {
		e := message(n+1, strings.TrimPrefix(d.Text, d.Who+": "), poolTime(d.Time))
		e.ID = d.ID
		e.Message.Session = d.Session
		if d.Who == "assistant" {
			e.Message.Role = memgpt.RoleAssistant
		} else if d.Who != "user" {
			e.Message.Author = d.Who
		}
		m.addEntry(e)
	}
	return m
}

var depths = [4]int{1, 5, 10, 20}

// recall returns R@1/5/10/20 over pools in per cent, and how many questions have evidence.
func recall(t testing.TB, pools []pool) (r [4]float64, queries int) {
	t.Helper()
	for _, p := range pools {
		m := indexPool(p)
		s, err := retrieve.New(retrieve.Config{Index: m, Store: m})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range p.Queries {
			if len(q.Gold) == 0 {
				continue
			}
			hits, err := s.Search(t.Context(), tool.Query{Owner: "a", Text: q.Q, Size: 20})
			if err != nil {
				t.Fatal(err)
			}
			queries++
			for k, depth := range depths {
				r[k] += share(hits, q.Gold, depth)
			}
		}
	}
	for k := range r {
		r[k] *= 100 / float64(queries)
	}
	return r, queries
}

// share returns how much of the gold stands in the first hits.
func share(hits tool.Hits, gold []string, depth int) float64 {
	found := 0
	for k, h := range hits.List {
		for _, g := range gold {
			if k < depth && h.ID == g {
				found++
			}
		}
	}
	return float64(found) / float64(len(gold))
}

// TestRecall holds word search to what plain BM25 with stems, without stop words and with dates reaches on public
// data. It runs with MEMGPT_LONG=1 and prints the table.
func TestRecall(t *testing.T) {
	if os.Getenv("MEMGPT_LONG") == "" {
		t.Skip("set MEMGPT_LONG=1 to measure recall on the evaluation data")
	}
	dir := sharedData(t)
	for _, c := range []struct {
		file string
		want [4]float64 // what plain BM25 was measured to reach at 1/5/10/20, less a point; 0 is not held
	}{
		// R@5 is 57.5 where the date counts in length, as text. That flattens the lengths of all messages, and takes three
		// points from longmemeval; see Analyze.
		{"locomo_a", [4]float64{0, 55.2, 65, 71.9}},
		{"longmemeval_sessions", [4]float64{0, 55.2, 72.5, 85.3}},
		{"madial_zh", [4]float64{0, 39.4, 49.7, 59.3}},
		{"memdaily_zh_a", [4]float64{0, 97.5, 98.7, 98.7}},
		{"letta_facts", [4]float64{90.8, 96.9, 97.9, 98.5}},
		{"cmrc_zh", [4]float64{94.9, 98.5, 98.8, 98.9}},
		{"xquad_en", [4]float64{90.9, 97.5, 0, 0}},
	} {
		t.Run(c.file, func(t *testing.T) {
			r, n := recall(t, readPools(t, filepath.Join(dir, c.file+".jsonl")))
			t.Logf("%-22s %5d questions  R@1 %5.1f  R@5 %5.1f  R@10 %5.1f  R@20 %5.1f", c.file, n, r[0], r[1], r[2], r[3])
			for k := range r {
				if r[k] < c.want[k] {
					t.Errorf("R@%d is %.1f, and %.1f is the least", depths[k], r[k], c.want[k])
				}
			}
		})
	}
}
