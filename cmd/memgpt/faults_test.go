package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"memgpt"
	"memgpt/model/script"
)

// The tests of this file are field faults of the whole program, which runs as a process of its own.

// ran is what a command did.
type ran struct {
	out, err string
	code     int
}

// command runs the program in a home with some input and settings.
func command(t *testing.T, home, input string, env []string, args ...string) ran {
	t.Helper()
	cmd := child(t, "main", home, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	cmd.Env = append(cmd.Env, env...)
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return ran{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// good is command for one that must end well.
func good(t *testing.T, home, input string, args ...string) ran {
	t.Helper()
	r := command(t, home, input, nil, args...)
	if r.code != 0 {
		t.Fatalf("%v: status %d, %s", args, r.code, r.err)
	}
	return r
}

// lines decodes lines of JSON.
func lines[T any](t *testing.T, text string) (out []T) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, v)
	}
	return out
}

func TestFaultsOfTheCommand(t *testing.T) {
	t.Run("pipes and code pages", pipes)
	t.Run("agents gone after a restart", func(t *testing.T) {
		home := filepath.Join(t.TempDir(), "new")
		if r := good(t, home, "我叫小林", "run"); !strings.Contains(r.err, "data directory is new: "+home) {
			t.Errorf("%q", r.err)
		}
		r := good(t, home, "我叫什么？", "run")
		if !strings.Contains(r.out, "小林") || strings.Contains(r.err, "is new") {
			t.Errorf("%+v", r)
		}
		if info, err := os.Stat(filepath.Join(home, "memgpt.db")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	})
	t.Run("opaque errors at the first run", opaque)
	t.Run("two processes at once", twoProcesses)
	t.Run("memory is sent to nobody unasked", sentToNobody)
	t.Run("model behind an endpoint", endpoint)
	t.Run("never from another agent", func(t *testing.T) {
		home := t.TempDir()
		good(t, home, "", "run", "--agent", "a", "-m", "The password of the boat shed is SECRET_A1.")
		good(t, home, "", "run", "--agent", "b", "-m", "Hello there.")
		good(t, home, "", "run", "--agent", "a", "--thread", "other", "-m", "Hello again.")
		for _, query := range []string{"SECRET_A1", "password", "%", "shed"} {
			if r := good(t, home, "", "search", "--agent", "b", "--json", query); strings.Contains(r.out, "SECRET_A1") {
				t.Errorf("%s: %s", query, r.out)
			}
		}
		if r := good(t, home, "", "run", "--agent", "b", "-m", "What is the password of the boat shed?"); strings.Contains(r.out, "SECRET_A1") {
			t.Errorf("%s", r.out)
		}
		if r := good(t, home, "", "run", "--agent", "a", "--thread", "third", "-m", "What is the password of the boat shed?"); !strings.Contains(r.out, "SECRET_A1") {
			t.Errorf("a fact told in one conversation is not found from another: %s", r.out)
		}
	})
}

// pipes gives the program bytes as other programs write them.
func pipes(t *testing.T) {
	home := t.TempDir()
	inputs := map[string]string{
		"\ufeffMy name is Zoë.\r\n":         "My name is Zoë.",
		"line one\r\nline two 🍷\r\n":        "line one\r\nline two 🍷",
		"latin1 caf\xe9 \x00 and \xed\xa0x": "latin1 caf\uFFFD  and \uFFFDx",
	}
	for in, want := range inputs {
		r := good(t, home, in, "run")
		if !utf8.ValidString(r.out) || strings.Contains(r.out, "stand-in") {
			t.Errorf("standard output: %q", r.out)
		}
		found := false
		for _, l := range lines[logLine](t, good(t, home, "", "log", "--json").out) {
			found = found || l.Role == memgpt.RoleUser && l.Text == want
		}
		if !found {
			t.Errorf("%q is not in the log as %q: %s", in, want, good(t, home, "", "log", "--json").out)
		}
	}
	if updates := lines[map[string]any](t, good(t, home, "hello", "run", "--json").out); len(updates) < 3 {
		t.Errorf("%v", updates)
	}
	for _, empty := range []string{"", "\n", " \r\n", "\ufeff"} {
		if r := command(t, home, empty, nil, "run"); r.code != 1 || r.out != "" || !strings.Contains(r.err, "empty") {
			t.Errorf("%q: %+v", empty, r)
		}
	}
	file := filepath.Join(t.TempDir(), "talk.jsonl")
	data := "\ufeff" + `{"speaker":"user","text":"I keep bees 🐝","time":"2023-05-01T10:00:00Z"}` + "\r\n" + `{"speaker":"Ann","text":"naïve","time":"soon"}` + "\r\n"
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"imported 2 messages, skipped 0", "imported 0 messages, skipped 2"} {
		if r := good(t, home, "", "import", file); !strings.Contains(r.err, want) {
			t.Errorf("import %d: %s", i, r.err)
		}
	}
	hits := lines[hitLine](t, good(t, home, "", "search", "--json", "bees").out)
	if len(hits) == 0 || hits[0].Rank != 1 || hits[0].Text != "I keep bees 🐝" || hits[0].Time == nil || hits[0].Kind != memgpt.KindMessage {
		t.Errorf("%+v", hits)
	}
}

// opaque starts the program where it can't work: it ends with 1 and one line that says why.
func opaque(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.Mkdir(text, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(text, "memgpt.db"), []byte(strings.Repeat("this is no database ", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	flat := filepath.Join(dir, "flat")
	if err := os.WriteFile(flat, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		home string
		env  []string
		args []string
		say  string
	}{
		"a file for a directory": {filepath.Join(flat, "x"), nil, []string{"run", "-m", "hi"}, "flat"},
		"a directory in a file":  {filepath.Join(flat, "x"), nil, []string{"log"}, "can't be made (mkdir"},
		"no database":            {text, nil, []string{"log"}, "or restore a copy (MEMGPT_HOME"},
		"no agent":               {dir, nil, []string{"log", "--agent", "nobody"}, "nobody"},
		"a bad window":           {dir, []string{"MEMGPT_WINDOW=much"}, []string{"run", "-m", "hi"}, "MEMGPT_WINDOW"},
		"a bad heartbeat":        {dir, []string{"MEMGPT_HEARTBEAT=soon"}, []string{"run", "-m", "hi"}, "MEMGPT_HEARTBEAT"},
		"a bad endpoint":         {dir, []string{"MEMGPT_MODEL=m", "OPENAI_BASE_URL=ftp://x"}, []string{"run", "-m", "hi"}, "base URL"},
		"no such file":           {dir, nil, []string{"import", filepath.Join(dir, "none.jsonl")}, "none.jsonl"},
		"no such command":        {dir, nil, []string{"fly"}, "fly"},
		"a slip in a group":      {dir, nil, []string{"archive", "delet", "--source", "x"}, "delet"},
		"another slip":           {dir, nil, []string{"forget", "terms", "--yes"}, "terms"},
		"too few words":          {dir, nil, []string{"load"}, "it is used so: memgpt load FILE|DIR|-"},
		"too many words":         {dir, nil, []string{"log", "x"}, "it is used so: memgpt log"},
	} {
		r := command(t, c.home, "", c.env, c.args...)
		if strings.HasSuffix(r.err, ": SQLite\n") || strings.Contains(r.err, "is new") && strings.Contains(r.err, "open the store") {
			t.Errorf("%s: %s", name, r.err)
		}
		last := strings.Split(strings.TrimSpace(r.err), "\n")
		if r.code != 1 || r.out != "" || len(last) > 2 || !strings.Contains(r.err, c.say) || strings.Contains(r.err, "goroutine") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// twoProcesses has processes talk to one conversation at the same time: each message is taken once, and answered.
func twoProcesses(t *testing.T) {
	home := t.TempDir()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if r := command(t, home, "", nil, "run", "-m", fmt.Sprintf("Message number %d is here.", i)); r.code != 0 || r.out == "" {
				t.Errorf("%d: %+v", i, r)
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, l := range lines[logLine](t, good(t, home, "", "log", "--json").out) {
		if l.Role == memgpt.RoleUser {
			seen[l.Text]++
		}
	}
	for i := range 6 {
		if n := seen[fmt.Sprintf("Message number %d is here.", i)]; n != 1 {
			t.Errorf("message %d is in the log %d times", i, n)
		}
	}
}

// sentToNobody runs without any setting. A proxy that would see every connection to the outside sees none.
func sentToNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var connections atomic.Int64
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = c.Close()
		}
	}()
	proxy := "http://" + l.Addr().String()
	env := []string{"MEMGPT_MODEL=", "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "ALL_PROXY=" + proxy,
		"http_proxy=" + proxy, "https_proxy=" + proxy, "NO_PROXY=", "no_proxy="}
	command(t, t.TempDir(), "", env, "run", "-m", "My secret is 42.")
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to the outside", n)
	}
}

// endpoint runs against a server: one that answers, one whose list of models is a web page, and none at all.
func endpoint(t *testing.T) {
	s := script.NewServer(script.ServerConfig{Window: 100_000, Config: script.Config{
		Func: func(int, *memgpt.Request) script.Reply { return script.Say("hello from upstream") }}})
	html := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			_, _ = w.Write([]byte("<html>not here</html>"))
			return
		}
		s.ServeHTTP(w, r)
	})
	for name, h := range map[string]http.Handler{"answers": s, "list of models is a web page": html} {
		srv := httptest.NewServer(h)
		home := t.TempDir()
		env := []string{"MEMGPT_MODEL=m", "OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_API_KEY=k", "MEMGPT_WINDOW=60000"}
		if r := command(t, home, "", env, "run", "-m", "hi 请 🍷"); r.code != 0 || r.out != "hello from upstream\n" {
			t.Errorf("%s: %+v", name, r)
		}
		bodies := s.Bodies()
		if last := string(bodies[len(bodies)-1]); !strings.Contains(last, "hi 请 🍷") {
			t.Errorf("%s: the body is %.300s", name, last)
		}
		srv.Close()
		if name != "answers" {
			continue // the retries take seconds
		}
		r := command(t, home, "", env, "run", "-m", "are you there?")
		if r.code != 1 || r.out != "" || strings.Contains(r.err, "goroutine") || !strings.Contains(r.err, strings.TrimPrefix(srv.URL, "http://")) {
			t.Errorf("%s, then gone: %+v", name, r)
		}
		if l := good(t, home, "", "log", "--json").out; strings.Count(l, "are you there?") != 1 {
			t.Errorf("%s: the message was not kept: %s", name, l)
		}
	}
}
