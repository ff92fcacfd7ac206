package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/bench"
	"memgpt/model/openai"
	"memgpt/model/script"
)

// benchServeCommand is the slow server of a benchmark, in a process of its own so that its memory is not counted. It
// prints its address, holds its first requests until all have come, prints a line then, and answers them when it reads
// one. It ends with its input.
func (a *app) benchServeCommand() *cobra.Command {
	var hold int
	cmd := &cobra.Command{
		Use: "serve", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchServe(cmd.Context(), hold) },
	}
	cmd.Flags().IntVar(&hold, "hold", 1, "requests that wait for each other")
	return cmd
}

// bytesPerToken is what the slow server counts by: about what our own count comes to, or it would be corrected and every
// conversation flushed.
const bytesPerToken = 4

func (a *app) benchServe(ctx context.Context, hold int) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	gate := script.NewGate()
	srv := &http.Server{Handler: script.NewServer(script.ServerConfig{Config: script.Config{CountOnly: true,
		Func: func(int, *memgpt.Request) script.Reply { return script.Say("I am here.").Held(gate) }},
		Count: func(body []byte) int { return len(body) / bytesPerToken }})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	if _, err = fmt.Fprintf(a.out, "http://%s/v1\n", listener.Addr()); err != nil {
		return errors.Join(err, srv.Close())
	}
	ended := make(chan struct{})
	all := make(chan error, 1)
	go func() { all <- a.awaitHeld(gate, hold, ended) }()
	in := bufio.NewScanner(a.in)
	for opened := false; in.Scan(); {
		if !opened {
			gate.Open()
			opened = true
		}
	}
	close(ended)
	err = errors.Join(in.Err(), <-all, srv.Close())
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// awaitHeld prints a line when so many requests are held.
func (a *app) awaitHeld(gate *script.Gate, hold int, ended <-chan struct{}) error {
	for range hold {
		select {
		case <-gate.Entered():
		case <-ended:
			return nil
		}
	}
	_, err := fmt.Fprintln(a.out, "held")
	return err
}

// startSlow starts such a server and returns a model at it.
func startSlow(ctx context.Context, n int) (*bench.Slow, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "bench", "serve", "--hold", strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	lines := scan(bufio.NewScanner(out))
	end := func() error {
		err := in.Close()
		for range lines { // until its output ends, so that Wait closes nothing that is read
		}
		return errors.Join(err, cmd.Wait())
	}
	base, ok := <-lines
	if !ok {
		return nil, errors.Join(errors.New("start a server: it ended at once"), end())
	}
	m, err := openai.New(openai.Config{BaseURL: base, Model: "slow"})
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return &bench.Slow{Model: m,
		Arrived: func(ctx context.Context) error {
			select {
			case _, ok := <-lines:
				if !ok {
					return errors.New("the server ended")
				}
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
		Release: func() error { _, err := fmt.Fprintln(in, "go"); return err },
		Close:   func() error { return errors.Join(m.Close(), end()) },
	}, nil
}

// scan passes lines on; the channel closes at the end of the input.
func scan(s *bufio.Scanner) <-chan string {
	lines := make(chan string, 2) // as many as a server prints
	go func() {
		defer close(lines)
		for s.Scan() {
			lines <- s.Text()
		}
	}()
	return lines
}

// startProfile writes a CPU profile to a file until stop is called.
func startProfile(path string) (stop func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
