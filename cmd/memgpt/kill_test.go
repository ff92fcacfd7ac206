package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// childEnv makes the test binary a child process: "load" sends messages until it is killed, "drain" finishes what is
// pending, "main" is the command itself, "signalled" the command that can be asked to end, "stored" the command until it says
// that passages were stored.
const childEnv = "MEMGPT_TEST_CHILD"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(childEnv); mode {
	case "":
		os.Exit(runTests(m))
	case "main":
		os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, os.Getenv))
	case "signalled":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, os.Getenv))
	case "stored":
		os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, dieAt("passages stored")}, os.Getenv))
	default:
		if err := killChild(context.Background(), mode, os.Getenv("MEMGPT_HOME")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func runTests(m *testing.M) int {
	var err error
	if buildDir, err = os.MkdirTemp("", "memgpt-child-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(buildDir) }()
	return m.Run()
}

// dieAt ends the process at once when it is written.
type dieAt string

const killedStatus = 9

func (d dieAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), string(d)) {
		os.Exit(killedStatus)
	}
	return os.Stderr.Write(p)
}

// killThreads is how many conversations of one agent run at once; all edit the same block.
const killThreads = 4

// killModel notes each message of the user in the shared block, once, and answers.
func killModel() *script.Model {
	return script.New(script.Config{CountOnly: true, Capabilities: memgpt.Capabilities{Name: "script", Window: 200_000, Tools: true},
		NewID: func(int) string { return "" },
		Func: func(_ int, req *memgpt.Request) script.Reply {
			last := req.Messages[len(req.Messages)-1].Said()
			_, text, ok := strings.Cut(last, `"message":"`)
			if !ok || !strings.Contains(last, `"user_message"`) {
				return script.Say("ok")
			}
			text, _, _ = strings.Cut(text, `"`)
			return script.Calls(script.Call("core_memory_append", "label", "human", "content", "["+text+"]"), script.Say("noted "+text))
		}})
}

// killChild runs in a child process. It prints a line for each message that was accepted.
func killChild(ctx context.Context, mode, home string) error {
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(home, "memgpt.db")})
	if err != nil {
		return err
	}
	search, err := retrieve.New(retrieve.Config{Index: st, Store: st})
	if err != nil {
		return err
	}
	k, err := newKernel(st, search, killModel(), 0, newID)
	if err != nil {
		return err
	}
	h, err := host.New(host.Config{Store: st, Kernel: k, NewID: newID})
	if err != nil {
		return err
	}
	blocks := host.DefaultBlocks("", "")
	blocks[1].Limit = 1 << 20
	agent, err := h.Agent(ctx, "", "default", host.AgentTemplate{Blocks: blocks})
	if err != nil {
		return err
	}
	if err := h.Start(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	var wg sync.WaitGroup
	errs := make(chan error, killThreads)
	for n := range killThreads {
		wg.Go(func() { errs <- killThread(ctx, h, agent, n, mode) })
	}
	wg.Wait()
	for range killThreads {
		if err := <-errs; err != nil {
			return err
		}
	}
	return h.Close(ctx)
}

// killThread sends messages in one conversation: without end, or one that comes after all that is pending.
func killThread(ctx context.Context, h *host.Host, agent memgpt.Agent, n int, mode string) error {
	th, err := h.Thread(ctx, agent, fmt.Sprint("t", n))
	if err != nil {
		return err
	}
	for {
		text := fmt.Sprintf("n=%d-%s", n, newID("x"))
		turn, err := h.Send(ctx, host.Message{Agent: agent.ID, Thread: th.ID, Key: text,
			Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
		if err != nil {
			return err
		}
		fmt.Println("accepted " + text)
		record, err := turn.Wait(ctx)
		if err != nil {
			return err
		}
		if record.State != memgpt.TurnDone {
			return fmt.Errorf("turn of %s: %+v", text, record)
		}
		if mode == "drain" {
			return nil
		}
	}
}

// childBinary is the program of child processes: the test binary. Under the race detector it is built once more without: a
// process is five times as slow with it, and what runs at once in one is looked at in the packages that it is made of.
var childBinary = sync.OnceValues(func() (string, error) {
	if !raced {
		return os.Executable()
	}
	exe := filepath.Join(buildDir, "child.test")
	if out, err := exec.Command("go", "test", "-c", "-o", exe, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program of child processes: %w: %s", err, out)
	}
	return exe, nil
})

// buildDir is where it is built; TestMain makes and removes it.
var buildDir string

// child starts the test binary as a child process.
func child(t *testing.T, mode, home string, args ...string) *exec.Cmd {
	exe, err := childBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+mode, "MEMGPT_HOME="+home, "MEMGPT_MODEL=offline")
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKill kills a process at random moments under load. Every accepted message must be in the log once, every memory edit
// be made once, and every conversation run on.
func TestKill(t *testing.T) {
	kills := 20
	if os.Getenv("MEMGPT_LONG") != "" {
		kills = 200
	}
	home := t.TempDir()
	var accepted []string
	for i := range kills {
		cmd := child(t, "load", home)
		lines, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, killAtRandom(cmd, bufio.NewScanner(lines), i)...)
	}
	out, err := child(t, "drain", home).Output()
	if err != nil {
		t.Fatalf("the conversations don't run on: %v", err)
	}
	for _, line := range strings.Fields(strings.ReplaceAll(string(out), "accepted ", "")) {
		if line != "ready" {
			accepted = append(accepted, line)
		}
	}
	t.Logf("%d messages were accepted over %d kills", len(accepted), kills)
	checkKilled(t, home, accepted)
}

// killAtRandom kills the child after some accepted messages, or before the first, and returns those that it printed.
func killAtRandom(cmd *exec.Cmd, lines *bufio.Scanner, n int) (accepted []string) {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	early := n%5 == 4
	var once sync.Once
	kill := func() { once.Do(func() { _ = cmd.Process.Kill() }) }
	if early {
		time.AfterFunc(time.Duration(rng.IntN(60))*time.Millisecond, kill)
	}
	for lines.Scan() {
		if lines.Text() == "ready" && !early {
			time.AfterFunc(time.Duration(rng.IntN(400_000))*time.Microsecond, kill)
		}
		if text, ok := strings.CutPrefix(lines.Text(), "accepted "); ok {
			accepted = append(accepted, text)
		}
	}
	_ = cmd.Wait()
	return accepted
}

func checkKilled(t *testing.T, home string, accepted []string) {
	ctx := t.Context()
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(home, "memgpt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	agent, err := st.AgentNamed(ctx, "", "default")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := st.Blocks(ctx, "", agent.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	threads, err := st.Threads(ctx, "", agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	logged := map[string]int{}
	for _, th := range threads {
		entries, err := st.Entries(ctx, store.EntryRange{Thread: th.ID})
		if err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			if m := &entries[i].Message; m.Role == memgpt.RoleUser {
				logged[m.Said()]++
			}
		}
		if events, err := st.Events(ctx, store.EventRange{Thread: th.ID}); err != nil || len(events) > 0 {
			t.Errorf("conversation %s: pending %v, %v", th.Name, events, err)
		}
	}
	for _, text := range accepted {
		if logged[text] != 1 {
			t.Errorf("%s is in the log %d times", text, logged[text])
		}
	}
	for text, n := range logged {
		if edits := strings.Count(blocks[1].Value, "["+text+"]"); n != 1 || edits != 1 {
			t.Errorf("%s: %d times in the log, %d edits", text, n, edits)
		}
	}
}

// TestKillCommand kills the command itself in the middle of a message, and then asks what it was told before.
func TestKillCommand(t *testing.T) {
	home := t.TempDir()
	if out, err := child(t, "main", home, "run", "-m", "My name is Ada.").Output(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range 6 {
		cmd := child(t, "main", home, "run", "-m", fmt.Sprintf("My favourite number is %d.", i))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(time.Duration(i*25)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killer.Stop()
	}
	out, err := child(t, "main", home, "run", "-m", "What is my name?").Output()
	if err != nil || !strings.Contains(string(out), "Ada") {
		t.Errorf("%v: %q", err, out)
	}
}
