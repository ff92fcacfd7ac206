package eval

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt/kernel"
)

func TestLocomoReadsTheUnifiedFormat(t *testing.T) {
	s := talkSuite(t)
	if len(s.Cases) != 2 || s.Skipped() != 1 {
		t.Fatalf("got %d cases and %d questions without evidence", len(s.Cases), s.Skipped())
	}
	want := []kernel.Line{
		{Speaker: "Ana", Text: "I planted a plum tree behind the shed.", Time: time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC), Session: "D1", ID: "D1:1"},
		{Speaker: "Ben", Text: "My boat is called Wagtail.", Time: time.Date(2023, 5, 8, 13, 57, 0, 0, time.UTC), Session: "D1", ID: "D1:2"},
		{Speaker: "Ana", Text: "Ana: is how I sign letters. The kiln broke on Tuesday.", Time: time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC), Session: "D2", ID: "D2:1"},
		{Text: "The lighthouse keeper lent me his ladder.", Session: "D2", ID: "D2:2"},
	}
	if diff := cmp.Diff(want, s.Cases[0].Lines); diff != "" {
		t.Error(diff)
	}
	q := s.Cases[0].Questions[1]
	if diff := cmp.Diff([]Evidence{{"D1:2", want[1].Text}, {"D2:1", want[2].Text}}, q.Gold); diff != "" || q.Faults != 1 || q.Group != "two" {
		t.Errorf("evidence of q2, %d faults: %s", q.Faults, diff)
	}
	b := s.Cases[1]
	if b.Lines[0].Speaker != "user" || b.Lines[0].Text != "我住在苏州。" || b.Questions[1].Group != "none" {
		t.Errorf("got %+v", b)
	}
	if got := b.Questions[0].Time; !got.Equal(time.Date(2024, 5, 2, 17, 50, 0, 0, time.UTC)) {
		t.Errorf("the question's time is %s", got)
	}
	if got := b.Now; !got.Equal(time.Date(2024, 4, 2, 8, 31, 0, 0, time.UTC)) {
		t.Errorf("the case is loaded at %s", got)
	}
}

func TestNestedKVMakesChains(t *testing.T) {
	s, err := Load(SuiteNestedKV, chains(t), false)
	if err != nil {
		t.Fatal(err)
	}
	levels := ""
	for _, c := range s.Cases {
		q := c.Questions[0]
		levels += q.Group
		if len(c.Passages) != 10 || len(q.Gold) != int(q.Group[0]-'0')+1 {
			t.Errorf("%s: %d passages, %d pieces of evidence", c.Name, len(c.Passages), len(q.Gold))
		}
		key := strings.TrimSuffix(strings.TrimPrefix(q.Text, "What is the value of the key "), "? Where a value is a key itself, follow it to the end and tell me the last value.")
		for hop, g := range q.Gold {
			k, v, _ := strings.Cut(g.Text, ": ")
			if k != key {
				t.Errorf("%s: hop %d begins at %s, want %s", c.Name, hop, k, key)
			}
			key = v
		}
		if key != q.Answer {
			t.Errorf("%s ends at %s, want %s", c.Name, key, q.Answer)
		}
	}
	if levels != "00122" {
		t.Errorf("the levels are %s", levels)
	}
}

func TestBrokenDataGivesOneClearError(t *testing.T) {
	good := `{"conv":"a","docs":[{"id":"1","text":"x"}],"queries":[{"id":"q","q":"y","gold":["1"]}]}`
	tests := map[string]struct{ text, want string }{
		"not JSON":       {good + "\n\n{nonsense\n", "line 3: it is no conversation"},
		"wrong type":     {`{"docs":7}`, "line 1: it is no conversation"},
		"no docs":        {`{"conv":"a"}`, "line 1: it has no docs"},
		"doc without id": {`{"docs":[{"text":"x"}]}`, "line 1: doc 1 has no id or no text"},
		"no text":        {`{"docs":[{"id":"1"}]}`, "line 1: doc 1 has no id or no text"},
		"twice":          {`{"docs":[{"id":"1","text":"x"},{"id":"1","text":"y"}]}`, `line 1: two docs have the id "1"`},
		"empty query":    {`{"docs":[{"id":"1","text":"x"}],"queries":[{"q":" "}]}`, "line 1: query 1 is empty"},
		"no questions":   {`{"docs":[{"id":"1","text":"x"}]}`, "there are no questions in it"},
		"empty":          {"\n", "it is empty"},
	}
	for name, test := range tests {
		path := write(t, "data.jsonl", test.text)
		_, err := Load(SuiteLocomo, path, false)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		if _, err := Load(SuiteLocomo, path, false); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := Load("chess", "x", false); err == nil || !strings.Contains(err.Error(), `"chess"`) || !strings.Contains(err.Error(), "nested-kv") {
		t.Errorf("got %v", err)
	}
}

func TestBrokenChainsGiveOneClearError(t *testing.T) {
	pairs := zip(`{"ordered_kv_records":[["k","v"],["l","w"]]}`)
	tests := []struct{ pairs, orderings, want string }{
		{"plain", "[0]", pairsFile},
		{zip("{"), "[0]", "line 1: it is no example"},
		{zip(`{"a":1}`), "[0]", "line 1: the example has no pairs"},
		{zip(""), "[0]", "it is empty"},
		{pairs, "[0]\n[0, 1]", "line 2: it is no list of 1 numbers"},
		{pairs, "[2]", "line 1: the index 2 is there twice or not one of 0 to 1"},
		{pairs, "[-1]", "line 1: the index -1 is there twice or not one of 0 to 1"},
		{pairs, "x", "line 1: it is no list of 1 numbers"},
		{pairs, "", "there are no orderings in it"},
	}
	for _, test := range tests {
		dir := t.TempDir()
		for name, text := range map[string]string{pairsFile: test.pairs, fmt.Sprintf(orderingsFile, 1): test.orderings} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Load(SuiteNestedKV, dir, false); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	if _, err := Load(SuiteNestedKV, t.TempDir(), false); err == nil || !strings.Contains(err.Error(), pairsFile) {
		t.Errorf("got %v", err)
	}
}

func TestLimitTakesQuestionsEvenly(t *testing.T) {
	s := &Suite{Cases: []Case{{Name: "a"}, {Name: "b"}}}
	for i := range 12 {
		q := Question{ID: fmt.Sprint(i), Group: fmt.Sprint(i % 2), Gold: []Evidence{{"1", "x"}}}
		if i == 5 {
			q.Gold = nil
		}
		c := &s.Cases[i/8]
		c.Questions = append(c.Questions, q)
	}
	ids := func(limit int) (list string) {
		for _, c := range s.pick(limit) {
			for _, q := range c.Questions {
				list += q.ID + " "
			}
		}
		return list
	}
	for limit, want := range map[int]string{0: "0 1 2 3 4 6 7 8 9 10 11 ", 99: "0 1 2 3 4 6 7 8 9 10 11 ", 3: "3 8 11 ", 1: "11 "} {
		if got := ids(limit); got != want {
			t.Errorf("limit %d takes %s, want %s", limit, got, want)
		}
	}
	s.Levels = true
	if got := ids(2); got != "4 7 10 11 " {
		t.Errorf("two of each level are %s", got)
	}
	if len(s.Cases[0].Questions) != 8 {
		t.Error("the suite was changed")
	}
}

func TestSharedDataIsRead(t *testing.T) {
	data := shared(t)
	files, err := filepath.Glob(filepath.Join(data, "memory", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no files of memories")
	}
	for _, path := range files {
		s, err := Load(SuiteLocomo, path, false)
		if err != nil {
			t.Error(err)
			continue
		}
		timed, lines := 0, 0
		for _, c := range s.Cases {
			for _, l := range c.Lines {
				lines++
				if !l.Time.IsZero() {
					timed++
				}
				if l.Speaker != "" && strings.HasPrefix(l.Text, l.Speaker+": ") {
					t.Errorf("%s: %s still begins with its speaker", path, l.ID)
				}
			}
		}
		if name := filepath.Base(path); timed != lines && timed != 0 && name != "longmemeval_sessions.jsonl" {
			t.Errorf("%s: %d of %d texts have a time", name, timed, lines)
		}
	}
	s, err := Load(SuiteNestedKV, filepath.Join(data, "nested_kv"), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Cases) != 600 {
		t.Errorf("there are %d chains", len(s.Cases))
	}
}

// TestChainsNeedADirectory names the mistake where a file is given, and reads keys that are nothing but short.
func TestChainsNeedADirectory(t *testing.T) {
	dir := chains(t)
	for _, suite := range []string{SuiteNestedKV, SuiteRelay} {
		if _, err := Load(suite, filepath.Join(dir, pairsFile), false); err == nil || !strings.Contains(err.Error(), "no directory") {
			t.Errorf("%s: %v", suite, err)
		}
	}
	if a, b := depotCode("----------", map[string]bool{}), depotCode("a-b", map[string]bool{}); a != "DP-" || b != "DP-AB" {
		t.Errorf("%q and %q", a, b)
	}
}

// TestDoubledQuestionsAreToldApart: a run of data that has ids twice, or none, can be compared.
func TestDoubledQuestionsAreToldApart(t *testing.T) {
	conv := `{"conv":"a","docs":[{"id":"1","text":"x"}],"queries":[{"id":"q","q":"y","gold":["1"]},{"id":"q","q":"z","gold":["1"]},{"id":"q#2","q":"w","gold":["1"]},{"q":"v","gold":["1"]}]}`
	path := write(t, "twice.jsonl", conv+"\n"+conv)
	for _, name := range []string{SuiteLocomo, SuiteDocQA} {
		for _, pooled := range []bool{false, true} {
			s, err := Load(name, path, pooled)
			if err != nil {
				t.Fatal(err)
			}
			n, seen := 0, map[string]bool{}
			for _, c := range s.Cases {
				for _, q := range c.Questions {
					n++
					seen[c.Name+"\x00"+q.ID] = true
				}
			}
			if n != 8 || len(seen) != 8 || !seen[s.Cases[0].Name+"\x00q"] || !seen[s.Cases[0].Name+"\x00q#2"] {
				t.Errorf("%s, pooled %v: %d questions, ids %v", name, pooled, n, seen)
			}
		}
	}
}
