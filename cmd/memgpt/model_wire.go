package main

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"memgpt"
	"memgpt/model/anthropic"
	"memgpt/model/ollama"
	"memgpt/model/openai"
	"memgpt/token"
)

// ollamaWindow is the window of an agent at Ollama where nobody names one: the kernel's default. That of the model is
// often so large that its cache doesn't fit a machine.
const ollamaWindow = 8192

// wire is a model of one protocol with what can be asked of its server besides.
type wire struct {
	memgpt.Model
	anthropic *anthropic.Model
	ollama    *ollama.Model
	openai    *openai.Model
	name      string
}

// wired opens the client of a target and sees to it that it is closed. It opens no connection.
func (s *modelSet) wired(t *target) (*wire, error) {
	w, c, err := newWire(s, t)
	if err == nil {
		s.mu.Lock()
		s.closers = append(s.closers, c)
		s.mu.Unlock()
	}
	return w, err
}

func newWire(s *modelSet, t *target) (*wire, io.Closer, error) {
	w, limits, window := &wire{name: t.model}, &s.cfg.Timeouts, t.window
	if s.cfg.Window > 0 {
		window = s.cfg.Window
	}
	var err error
	switch t.provider {
	case anthropicProvider:
		w.anthropic, err = anthropic.New(anthropic.Config{BaseURL: t.base, APIKey: t.key, Model: t.model, Window: window,
			Connect: limits.Connect, First: limits.First, Idle: limits.Idle, Whole: limits.Whole})
		w.Model = w.anthropic
		return w, w.anthropic, err
	case ollamaProvider:
		if window == 0 {
			window = ollamaContext(s.getenv)
		}
		w.ollama, err = ollama.New(ollama.Config{BaseURL: t.base, APIKey: t.key, Model: t.model, Window: window,
			Connect: limits.Connect, First: limits.First, Idle: limits.Idle, Whole: limits.Whole})
		w.Model = w.ollama
		return w, w.ollama, err
	}
	w.openai, err = openai.New(openai.Config{BaseURL: t.base, APIKey: t.key, Model: t.model, Provider: t.provider, Window: window,
		API: s.cfg.API, Connect: limits.Connect, First: limits.First, Idle: limits.Idle, Whole: limits.Whole})
	w.Model = w.openai
	return w, w.openai, err
}

// ollamaContext is the window that Ollama is set to give models (OLLAMA_CONTEXT_LENGTH, as its server reads it), else
// ollamaWindow.
func ollamaContext(getenv func(string) string) int {
	if n, err := strconv.Atoi(strings.TrimSpace(getenv("OLLAMA_CONTEXT_LENGTH"))); err == nil && n > 0 {
		return n
	}
	return ollamaWindow
}

// droppedTools is the verdict on a model whose server would drop functions without a word.
const droppedTools = "prompted: the chat template of the server doesn't show functions to the model"

// meet asks what has to be known before the first request: the window, what a template can. It returns what a person
// should know. A server that doesn't answer yet is no failure, since the first call waits for it.
func (w *wire) meet(ctx context.Context, v *verdicts) (note string) {
	var err error
	switch {
	case w.ollama != nil:
		ctx, cancel := context.WithTimeout(ctx, meetTimeout)
		defer cancel()
		_, err = w.ollama.Show(ctx, w.name)
	case w.Capabilities().Window > 0 && !w.near():
	case w.anthropic != nil:
		_, err = w.anthropic.Window(ctx)
	default:
		if w.Capabilities().Window == 0 {
			_, err = w.openai.Window(ctx)
		}
		w.judgeTemplate(ctx, v)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// meetTimeout bounds what is asked before the first request.
const meetTimeout = 5 * time.Second

func (w *wire) near() bool { return w.openai != nil && w.openai.Near() }

// judgeTemplate makes what llama.cpp tells of its template the verdict, and takes such a verdict back where another
// template stands there now.
func (w *wire) judgeTemplate(ctx context.Context, v *verdicts) {
	shown, told := w.openai.TemplateTools(ctx)
	verdict, known := v.Get(w.Capabilities().Name)
	switch {
	case told && !shown && (!known || strings.HasPrefix(verdict, "native")):
		v.Put(w.Capabilities().Name, droppedTools)
	case told && shown && verdict == droppedTools:
		v.Put(w.Capabilities().Name, "")
	}
}

// counting lets a server near by count the first request, so that our count of its tokens is right from the start. See
// ARCHITECTURE.md for why no other is asked.
func (w *wire) counting(count *token.Counter) memgpt.Model {
	if !w.near() {
		return w.Model
	}
	return &firstCounted{Model: w.Model, ask: w.openai.Count, count: count}
}

// firstCounted has its first request counted by the server, unless what another process learned is known.
type firstCounted struct {
	memgpt.Model
	ask   func(context.Context, *memgpt.Request) (int, error)
	count *token.Counter
	once  sync.Once
}

// countTimeout bounds the count of the first request.
const countTimeout = 5 * time.Second

// Generate implements memgpt.Model. A first request that is over the window by the server's count is not sent, but
// CodeModelOverflow.
func (m *firstCounted) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	var over error
	m.once.Do(func() { over = m.calibrate(ctx, req) })
	if over != nil {
		return nil, over
	}
	return m.Model.Generate(ctx, req, stream)
}

// calibrate tells the counter what the server counts. A server that can't count is left to its reports of usage.
func (m *firstCounted) calibrate(ctx context.Context, req *memgpt.Request) error {
	name := m.Capabilities().Name
	if m.count.Factor(name) != 1 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	n, err := m.ask(asking, req)
	if err != nil || n <= 0 {
		return nil
	}
	req.Restore()
	m.count.Observe(name, counted(m.count, req), n)
	if req.Window > 0 && n > req.Window {
		return &memgpt.Error{Code: memgpt.CodeModelOverflow, Tokens: n, Limit: req.Window,
			Text: "the request is over the window by the count of the server, and was not sent"}
	}
	return nil
}

// counted is the size of a request by our count.
func counted(count *token.Counter, req *memgpt.Request) int {
	n := count.Tools(req.Tools)
	for i := range req.Messages {
		n += count.Message(&req.Messages[i])
	}
	return n
}
