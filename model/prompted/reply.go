package prompted

import (
	"context"
	"strings"

	"memgpt"
	"memgpt/schema"
)

// read asks the model beneath and takes its reply apart. f names the functions that may be called; where it is nil the
// reply is passed on as it is.
func (m *Model) read(ctx context.Context, inner *memgpt.Request, f *functions, stream func(memgpt.Delta)) (*memgpt.Response, manner, error) {
	if f == nil {
		resp, err := m.cfg.Model.Generate(ctx, inner, stream)
		return resp, mannerOf(resp), err
	}
	l := &listener{stream: stream, prose: schema.NewProse(f.calls)}
	hear := l.hear
	if stream == nil {
		hear = nil
	}
	resp, err := m.cfg.Model.Generate(ctx, inner, hear)
	if err != nil || resp == nil {
		return resp, silent, err
	}
	return m.takeApart(resp, f, l)
}

// calls reports whether a name means one of the functions, exactly or nearly: the kernel finds out which.
func (f *functions) calls(name string) bool { return schema.Closest(name, f.names) != "" }

// listener passes on what of a reply can't be part of a call.
type listener struct {
	stream func(memgpt.Delta)
	prose  *schema.Prose
	sent   strings.Builder
}

func (l *listener) hear(d memgpt.Delta) {
	switch {
	case d.Text != "":
		l.say(l.prose.Push(d.Text))
	case d.Reasoning != "":
		l.stream(d)
	}
}

func (l *listener) say(text string) {
	if text != "" && l.stream != nil {
		l.sent.WriteString(text)
		l.stream(memgpt.Delta{Text: text})
	}
}

// takeApart makes the response of a reply in which calls are written as text.
func (m *Model) takeApart(resp *memgpt.Response, f *functions, l *listener) (*memgpt.Response, manner, error) {
	var said strings.Builder
	var others memgpt.Parts
	calls := resp.Message.Calls()
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			said.WriteString(p.Text)
		case memgpt.Call:
		default:
			others = append(others, p)
		}
	}
	how, length := mannerOf(resp), resp.Finish == memgpt.FinishLength
	r := schema.ReadReply(said.String(), f.calls)
	if how != native {
		var cut bool
		calls, cut = m.found(r.Calls, length)
		how = howWritten(r)
		if cut {
			resp.Finish = memgpt.FinishLength
		}
	} else if len(r.Calls) > 0 { // beside native calls a text is a text
		r = schema.Reply{Rest: strings.TrimSpace(said.String())}
	}
	rest := m.finishText(l, r.Rest, said.String())
	out := *resp
	out.Message.Parts = others
	if rest != "" {
		out.Message.Parts = append(out.Message.Parts, memgpt.Text{Text: rest})
	}
	for i, c := range calls {
		out.Message.Parts = append(out.Message.Parts, c)
		if l.stream != nil {
			l.stream(memgpt.Delta{Call: &memgpt.CallDelta{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}})
		}
	}
	out.Finish = finished(resp.Finish, len(calls))
	return &out, how, l.fault(&out, r.Begun && length)
}

func howWritten(r schema.Reply) manner {
	switch {
	case r.Framed:
		return framed
	case len(r.Calls) > 0:
		return written
	}
	return silent
}

// finishText passes on what is left of the text and returns the whole.
func (m *Model) finishText(l *listener, rest, all string) string {
	sent := l.sent.String()
	if !strings.HasPrefix(rest, sent) { // schema.Prose promises that it never is so
		rest = strings.TrimSpace(all)
	}
	l.say(strings.TrimPrefix(rest, sent))
	return rest
}

// found makes calls of what was found in text, and reports whether one was cut off. Then its arguments show it.
func (m *Model) found(list []schema.FoundCall, length bool) (calls []memgpt.Call, cut bool) {
	for _, c := range list {
		if c.Truncated || c.Open && length {
			cut = true
			c.Arguments = unfinished(c.Arguments)
		}
		calls = append(calls, memgpt.Call{ID: m.cfg.NewID(), Name: memgpt.CleanText(c.Name), Arguments: memgpt.CleanText(c.Arguments)})
	}
	return calls, cut
}

// unfinished returns the arguments of a call that was cut off so that they can't be taken for whole ones: forms that have
// no JSON of their own come closed.
func unfinished(args string) string {
	if schema.Truncated(args) {
		return args
	}
	return strings.TrimSuffix(strings.TrimSpace(args), "}")
}

func finished(f memgpt.Finish, calls int) memgpt.Finish {
	switch {
	case f == memgpt.FinishLength || f == memgpt.FinishFilter:
		return f
	case calls > 0:
		return memgpt.FinishCalls
	}
	return memgpt.FinishStop
}

// fault returns why a reply can't be used. begun says that it was cut off before a call had arguments.
func (l *listener) fault(out *memgpt.Response, begun bool) error {
	started := l.sent.Len() > 0
	if begun {
		return &memgpt.Error{Code: memgpt.CodeModelCut, Text: "the model's reply was cut off at the beginning of a call", Started: started}
	}
	if len(out.Message.Calls()) > 0 || out.Finish == memgpt.FinishLength || out.Finish == memgpt.FinishFilter {
		return nil
	}
	for _, p := range out.Message.Parts {
		if t, ok := p.(memgpt.Text); ok && strings.TrimSpace(t.Text) != "" {
			return nil
		}
	}
	return &memgpt.Error{Code: memgpt.CodeModelEmpty, Text: "the model's reply has neither text nor calls", Started: started}
}
