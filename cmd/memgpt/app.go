package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"memgpt"
	"memgpt/config"
	"memgpt/hook"
	"memgpt/host"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
	"memgpt/tool"
)

// app is what the commands share: settings, and the parts that they wire together.
type app struct {
	streams
	getenv      func(string) string
	agentName   string
	threadName  string
	archiveName string
	modelFlag   string
	prefetch    prefetchMode
	showCost    bool

	cfg       config.Config
	store     *sqlite.Store
	embedders []tool.Embedder
	search    *retrieve.Searcher
	models    *modelSet
	model     memgpt.Model // of the command's agent
	asked     string       // the name that led to it; "" is none
	about     string       // where it is and how it calls functions, for people
	kernel    *kernel.Kernel
	host      *host.Host
	hooks     *hook.Sender
	told      func(tenant, thread string, u memgpt.Update) // takes what happens in all turns; nil drops it
}

// open opens the store. A store that is made is said, with its place.
func (a *app) open(ctx context.Context) error {
	var err error
	if err = a.configure(); err != nil {
		return err
	}
	_, err = os.Stat(a.cfg.Database())
	made := os.IsNotExist(err)
	if a.store, err = sqlite.Open(ctx, sqlite.Config{Path: a.cfg.Database(), Rewriting: a.rewriting}); err != nil {
		return fmt.Errorf("%w (MEMGPT_HOME names the data directory)", err)
	}
	if made {
		a.say("data directory is new: %s", a.cfg.Home)
	}
	if a.embedders, err = openEmbedders(a.cfg.Embedder, a.cfg.APIKey); err != nil {
		return err
	}
	a.search, err = retrieve.New(retrieve.Config{Index: a.store, Store: a.store, Embedders: a.embedders, Records: a.store})
	return err
}

// configure reads the settings. A flag stands for its variable.
func (a *app) configure() (err error) {
	if a.cfg, err = config.Read(a.getenv); err == nil && a.modelFlag != "" {
		a.cfg.Model = strings.TrimSpace(a.modelFlag)
	}
	return err
}

// start opens the store and wires what runs agents.
func (a *app) start(ctx context.Context) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	agent, err := a.store.AgentNamed(ctx, "", a.agentName)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		agent, err = memgpt.Agent{Name: a.agentName}, nil // made by whoever runs it
	}
	if err != nil {
		return err
	}
	if a.models, err = a.newModels(a.store); err != nil {
		return err
	}
	if err = a.pickModel(ctx, agent); err != nil {
		return err
	}
	budget, err := a.budgetOfAll()
	if err != nil {
		return err
	}
	if a.kernel, err = kernelOf(a.store, a.search, a.openFor, a.openTidier, a.models.count, a.cfg.Window, budget, newID); err != nil {
		return err
	}
	a.hooks = hook.New(nil)
	a.host, err = host.New(host.Config{Store: a.store, Kernel: a.kernel, NewID: newID, Told: a.told, Hooks: a.hooks,
		Report: func(err error) { a.say("%v", err) }})
	return err
}

// newKernel returns a kernel in which one model answers for all agents.
func newKernel(s store.Store, search tool.Searcher, m memgpt.Model, window int, newID func(string) string) (*kernel.Kernel, error) {
	count, err := token.New(token.Config{Encoding: token.EncodingOf(m.Capabilities().Tokenizer)})
	if err != nil {
		return nil, err
	}
	return kernelOf(s, search, func(memgpt.Agent) (memgpt.Model, error) { return m, nil }, nil, count, window, memgpt.Budget{}, newID)
}

func kernelOf(s store.Store, search tool.Searcher, model, tidier func(memgpt.Agent) (memgpt.Model, error), count *token.Counter, window int,
	budget memgpt.Budget, newID func(string) string) (*kernel.Kernel, error) {
	return kernel.New(kernel.Config{
		Store: s, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count, Window: window, Budget: budget, NewID: newID,
		Model: model, Tidier: tidier, System: memtool.SystemWithSchedules, Mail: memtool.SystemWithMail, Tidying: memtool.Tidying, Normalize: retrieve.SameKey,
	})
}

// persona is what a new agent is at first; it may rewrite it.
const persona = "I am a companion with a long memory. I am friendly, plain and brief, and I speak the language of whoever" +
	" talks with me. I keep what I learn about people and look things up before I say that I don't know."

// newID is safe for concurrent use, since the source of chance and the clock are.
func newID(kind string) string { return kernel.NewIDs(rand.Reader, time.Now)(kind) }

// close ends running turns at a clean point and closes the store.
func (a *app) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if a.host != nil {
		if err := a.host.Close(ctx); err != nil {
			a.say("close: %v", err)
		}
	}
	if a.hooks != nil {
		a.hooks.Close()
	}
	if a.models != nil {
		if err := a.models.close(); err != nil {
			a.say("close: %v", err)
		}
	}
	if a.store != nil {
		if err := a.store.Close(); err != nil {
			a.say("close: %v", err)
		}
	}
}

// From how many bytes on it is said that the store's file is written anew, and how often that it still is.
const (
	longRewrite = 64 << 20
	tellRewrite = 5 * time.Second
)

// rewriting says that the store's file is written anew, and goes on to say so until what it returns is called.
func (a *app) rewriting(bytes int64) (done func()) {
	if bytes < longRewrite {
		return func() {}
	}
	a.say("writing the store's file anew (%d MB), so that no byte of what was forgotten is left in its free space; nobody can write to it "+
		"meanwhile. It may be interrupted: the next command that opens the store does it then", bytes>>20)
	over, ended, start := make(chan struct{}), make(chan struct{}), time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(tellRewrite)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				a.say("still writing the file anew, for %v by now", time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(over); <-ended }
}

// say tells the person at the terminal something, on standard error.
func (a *app) say(format string, args ...any) {
	_, _ = io.WriteString(a.err, printable(fmt.Sprintf(format, args...))+"\n")
}

// agent returns the agent of the command line, made if there is none, with the settings that the environment gives.
func (a *app) agent(ctx context.Context) (memgpt.Agent, memgpt.Thread, error) {
	agent, err := a.host.Agent(ctx, "", a.agentName, host.AgentTemplate{
		Agent:  memgpt.Agent{Zone: a.cfg.Zone, Prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchAuto}},
		Blocks: host.DefaultBlocks(persona, "")})
	if err != nil {
		return agent, memgpt.Thread{}, err
	}
	if agent, err = a.setAgent(ctx, agent, a.settingsGiven()); err != nil {
		return agent, memgpt.Thread{}, err
	}
	if err := a.host.Heartbeats(ctx, agent); err != nil {
		return agent, memgpt.Thread{}, err
	}
	th, err := a.host.Thread(ctx, agent, a.threadName)
	return agent, th, err
}

// settingsGiven are the agent's settings that environment and flags name.
func (a *app) settingsGiven() (pairs []string) {
	if every := a.cfg.Heartbeat; every != nil {
		pairs = append(pairs, "heartbeat="+every.String())
	}
	if a.prefetch != "" {
		pairs = append(pairs, "prefetch="+string(a.prefetch))
	}
	return pairs
}

// known returns the agent of the command line, which must exist, for commands that only read.
func (a *app) known(ctx context.Context) (memgpt.Agent, error) {
	agent, err := a.store.AgentNamed(ctx, "", a.agentName)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return agent, fmt.Errorf("there is no agent %q in %s; memgpt run --agent %s makes it", a.agentName, a.cfg.Home, a.agentName)
	}
	return agent, err
}

// thread returns the agent's conversation of the command line, which must exist.
func (a *app) thread(ctx context.Context, agent memgpt.Agent) (memgpt.Thread, error) {
	threads, err := a.store.Threads(ctx, agent.Tenant, agent.ID)
	if err != nil {
		return memgpt.Thread{}, err
	}
	for _, t := range threads {
		if t.Name == a.threadName {
			return t, nil
		}
	}
	return memgpt.Thread{}, fmt.Errorf("agent %s has no conversation %q", agent.Name, a.threadName)
}
