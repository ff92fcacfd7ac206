package prompted

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"memgpt"
)

// manner is how a reply called functions.
type manner int

const (
	silent  manner = iota // it called none
	native                // by the protocol's calls
	written               // as text
	framed                // as the object that a schema asked for, with calls or without
)

func mannerOf(resp *memgpt.Response) manner {
	if resp != nil && len(resp.Message.Calls()) > 0 {
		return native
	}
	return silent
}

// maxPlain is how many replies in a row may lack a call that was due before native calls are held not to work: some
// servers drop functions without a word, and some models answer one greeting in prose.
const maxPlain = 3

// auto asks in the way that the verdict names, or tries native calls and finds a verdict.
func (m *Model) auto(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	name := req.Model
	known := m.cfg.Model.Capabilities()
	if name == "" {
		name = known.Name
	}
	mode, decided := m.verdict(name)
	switch {
	case decided && mode != Native:
		return m.other(ctx, name, mode, "", req, stream)
	case !known.Tools:
		return m.other(ctx, name, m.fallback(), "", req, stream)
	case len(req.Tools) == 0:
		resp, _, err := m.as(ctx, Native, req, stream)
		return resp, err
	}
	resp, how, err := m.try(ctx, decided, req, stream)
	switch {
	case err != nil && refused(err, decided):
		why := "functions were refused: " + firstLine(err.Error())
		if slip.MatchString(err.Error()) {
			why = ""
		}
		if other, err := m.other(ctx, name, m.fallback(), why, req, stream); err == nil || memgpt.CodeOf(err) != memgpt.CodeModelRequest {
			return other, err
		}
	case err == nil && !decided:
		m.judge(name, how, req)
	}
	return resp, err
}

// try asks for native calls. While it is undecided calls are looked for in the text too.
func (m *Model) try(ctx context.Context, decided bool, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, manner, error) {
	if decided {
		return m.as(ctx, Native, req, stream)
	}
	return m.read(ctx, req, m.functions(req), stream)
}

// judge finds a verdict in a reply to a request with functions.
func (m *Model) judge(name string, how manner, req *memgpt.Request) {
	switch {
	case how == native:
		m.put(name, Native, "it made a call")
	case how != silent:
		m.put(name, m.fallback(), "it wrote a call as text")
	case req.Choice == memgpt.ChoiceRequired:
		m.put(name, m.fallback(), "it made no call where one was required")
	case offers(req, memgpt.FuncSendMessage) && m.lacked(name) >= maxPlain:
		m.put(name, m.fallback(), "it answered in prose where only a call is heard")
	}
}

// lacked counts a reply without the call that was due.
func (m *Model) lacked(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plain[name]++
	return m.plain[name]
}

func offers(req *memgpt.Request, name string) bool {
	for _, t := range req.Tools {
		if t.Name == name {
			return req.Choice != memgpt.ChoiceNone
		}
	}
	return false
}

// other asks in a mode that is not native and falls back to Prompted where replies can't be held to a schema. Where the
// reply comes and why is not empty, that becomes the verdict.
func (m *Model) other(ctx context.Context, name string, mode Mode, why string, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	resp, how, err := m.as(ctx, mode, req, stream)
	switch {
	case mode == Constrained && err != nil && refused(err, false):
		why = "replies held to a schema were refused: " + firstLine(err.Error())
		mode = Prompted
		resp, _, err = m.as(ctx, mode, req, stream)
	case mode == Constrained && err == nil && how != framed && len(req.Tools) > 0 && (resp.Finish == memgpt.FinishStop || resp.Finish == memgpt.FinishCalls):
		why, mode = "replies were not held to the schema", Prompted
	}
	if err == nil && why != "" {
		m.put(name, mode, why)
	}
	return resp, err
}

// fallback is the way for a model whose native calls don't work.
func (m *Model) fallback() Mode {
	if m.cfg.Model.Capabilities().Schema {
		return Constrained
	}
	return Prompted
}

// verdict returns what is remembered of a model. What can't be read is no verdict.
func (m *Model) verdict(name string) (Mode, bool) {
	verdict, ok := m.cfg.Verdicts.Get(name)
	word, _, _ := strings.Cut(verdict, ":")
	switch mode := Mode(strings.TrimSpace(word)); mode {
	case Native, Prompted, Constrained:
		return mode, ok
	}
	return Auto, false
}

func (m *Model) put(name string, mode Mode, why string) {
	m.cfg.Verdicts.Put(name, string(mode)+": "+why)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.plain, name)
}

var (
	toolWord = regexp.MustCompile(`(?i)\btools?\b|\btool[_-]|function`)
	// slip is how Groq tells of a call that did not fit its schema: the model's fault of the moment, and none of the server.
	slip = regexp.MustCompile(`(?i)failed to call a function|tool_use_failed|failed_generation`)
)

// refused reports whether a server may have refused a request for its functions or schema. Where it took such before, it
// has to say so.
func refused(err error, decided bool) bool {
	var e *memgpt.Error
	return errors.As(err, &e) && e.Code == memgpt.CodeModelRequest && !e.Started && (!decided || toolWord.MatchString(e.Error()))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return memgpt.CutText(s, 160)
}
