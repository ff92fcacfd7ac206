package eval

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/offline"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
	"memgpt/tool"
)

// opener makes temporary stores and counts those that are open.
type opener struct {
	dir    string
	open   atomic.Int32
	before func(store.Store) // is shown each store before it is disposed of
}

func newOpener(t *testing.T) *opener { return &opener{dir: t.TempDir()} }

func (o *opener) make(ctx context.Context) (store.Store, func() error, error) {
	dir, err := os.MkdirTemp(o.dir, "")
	if err != nil {
		return nil, nil, err
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "x.db"), Unsafe: true})
	if err != nil {
		return nil, nil, err
	}
	o.open.Add(1)
	return s, func() error {
		if o.before != nil {
			o.before(s)
		}
		o.open.Add(-1)
		return s.Close()
	}, nil
}

// write writes a file under a temporary directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zip(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// talk is made-up data: two conversations, four questions with evidence and one without.
const talk = `{"conv":"a","docs":[
{"id":"D1:1","text":"Ana: I planted a plum tree behind the shed.","time":"1:56 pm on 8 May, 2023","who":"Ana","session":"D1"},
{"id":"D1:2","text":"Ben: My boat is called Wagtail.","time":"1:57 pm on 8 May, 2023","who":"Ben","session":"D1"},
{"id":"D2:1","text":"Ana: Ana: is how I sign letters. The kiln broke on Tuesday.","time":"2023-06-01","who":"Ana","session":"D2"},
{"id":"D2:2","text":"The lighthouse keeper lent me his ladder.","time":"no idea","who":"","session":"D2"}],
"queries":[
{"id":"q1","q":"What did Ana plant?","a":"a plum tree","cat":"one","gold":["D1:1"]},
{"id":"q2","q":"What are boat and kiln like?","a":null,"cat":"two","gold":["D2:1","D1:2","D1:2","D9:9"]},
{"id":"q3","q":"Who wrote this?","a":"nobody","cat":"one","gold":[]}]}
{"conv":"b","docs":[{"id":"D1:1","text":"user: 我住在苏州。","time":"2024年04月01日 周一 08:30","who":"user"},
{"id":"D1:2","text":"assistant: 记住了。","time":"2024年04月01日 周一 08:31","who":"assistant"}],
"queries":[{"id":"q1","q":"我住在哪里？","a":"苏州","cat":"one","gold":["D1:1"],"time":"2024/05/02 (Thu) 17:50"},
{"id":"q2","q":"plum tree wagtail kiln","a":"","cat":"","gold":["D1:2"]}]}
`

func talkSuite(t *testing.T) *Suite {
	t.Helper()
	// One conversation a line: the line breaks above are for the reader.
	text := strings.ReplaceAll(strings.ReplaceAll(talk, "\n", ""), `]}{"conv"`, "]}\n{\"conv\"")
	s, err := Load(SuiteLocomo, write(t, "talk.jsonl", text), false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// chains writes made-up key-value files: ten pairs, orderings of one, two and three indices.
func chains(t *testing.T) string {
	t.Helper()
	var pairs [][2]string
	for i := range 10 {
		pairs = append(pairs, [2]string{fmt.Sprintf("%08d-aaaa-4aaa-8aaa-00000000000%d", i*7919, i), fmt.Sprintf("%08d-bbbb-4bbb-9bbb-00000000000%d", i*104729, i)})
	}
	example, err := json.Marshal(map[string]any{"ordered_kv_records": pairs})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{pairsFile: zip(string(example) + "\n{\"ordered_kv_records\":[]}\n"),
		fmt.Sprintf(orderingsFile, 1): "[3]\n[9]\n", fmt.Sprintf(orderingsFile, 2): "[4, 0]\n", fmt.Sprintf(orderingsFile, 3): "[2, 8, 5]\n[1, 7, 6]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// scripted returns a model that answers by a function of the newest message.
func scripted(f func(last *memgpt.Message, req *memgpt.Request) script.Reply) memgpt.Model {
	return script.New(script.Config{CountOnly: true, Func: func(_ int, req *memgpt.Request) script.Reply {
		return f(&req.Messages[len(req.Messages)-1], req)
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("nothing") }})
}

// seeker searches once with the words of its question and then says what it is told to.
func seeker(function, answer string) memgpt.Model {
	return scripted(func(last *memgpt.Message, _ *memgpt.Request) script.Reply {
		if last.Role == memgpt.RoleTool {
			return script.Say(answer)
		}
		return script.Call(function, "query", message(last), "request_heartbeat", true)
	})
}

// message returns what an envelope holds.
func message(m *memgpt.Message) string {
	var e envelope
	_ = json.Unmarshal([]byte(m.Said()), &e)
	return e.Message
}

func standIn(t *testing.T) memgpt.Model {
	t.Helper()
	m, err := offline.New(offline.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a suite and fails the test where that fails.
func run(t *testing.T, cfg Config, s *Suite) *Report {
	t.Helper()
	o := newOpener(t)
	if cfg.Open == nil {
		cfg.Open = o.make
	}
	rep, err := Run(t.Context(), cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	if n := o.open.Load(); n != 0 {
		t.Errorf("%d stores were not disposed of", n)
	}
	return rep
}

// shared returns the directory of the shared data, and skips the test where there is none.
func shared(t *testing.T) string {
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
			t.Skip("there is no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	data := filepath.Join(filepath.Dir(dir), "shared", "data")
	if _, err := os.Stat(data); err != nil {
		t.Skip("the shared data is not here")
	}
	return data
}

// testRunner returns what a loader needs of a run.
func testRunner(t *testing.T, m memgpt.Model) *runner {
	t.Helper()
	counter, err := token.New(token.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &runner{cfg: Config{Model: m, Window: DefaultWindow, Purse: NewPurse(0, 0)}, suite: &Suite{Name: "test"}, counter: counter,
		analyzer: new(retrieve.Analyzer), tools: map[memtool.Form][]tool.Tool{}}
}
