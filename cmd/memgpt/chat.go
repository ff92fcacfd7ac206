package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/host"
)

// loginAfter is the absence after which the agent is told that its user is back.
const loginAfter = time.Hour

func (a *app) chatCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "chat", Short: "talk with an agent", Args: cobra.NoArgs,
		Long: "chat talks with an agent, a message a line. At a terminal you may write while the agent works: it takes your\n" +
			"message in before its next step. From a file or a pipe each line waits for its answer. Ctrl-C ends at a clean point.\n" +
			"What the agent says unasked, in any of its conversations and whatever process it runs in, is shown as it comes, and first\n" +
			"what it said while nobody was there.\n\n" +
			chatHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			return a.chat(cmd.Context())
		},
	}
	a.threadFlag(cmd)
	a.prefetchFlag(cmd)
	a.costFlag(cmd)
	return cmd
}

const chatHelp = "  TEXT           a message; where the agent works, it takes it in before its next step\n" +
	"  /queue TEXT    a message for when the agent is done\n" +
	"  /replace TEXT  a message in place of what the agent does, which it leaves off\n" +
	"  /stop          let the agent leave off\n" +
	"  /help          this list\n" +
	"  /exit          leave; so does the end of input (Ctrl-D)"

func (a *app) chat(ctx context.Context) error {
	if err := a.start(ctx); err != nil {
		return err
	}
	a.banner()
	agent, th, err := a.agent(ctx)
	if err != nil {
		return err
	}
	if err := a.host.Start(ctx); err != nil {
		return err
	}
	stopIndexing, err := a.embedBehind(ctx)
	if err != nil {
		return err
	}
	defer stopIndexing()
	ctx, leave := context.WithCancel(ctx)
	c := conversation{app: a, agent: agent, thread: th, shown: newShown()}
	lines, restore, err := c.input(ctx, leave)
	if err != nil {
		leave()
		return err
	}
	defer restore()
	updates := a.host.Watch(ctx, th.Tenant, th.ID)
	c.unseen(ctx)
	c.work.Go(func() { c.watch(ctx, updates) })
	c.work.Go(func() { c.watchUnseen(ctx) })
	defer c.work.Wait()
	defer leave()
	if text := loginText(th.Seen, time.Now(), agent.Location()); text != "" {
		if err := c.send(ctx, memgpt.EventLogin, "", text); err != nil {
			return err
		}
	}
	return c.loop(ctx, lines)
}

// conversation is the one that the terminal shows.
type conversation struct {
	*app
	agent  memgpt.Agent
	thread memgpt.Thread
	person bool // types at a terminal, and waits for nothing
	shown  *shown
	work   sync.WaitGroup

	showing sync.Mutex // one shows what was said unasked

	mu      sync.Mutex
	running string // ID of the turn that runs
}

// loginText tells the agent that its user is here, and for how long he was not. It is "" where he has hardly been away.
func loginText(seen, now time.Time, zone *time.Location) string {
	away := now.Sub(seen)
	last := calendar.Format(seen, zone)
	switch {
	case seen.IsZero():
		return "The user has logged in for the first time."
	case away <= -loginAfter:
		return "The user has logged in. How long he was away is not known: the clock shows a time before he was last here, " + last + "."
	case away < loginAfter:
		return ""
	}
	return fmt.Sprintf("The user has logged in. He was away for %s, since %s.", spellDuration(away), last)
}

// spellDuration gives a duration in plain words, by its two largest units, the rest left out.
func spellDuration(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}}
	for i, u := range units {
		n := d / u.size
		if n == 0 && i < len(units)-1 {
			continue
		}
		text := plural(int(n), u.name)
		if i+1 < len(units) {
			if rest := (d % u.size) / units[i+1].size; rest > 0 {
				text += " and " + plural(int(rest), units[i+1].name)
			}
		}
		return text
	}
	return ""
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// loop handles lines until the input ends.
func (c *conversation) loop(ctx context.Context, lines <-chan inputLine) error {
	for {
		select {
		case <-ctx.Done():
			c.left()
			return nil
		case l, ok := <-lines:
			if !ok || l.err == io.EOF {
				c.left()
				return nil
			}
			if l.err != nil {
				return fmt.Errorf("read the input: %w", l.err)
			}
			over, err := c.handle(ctx, l.text)
			if err != nil && ctx.Err() != nil {
				c.say("the message is stored; its turn goes on at the next start")
				return nil
			}
			if over || err != nil {
				c.left()
				return err
			}
			close(l.done)
		}
	}
}

// left tells a person who leaves in the middle what becomes of it.
func (c *conversation) left() {
	if c.person && c.turn() != "" {
		c.say("the agent was at work; it goes on at the next start")
	}
}

// handle does what a line asks for. It reports whether it was the last.
func (c *conversation) handle(ctx context.Context, line string) (over bool, err error) {
	word, text, _ := strings.Cut(line, " ")
	text = strings.TrimSpace(text)
	switch trimmed := strings.TrimSpace(line); {
	case trimmed == "/exit", trimmed == "/quit":
		return true, nil
	case trimmed == "":
		return false, nil
	case trimmed == "/help":
		c.say("%s", chatHelp)
		return false, nil
	case trimmed == "/stop":
		c.stop(ctx)
		return false, nil
	case word == "/queue" && text != "":
		return false, c.send(ctx, memgpt.EventUser, memgpt.DeliverQueue, text)
	case word == "/replace" && text != "":
		return false, c.send(ctx, memgpt.EventUser, memgpt.DeliverReplace, text)
	case trimmed == "/queue", trimmed == "/replace":
		c.say("%s needs a message after it", trimmed)
		return false, nil
	case c.person && isCommand(word):
		c.say("there is no command %s; /help lists them. A space before it sends it as a message", word)
		return false, nil
	}
	return false, c.send(ctx, memgpt.EventUser, "", line)
}

// isCommand reports whether a word looks like a command rather than a path.
func isCommand(word string) bool {
	return len(word) > 1 && word[0] == '/' && strings.Trim(word[1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

// stop cancels the turn that runs.
func (c *conversation) stop(ctx context.Context) {
	turn := c.turn()
	if turn == "" {
		c.say("the agent does nothing now")
		return
	}
	if err := c.host.Cancel(ctx, c.thread.Tenant, turn); err != nil && memgpt.CodeOf(err) != memgpt.CodeInvalid {
		c.say("%v", err)
	}
}

// send sends an event and, unless a person types, waits until all that comes of it was printed.
func (c *conversation) send(ctx context.Context, typ memgpt.EventType, how memgpt.Delivery, text string) error {
	turn, err := c.host.Send(ctx, host.Message{Agent: c.agent.ID, Thread: c.thread.ID, Type: typ, Delivery: how,
		Message: memgpt.Message{Parts: memgpt.Parts{memgpt.Text{Text: text}}}})
	if memgpt.CodeOf(err) == memgpt.CodeInvalid {
		c.say("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	wait := func() error { // the watcher prints
		record, err := c.host.Follow(ctx, turn, func(memgpt.Update) error { return nil })
		if err == nil {
			c.shown.wait(record.ID)
		}
		return err
	}
	if !c.person {
		return wait()
	}
	c.work.Go(func() {
		if err := wait(); err != nil && ctx.Err() == nil {
			c.say("%v", err)
		}
	})
	return nil
}

// turn returns the ID of the turn that runs, "" when none does.
func (c *conversation) turn() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func (c *conversation) setTurn(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = id
}

// watch prints what the agent says, whatever began the turn.
func (c *conversation) watch(ctx context.Context, updates iter.Seq[memgpt.Update]) {
	defer c.shown.close()
	for u := range updates {
		switch u := u.(type) {
		case memgpt.TurnStarted:
			c.setTurn(u.Turn.ID)
		case memgpt.Spoke:
			if u.Saying != "" {
				c.unseen(ctx)
				continue
			}
			_, _ = fmt.Fprintln(c.out, u.Text)
		case memgpt.Warned:
			c.say("warning: %s", u.Text)
		case memgpt.Flushed:
			c.say("(%d messages left main context; they stay in recall storage)", u.Messages)
		case memgpt.TookIn:
			if c.person && u.Turn.Type == memgpt.EventUser {
				c.say("(the agent has read your message)")
			}
		case memgpt.TurnEnded:
			c.setTurn("")
			c.ended(u.Turn)
			c.sayCost(u.Turn.Usage)
			c.shown.add(u.Turn.ID)
		}
	}
}

// ended says how a turn ended, where that isn't plain.
func (c *conversation) ended(t memgpt.Turn) {
	switch {
	case t.State == memgpt.TurnWithdrawn:
	case t.Stop == memgpt.StopCancelled:
		c.say("(the agent left off)")
	case t.Stop == memgpt.StopReplaced:
		c.say("(the agent left off for your message)")
	default:
		_ = c.verdict(t)
	}
}

// shown knows which turns were printed to their end, so that a line is not read before the answer to the last.
type shown struct {
	mu     sync.Mutex
	cond   *sync.Cond
	turns  map[string]bool
	closed bool
}

func newShown() *shown {
	s := &shown{turns: map[string]bool{}}
	s.cond = sync.NewCond(&s.mu)
	return s
}

func (s *shown) add(turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[turn] = true
	s.cond.Broadcast()
}

func (s *shown) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cond.Broadcast()
}

// wait returns when the turn was printed, or nothing more is.
func (s *shown) wait(turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.turns[turn] && !s.closed {
		s.cond.Wait()
	}
}
