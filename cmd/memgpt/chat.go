package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memgpt"
	"memgpt/host"
)

func (a *app) chatCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "chat", Short: "talk with an agent", Args: cobra.NoArgs,
		Long: "chat talks with an agent, a message a line. /exit or the end of input leaves; Ctrl-C ends at a clean point.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			return a.chat(cmd.Context())
		},
	}
	a.threadFlag(cmd)
	a.prefetchFlag(cmd)
	return cmd
}

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
	watch, stop := context.WithCancel(ctx)
	c := conversation{app: a, agent: agent, thread: th, shown: newShown()}
	updates := a.host.Watch(watch, th.Tenant, th.ID)
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(updates) })
	defer watching.Wait()
	defer stop()
	if err := c.login(ctx); err != nil {
		return err
	}
	return c.loop(ctx)
}

// watch prints what the agent says, whatever began the turn.
func (c *conversation) watch(updates iter.Seq[memgpt.Update]) {
	defer c.shown.close()
	for u := range updates {
		switch u := u.(type) {
		case memgpt.Spoke:
			_, _ = fmt.Fprintln(c.out, u.Text)
		case memgpt.Warned:
			c.say("warning: %s", u.Text)
		case memgpt.Flushed:
			c.say("(%d messages left main context; they stay in recall storage)", u.Messages)
		case memgpt.TurnEnded:
			_ = c.verdict(u.Turn)
			c.shown.add(u.Turn.ID)
		}
	}
}

// shown knows which turns were printed to their end, so that a prompt doesn't come before the answer.
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
	clear(s.turns)
}

// conversation is the one that the terminal shows.
type conversation struct {
	*app
	agent  memgpt.Agent
	thread memgpt.Thread
	shown  *shown
}

// login tells the agent that its user is here, and since when he was not.
func (c *conversation) login(ctx context.Context) error {
	text := "The user has logged in for the first time."
	if !c.thread.Seen.IsZero() {
		text = fmt.Sprintf("The user has logged in. The last message came %s ago, at %s.",
			time.Since(c.thread.Seen).Round(time.Minute), memgpt.FormatTime(c.thread.Seen, c.agent.Location()))
	}
	return c.send(ctx, memgpt.EventLogin, text)
}

func (c *conversation) send(ctx context.Context, typ memgpt.EventType, text string) error {
	turn, err := c.host.Send(ctx, host.Message{Agent: c.agent.ID, Thread: c.thread.ID, Type: typ,
		Message: memgpt.Message{Parts: memgpt.Parts{memgpt.Text{Text: text}}}})
	if memgpt.CodeOf(err) == memgpt.CodeInvalid {
		c.say("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = turn.Wait(ctx); err == nil {
		c.shown.wait(turn.ID)
	}
	return err
}

// loop reads messages until the input ends.
func (c *conversation) loop(ctx context.Context) error {
	lines, failed := readInput(ctx, c.in)
	for {
		c.prompt()
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-lines:
			if !ok {
				return <-failed
			}
			if text := strings.TrimSpace(line); text == "/exit" || text == "/quit" {
				return nil
			} else if text == "" {
				continue
			}
			if err := c.send(ctx, memgpt.EventUser, line); err != nil {
				if ctx.Err() != nil {
					c.say("the message is stored; its turn goes on at the next start")
					return nil
				}
				return err
			}
		}
	}
}

// prompt shows that input is awaited, where a person sees it.
func (c *conversation) prompt() {
	if f, ok := c.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		_, _ = fmt.Fprint(c.err, "> ")
	}
}

// readInput reads lines in a goroutine that ends with the input: a read from a terminal can't be called off.
func readInput(ctx context.Context, in io.Reader) (<-chan string, <-chan error) {
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadString('\n')
			line = strings.TrimPrefix(line, "\ufeff")
			if line != "" {
				select {
				case lines <- trimNewline(line):
				case <-ctx.Done():
					failed <- nil
					return
				}
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				failed <- err
				return
			}
		}
	}()
	return lines, failed
}
