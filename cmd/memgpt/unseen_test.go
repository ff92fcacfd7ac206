package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// speaker is a model that tells its user of the word of each event, "word" and digits.
func speaker(t *testing.T) (env []string) {
	t.Helper()
	word := regexp.MustCompile(`word\d+`)
	s := httptest.NewServer(script.NewServer(script.ServerConfig{Config: script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		last := req.Messages[len(req.Messages)-1].Said()
		if strings.Contains(last, `"outside_event"`) {
			return script.Say("look at " + word.FindString(last))
		}
		return script.Say("an answer")
	}}}))
	t.Cleanup(s.Close)
	return []string{"OPENAI_BASE_URL=" + s.URL + "/v1", "OPENAI_API_KEY=k", "MEMGPT_MODEL=script", "MEMGPT_WINDOW=60000"}
}

// startChild starts a process of the command and returns its input and what it prints; it is killed at the end of the test.
func startChild(t *testing.T, home string, env []string, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out, errs *lockedBuffer) {
	t.Helper()
	cmd = child(t, "main", home, args...)
	cmd.Env = append(cmd.Env, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errs = &lockedBuffer{}, &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killed(cmd) })
	return cmd, in, out, errs
}

// killed ends a process as kill -9 does.
func killed(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// outboxOf reads the outbox beside the processes.
func outboxOf(t *testing.T, s store.Store) []store.Saying {
	t.Helper()
	rows, err := s.Sayings(t.Context(), store.SayingRange{AllTenants: true})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func raise(t *testing.T, home, word string) {
	t.Helper()
	good(t, home, "", "event", "--type", "build", "--text", word)
}

// TestUnseenWaits: what the agent says under a daemon waits for the next run or chat, which shows it once. Standard output of run
// is the answer alone.
func TestUnseenWaits(t *testing.T) {
	home, env := filepath.Join(t.TempDir(), "home"), speaker(t)
	run := func(input string, args ...string) ran {
		t.Helper()
		r := command(t, home, input, env, args...)
		if r.code != 0 {
			t.Fatalf("%v: %+v", args, r)
		}
		return r
	}
	run("", "run", "-m", "hello")
	st, _, _ := timedStore(t, home)
	daemon, _, _, _ := startChild(t, home, env, "daemon")
	for i := range 23 {
		raise(t, home, fmt.Sprintf("word%d", 100+i))
	}
	waitUntil(t, func() bool { return len(outboxOf(t, st)) == 23 })
	killed(daemon)
	if r := run("", "events"); !strings.Contains(r.err, "default said unasked: 23 unread") {
		t.Errorf("events: %+v", r)
	}
	if r := run("", "agents"); !strings.Contains(r.out, "[23 unread]") {
		t.Errorf("agents: %+v", r)
	}
	if l := lines[agentLine](t, run("", "agents", "--json").out); l[0].Unread != 23 {
		t.Errorf("%+v", l)
	}
	r := run("", "run", "-m", "hello again")
	if r.out != "an answer\n" || !strings.Contains(r.err, "3 messages more") || strings.Contains(r.err, "word102") ||
		strings.Index(r.err, "word103") > strings.Index(r.err, "word122") || !strings.Contains(r.err, "woken by an event of another program)\nlook at word103\n") {
		t.Errorf("%+v", r)
	}
	if r := run("", "run", "-m", "and again"); strings.Contains(r.err, "word") || len(outboxOf(t, st)) != 0 {
		t.Errorf("shown twice: %+v", r)
	}
	for i, show := range []func() ran{
		func() ran { return run("", "chat") },
		func() ran { return run("", "run", "--json", "-m", "hello") },
	} {
		word := fmt.Sprintf("word%d", 200+i)
		daemon, _, _, _ := startChild(t, home, env, "daemon")
		raise(t, home, word)
		waitUntil(t, func() bool { return len(outboxOf(t, st)) == 1 })
		killed(daemon)
		r := show()
		if strings.Count(r.out, "look at "+word) != 1 || len(outboxOf(t, st)) != 0 {
			t.Errorf("%+v", r)
		}
		if i == 1 && !strings.Contains(r.out, `"update":"unseen"`) {
			t.Errorf("%+v", r)
		}
	}
}

// TestUnseenInOpenChats: an open chat shows what the agent says as it comes, in any conversation, whether it runs the turn or a
// daemon does; of two chats one shows it.
func TestUnseenInOpenChats(t *testing.T) {
	home, env := filepath.Join(t.TempDir(), "home"), speaker(t)
	if r := command(t, home, "", env, "run", "--thread", "work", "-m", "hello"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	_, _, one, errs := startChild(t, home, env, "chat")
	waitUntil(t, func() bool { return strings.Contains(one.String(), "an answer") }) // to the login
	shown := func(word string) bool { return strings.Contains(one.String(), "look at "+word+"\n") }
	raise(t, home, "word1")
	waitUntil(t, func() bool { return shown("word1") })
	good(t, home, "", "event", "--type", "build", "--text", "word2", "--thread", "work")
	waitUntil(t, func() bool { return shown("word2") })
	if !strings.Contains(errs.String(), "in conversation work)") {
		t.Errorf("%s", errs.String())
	}
	startChild(t, home, env, "daemon")
	_, _, two, _ := startChild(t, home, env, "chat")
	want := []string{"word1", "word2"}
	for i := range 12 {
		word := fmt.Sprintf("word%d", 10+i)
		want = append(want, word)
		raise(t, home, word)
	}
	both := func() []string {
		found := regexp.MustCompile(`word\d+`).FindAllString(one.String()+two.String(), -1)
		slices.Sort(found)
		return found
	}
	slices.Sort(want)
	waitUntil(t, func() bool { return len(both()) >= len(want) })
	if got := both(); !slices.Equal(got, want) {
		t.Errorf("shown %v, want %v", got, want)
	}
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(home, "memgpt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	waitUntil(t, func() bool { return len(outboxOf(t, st)) == 0 })
}

// hookPlace is a real server that is told what agents say. It checks each signature by itself.
type hookPlace struct {
	t      *testing.T
	mu     sync.Mutex
	secret string
	got    []hookCall
	answer func(n int, w http.ResponseWriter) // nil is 204
}

type hookCall struct{ id, text, why string }

func (p *hookPlace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var told struct {
		Type string
		Data struct{ Agent, Conversation, Turn, Message, Text, Why string }
	}
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&told)
	}
	if err != nil || told.Type != "agent.spoke" || told.Data.Turn == "" || told.Data.Message == "" || told.Data.Agent == "" || told.Data.Conversation == "" {
		p.t.Errorf("%v: %s", err, body)
	}
	p.mu.Lock()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || !slices.Contains(strings.Fields(r.Header.Get("webhook-signature")), want) {
		p.t.Errorf("signature %q, want %q; %v", r.Header.Get("webhook-signature"), want, err)
	}
	n, answer := len(p.got), p.answer
	p.got = append(p.got, hookCall{r.Header.Get("webhook-id"), told.Data.Text, told.Data.Why})
	p.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(n, w)
}

func (p *hookPlace) calls() []hookCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func (p *hookPlace) set(answer func(n int, w http.ResponseWriter)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// serve lets the place listen at an address; "" is any.
func (p *hookPlace) serve(addr string) *httptest.Server {
	p.t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: p}}
	s.Start()
	p.t.Cleanup(s.Close)
	return s
}

// readSecret takes the secret that agents set shows.
func (p *hookPlace) readSecret(said string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.secret = regexp.MustCompile(`whsec_[A-Za-z0-9+/]{40,}=*`).FindString(said); p.secret == "" {
		p.t.Fatalf("no secret in %q", said)
	}
}

// TestHookOfTheCommand: a real server is told what is said unasked, by run and by a daemon, and nothing that answers a user; it may
// fail in many ways before.
func TestHookOfTheCommand(t *testing.T) {
	home, env := filepath.Join(t.TempDir(), "home"), speaker(t)
	if r := command(t, home, "", env, "run", "-m", "hello"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	st, _, _ := timedStore(t, home)
	p := &hookPlace{t: t}
	s := p.serve("")
	p.readSecret(good(t, home, "", "agents", "set", "default", "hook="+s.URL+"/in?token=pass").err)
	raise(t, home, "word1")
	if r := command(t, home, "", env, "run", "-m", "how are you?"); r.code != 0 || r.out != "an answer\n" || !strings.Contains(r.err, "look at word1") {
		t.Errorf("%+v", r)
	}
	if r := command(t, home, "hello\n", env, "chat"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if got := p.calls(); len(got) != 1 || got[0].text != "look at word1" || got[0].why != "outside_event" || len(outboxOf(t, st)) != 0 {
		t.Fatalf("told %+v, outbox %+v", got, outboxOf(t, st))
	}
	p.set(func(n int, w http.ResponseWriter) {
		switch n {
		case 1:
			w.WriteHeader(500)
		case 2:
			http.Redirect(w, &http.Request{Method: "POST"}, s.URL+"/elsewhere", http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(200)
		}
	})
	_, _, _, errs := startChild(t, home, env, "daemon")
	raise(t, home, "word2")
	soon := func(n int) { // the pause is not waited for
		t.Helper()
		waitUntil(t, func() bool {
			for _, row := range outboxOf(t, st) {
				if row.Hook == store.HookDue && row.Tries >= n && row.Error != "" {
					row.Next = time.Now()
					_, err := st.Commit(t.Context(), &store.Commit{Now: time.Now(), Sayings: []store.Saying{row}})
					return err == nil || memgpt.CodeOf(err) != memgpt.CodeConflict
				}
			}
			return false
		})
	}
	soon(1)
	waitUntil(t, func() bool { return len(p.calls()) >= 3 })
	soon(2)
	waitUntil(t, func() bool { rows := outboxOf(t, st); return len(rows) == 1 && rows[0].Hook == store.HookNone })
	got := p.calls()
	if len(got) != 4 || got[1] != got[2] || got[2] != got[3] || got[1].text != "look at word2" {
		t.Errorf("told %+v", got)
	}
	if said := errs.String(); !strings.Contains(said, "answered 500") || strings.Contains(said, "pass") || strings.Contains(said, "whsec") {
		t.Errorf("daemon: %s", said)
	}
}

// TestHookAndKill: a process that is killed between the commit and the delivery, or between the delivery and its mark, leaves it to
// the next, under the same id.
func TestHookAndKill(t *testing.T) {
	home, env := filepath.Join(t.TempDir(), "home"), speaker(t)
	if r := command(t, home, "", env, "run", "-m", "hello"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	st, _, _ := timedStore(t, home)
	p := &hookPlace{t: t}
	first := p.serve("")
	addr := first.Listener.Addr().String()
	p.readSecret(good(t, home, "", "agents", "set", "default", "hook=http://"+addr).err)
	first.Close() // nobody listens: the words are committed and can't be delivered
	daemon, _, _, _ := startChild(t, home, env, "daemon")
	raise(t, home, "word1")
	waitUntil(t, func() bool { return len(outboxOf(t, st)) == 1 })
	killed(daemon)

	hold := make(chan struct{})
	defer close(hold)
	p.set(func(n int, w http.ResponseWriter) {
		if n == 0 {
			<-hold // the process is killed before it has the answer
			return
		}
		w.WriteHeader(200)
	})
	p.serve(addr)
	free := func() { // the claim of the dead and the pause are not waited for
		waitUntil(t, func() bool {
			row := outboxOf(t, st)[0]
			row.Next = time.Now()
			_, err := st.Commit(t.Context(), &store.Commit{Now: time.Now(), Sayings: []store.Saying{row}})
			return err == nil
		})
	}
	free()
	daemon, _, _, _ = startChild(t, home, env, "daemon")
	waitUntil(t, func() bool { return len(p.calls()) == 1 })
	killed(daemon)
	if row := outboxOf(t, st)[0]; row.Hook != store.HookDue || !row.Next.After(time.Now()) {
		t.Errorf("not claimed: %+v", row)
	}
	free()
	startChild(t, home, env, "daemon")
	startChild(t, home, env, "daemon")
	waitUntil(t, func() bool { return outboxOf(t, st)[0].Hook == store.HookNone })
	if got := p.calls(); len(got) != 2 || got[0] != got[1] || got[0].id != outboxOf(t, st)[0].ID {
		t.Errorf("told %+v", got)
	}
}

// TestHookSettings: what may be set, the secret, and what becomes of it.
func TestHookSettings(t *testing.T) {
	home, env := filepath.Join(t.TempDir(), "home"), speaker(t)
	if r := command(t, home, "", env, "run", "-m", "hello"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	for url, want := range map[string]string{"http://example.org/": "it takes https", "example.org": "it takes a URL", "https://me:pw@example.org": "without name and password"} {
		if r := command(t, home, "", nil, "agents", "set", "default", "hook="+url); r.code == 0 || !strings.Contains(r.err, want) || !strings.Contains(r.err, "nothing was changed") {
			t.Errorf("%s: %+v", url, r)
		}
	}
	if r := command(t, home, "", nil, "agents", "hook", "default"); r.code == 0 || !strings.Contains(r.err, "has no hook") {
		t.Errorf("%+v", r)
	}
	p := &hookPlace{t: t, answer: func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusGone) }}
	s := p.serve("")
	p.readSecret(good(t, home, "", "agents", "set", "default", "hook="+s.URL).err)
	first := p.secret
	if r := good(t, home, "", "agents", "set", "default", "hook="+s.URL); strings.Contains(r.err+r.out, "whsec_") {
		t.Errorf("shown again: %+v", r)
	}
	show := func(args ...string) hookLine {
		t.Helper()
		return lines[hookLine](t, good(t, home, "", append([]string{"agents", "hook", "default", "--json"}, args...)...).out)[0]
	}
	if l := show(); l.Secret != first || l.URL != s.URL || l.Old != "" {
		t.Errorf("%+v", l)
	}
	raise(t, home, "word1")
	if r := command(t, home, "", env, "run", "-m", "hello"); r.code != 0 || !strings.Contains(r.err, "410 Gone") {
		t.Errorf("%+v", r)
	}
	if l := show(); l.Stopped == nil || l.Failed != 1 || !strings.Contains(l.Error, "410") || len(p.calls()) != 1 {
		t.Errorf("%+v", l)
	}
	if r := good(t, home, "", "agents"); !strings.Contains(r.out, "1 that the hook was not told") {
		t.Errorf("%+v", r)
	}
	p.set(nil)
	l := show("--rotate", "--retry")
	if l.Stopped != nil || l.Failed != 0 || l.Due != 1 || l.Old != first || l.Secret == first {
		t.Errorf("%+v", l)
	}
	if r := command(t, home, "", env, "run", "-m", "hello"); r.code != 0 { // the old secret, which the place knows, signs too
		t.Errorf("%+v", r)
	}
	if got := p.calls(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("told %+v", got)
	}
	good(t, home, "", "agents", "set", "default", "hook=https://example.org/")
	if l := show(); l.Secret == first || l.Old != "" {
		t.Errorf("another place has the secret of the first: %+v", l)
	}
	good(t, home, "", "agents", "set", "default", "hook=default")
	st, agent, _ := timedStore(t, home)
	if _, err := st.Record(t.Context(), "", store.HookKind, agent.ID); memgpt.CodeOf(err) != memgpt.CodeNotFound {
		t.Errorf("the secret stays: %v", err)
	}
}

// TestHookRetryOfWhatWaits: who has mended a server need not wait hours for the next attempt. An attempt that may be under way is
// left alone. What events says of it leads to what helps.
func TestHookRetryOfWhatWaits(t *testing.T) {
	home, env := filepath.Join(t.TempDir(), "home"), speaker(t)
	if r := command(t, home, "", env, "run", "-m", "hello"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	st, _, _ := timedStore(t, home)
	p := &hookPlace{t: t}
	s := p.serve("")
	p.readSecret(good(t, home, "", "agents", "set", "default", "hook="+s.URL).err)
	p.set(func(_ int, w http.ResponseWriter) { w.WriteHeader(503) })
	raise(t, home, "word1")
	if r := command(t, home, "", env, "run", "-m", "how are you?"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	change := func(f func(*store.Saying)) {
		t.Helper()
		row := outboxOf(t, st)[0]
		f(&row)
		if _, err := st.Commit(t.Context(), &store.Commit{Now: time.Now(), Sayings: []store.Saying{row}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, wait := range []time.Duration{5 * time.Hour, 25 * time.Second} {
		change(func(row *store.Saying) { row.Next = time.Now().Add(wait) })
		if r := good(t, home, "", "agents", "hook", "default", "--retry"); !strings.Contains(r.out, "1 wait for the hook") {
			t.Errorf("%+v", r)
		}
		row := outboxOf(t, st)[0]
		if left := time.Until(row.Next); (left > 0) != (wait < time.Minute) || row.Tries != 1 {
			t.Errorf("of %v are left %v: %+v", wait, left, row)
		}
	}
	if r := good(t, home, "", "events"); strings.Contains(r.err, "chat") || !strings.Contains(r.err, "1 wait") { // it was shown by run
		t.Errorf("%+v", r)
	}
	change(func(row *store.Saying) { row.Hook = store.HookFailed })
	if r := good(t, home, "", "events"); !strings.Contains(r.err, "agents hook default --retry") {
		t.Errorf("%+v", r)
	}
	change(func(row *store.Saying) { row.Read = false })
	if r := good(t, home, "", "events"); !strings.Contains(r.err, "memgpt chat --agent default shows it") {
		t.Errorf("%+v", r)
	}
}
