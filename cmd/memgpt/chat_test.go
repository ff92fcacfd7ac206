package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
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

func TestLoginText(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		away time.Duration
		want string
	}{
		{0, ""},
		{59*time.Minute + 59*time.Second, ""},
		{-30 * time.Minute, ""},
		{time.Hour, "He was away for 1 hour, since"},
		{time.Hour + 59*time.Minute + 59*time.Second, "He was away for 1 hour and 59 minutes, since"},
		{23*time.Hour + 61*time.Second, "He was away for 23 hours and 1 minute, since"},
		{24 * time.Hour, "He was away for 1 day, since"},
		{51*time.Hour + 40*time.Minute, "He was away for 2 days and 3 hours, since"},
		{48*time.Hour + 40*time.Minute, "He was away for 2 days, since"},
		{-48 * time.Hour, "How long he was away is not known: the clock shows a time before he was last here"},
	} {
		got := loginText(now.Add(-c.away), now, time.UTC)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.away, got, c.want)
		}
	}
	if got := loginText(time.Time{}, now, time.UTC); got != "The user has logged in for the first time." {
		t.Errorf("first: %q", got)
	}
}

// TestLoginOnce: a chat that is started again within the hour doesn't log in again.
func TestLoginOnce(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	for range 3 {
		good(t, home, "hello\n", "chat")
	}
	if n := strings.Count(good(t, home, "", "log", "--json").out, `"type":"login"`); n != 1 {
		t.Errorf("%d logins in the log", n)
	}
}

// TestThreadsAreSeparate: two conversations of one agent have queues of their own over one memory.
func TestThreadsAreSeparate(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	good(t, home, "", "run", "--thread", "work", "-m", "my name is Ana")
	if r := good(t, home, "what is my name?\n", "chat", "--thread", "home"); !strings.Contains(r.out, "Ana") {
		t.Errorf("the other conversation doesn't know: %+v", r)
	}
	work, other := good(t, home, "", "log", "--thread", "work").out, good(t, home, "", "log", "--thread", "home").out
	if !strings.Contains(work, "my name is Ana") || strings.Contains(work, "what is my name") || !strings.Contains(other, "what is my name") ||
		strings.Contains(other, "my name is Ana\n") {
		t.Errorf("the logs mix:\n%s\n---\n%s", work, other)
	}
}

// TestChatAndRun: a message that run sends while a chat in another process is at work is taken in there; run prints what
// the agent says from then on, and ends well.
func TestChatAndRun(t *testing.T) {
	server, gate, entered := slowServer(t)
	home := filepath.Join(t.TempDir(), "home")
	env := []string{"OPENAI_BASE_URL=" + server, "OPENAI_API_KEY=k", "MEMGPT_MODEL=script", "MEMGPT_WINDOW=16384"}
	chat := child(t, "main", home, "chat")
	chat.Env = append(chat.Env, env...)
	in, err := chat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs lockedBuffer
	chat.Stdout, chat.Stderr = &out, &errs
	if err := chat.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "work long\n"); err != nil {
		t.Fatal(err)
	}
	<-entered // the chat's turn is in its first step
	run := child(t, "main", home, "run", "-m", "and this too")
	run.Env = append(run.Env, env...)
	var runOut, runErrs lockedBuffer
	run.Stdout, run.Stderr = &runOut, &runErrs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, home, "and this too")
	close(gate)
	if err := run.Wait(); err != nil {
		t.Fatalf("run: %v\n%s", err, runErrs.String())
	}
	_ = in.Close()
	if err := chat.Wait(); err != nil {
		t.Fatalf("chat: %v\n%s", err, errs.String())
	}
	if got := runOut.String(); got != "the answer to and this too\n" {
		t.Errorf("run printed %q (%s)", got, runErrs.String())
	}
	type line struct{ Turn, Text string }
	var taken string
	for _, l := range lines[line](t, good(t, home, "", "log", "--json").out) {
		if l.Text == "and this too" {
			taken = l.Turn
		}
	}
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(home, "memgpt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if record, err := s.Turn(t.Context(), "", taken); err != nil || record.Stop != memgpt.StopSteered {
		t.Errorf("the message of run ended as %+v, %v", record, err)
	}
	if got := out.String(); !strings.HasSuffix(got, "I begin\nthe answer to and this too\n") {
		t.Errorf("the chat printed %q (%s)", got, errs.String())
	}
}

// slowServer answers with a scripted model: it says that it begins once the gate is open, and ends with the newest message.
func slowServer(t *testing.T) (url string, gate, entered chan struct{}) {
	gate, entered = make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := httptest.NewServer(script.NewServer(script.ServerConfig{Config: script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		last := ""
		for i := range req.Messages {
			if _, text, ok := strings.Cut(req.Messages[i].Said(), `"type":"user_message","message":"`); ok {
				last, _, _ = strings.Cut(text, `"`)
			}
		}
		switch last {
		case "":
			return script.Say("welcome")
		case "work long":
			once.Do(func() { close(entered) })
			<-gate
			return script.Calls(script.Call("send_message", "message", "I begin"),
				script.Call("core_memory_append", "label", "human", "content", "Works long.", "request_heartbeat", true))
		}
		return script.Say("the answer to " + last)
	}}}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", gate, entered
}

// waitFor waits until an event with the text is in the inbox.
func waitFor(t *testing.T, home, text string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(home, "memgpt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for range 600 {
		events, err := s.Events(t.Context(), store.EventRange{AllTenants: true})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(events, func(e memgpt.Event) bool { return e.Message.Said() == text }) {
			return
		}
		time.Sleep(50 * time.Millisecond) // real time: another process is waited for
	}
	t.Fatalf("%q never came into the inbox", text)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestLineEditor(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"hello\r", "hello"},
		{"helo\x1b[D\x1b[Dl\r", "hello"},
		{"我叫小林\x7f\x7f李\r", "我叫李"},
		{"one two\x17three\r", "one three"},
		{"x\x01a\x05b\r", "axb"},
		{"abc\x15\r", ""},
		{"first\r\x1b[A!\r", "first!"},
		{"first\rkept\x1b[A\x1b[B!\r", "kept!"},
		{"ab\x1b[D\x1b[3~\r", "a"},
		{"a\x1b[200~b\x00c\x1b[201~\r", "abc"},
		{"x\x1b[D\x1b[200~one\r\ntwo\x1b[31m\r/exit\n\x1b[201~!\r", "one\ntwo[31m\n/exit!x"},
		{"a\x1b[<0;12;7Mb\x1b[?1;2cc\r", "abc"}, // a mouse, and an answer of the terminal
		{"a\x1bWb\r", "ab"},                     // Alt-W
		{"a\x1b\r", "a"},
	} {
		var screen bytes.Buffer
		l := &lineEditor{prompt: "> ", term: &screen, width: func() int { return 20 }, interrupt: func() {}}
		in, got := bufio.NewReader(strings.NewReader(c.keys)), ""
		for {
			text, err := l.readLine(in)
			if err == io.EOF {
				break
			}
			got = text
		}
		if got != c.want {
			t.Errorf("%q gave %q, want %q", c.keys, got, c.want)
		}
	}
}

// TestLineEditorSharesTheScreen: what is written stands above the line, in whole rows, and the line comes again below it.
func TestLineEditorSharesTheScreen(t *testing.T) {
	var screen bytes.Buffer
	interrupts := 0
	l := &lineEditor{prompt: "> ", term: &screen, width: func() int { return 20 }, interrupt: func() { interrupts++ }}
	in, keys := io.Pipe()
	done := make(chan string)
	go func() {
		text, _ := l.readLine(bufio.NewReader(in))
		done <- text
	}()
	_, _ = keys.Write([]byte("a line that is longer than the row"))
	_, _ = keys.Write([]byte{keyInterrupt})
	_, _ = keys.Write([]byte{keyInterrupt}) // taken once all before it is done; itself it draws nothing
	screen.Reset()
	if _, err := io.WriteString(l, "the agent "); err != nil || screen.Len() > 0 {
		t.Errorf("half a row is shown: %q, %v", screen.String(), err)
	}
	_, _ = io.WriteString(l, "speaks\n")
	if got, want := screen.String(), "\r\x1b[Kthe agent speaks\r\n> nger than the row"; got != want {
		t.Errorf("screen %q, want %q", got, want)
	}
	_, _ = keys.Write([]byte("\r"))
	if got := <-done; got != "a line that is longer than the row" || interrupts != 2 {
		t.Errorf("line %q, %d interrupts", got, interrupts)
	}
	if _, err := l.readLine(bufio.NewReader(strings.NewReader("\x04"))); err != io.EOF {
		t.Errorf("Ctrl-D: %v", err)
	}
}

// TestLineEditorEscapeAlone: a person who types Escape and then something else loses nothing of it.
func TestLineEditorEscapeAlone(t *testing.T) {
	interrupts := 0
	l := &lineEditor{prompt: "> ", term: io.Discard, width: func() int { return 20 }, interrupt: func() { interrupts++ }}
	in, keys := io.Pipe()
	go func() {
		for _, key := range []string{"\x1b", "W", "ho\x1b", "\x03", "\x1b", "[D", "\x1b", "\r"} {
			_, _ = io.WriteString(keys, key)
		}
	}()
	if text, err := l.readLine(bufio.NewReader(in)); text != "Who" || err != nil || interrupts != 1 {
		t.Errorf("%q, %v, %d interrupts", text, err, interrupts)
	}
}

// TestLineEditorShowsAPasteInARow: the line ends of a paste don't leave the row until it is sent.
func TestLineEditorShowsAPasteInARow(t *testing.T) {
	var screen bytes.Buffer
	l := &lineEditor{prompt: "> ", term: &screen, width: func() int { return 40 }, interrupt: func() {}}
	if _, err := l.readLine(bufio.NewReader(strings.NewReader("\x1b[200~one\ntwo\x1b[201~"))); err != io.EOF {
		t.Fatal(err)
	}
	if got := screen.String(); !strings.HasSuffix(got, "\r\x1b[K> one⏎two") || strings.Contains(got, "\n") {
		t.Errorf("drawn: %q", got)
	}
	_ = l.enter()
	if got := screen.String(); !strings.HasSuffix(got, "> one\r\ntwo\r\n") {
		t.Errorf("sent: %q", got)
	}
}

// TestTerminalIsNotSteered: what an agent says can't clear the screen or set its title, above the line and without one.
func TestTerminalIsNotSteered(t *testing.T) {
	const evil = "red \x1b[2J\x1b]0;title\x07 \rover\x08 \u009b1m\t中文\n"
	const plain = "red [2J]0;title over 1m\t中文"
	var screen bytes.Buffer
	l := &lineEditor{prompt: "> ", term: &screen, width: func() int { return 20 }, interrupt: func() {}}
	_, _ = io.WriteString(l, evil)
	if got := screen.String(); got != "\r\x1b[K"+plain+"\r\n> " {
		t.Errorf("above the line: %q", got)
	}
	name := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(terminal{f}, evil)
	_ = f.Close()
	if got, err := os.ReadFile(name); string(got) != plain+"\n" || err != nil {
		t.Errorf("without a line: %q, %v", got, err)
	}
	if w := guarded(f); w != io.Writer(f) {
		t.Error("a file does not get every byte")
	}
}
