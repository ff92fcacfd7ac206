// Package memtool has the functions by which a model works on its own memory and speaks: the system calls of the kernel.
// It owns their names, arguments, descriptions, checks and the wording of their results and errors, in full and in
// compact form. It owns no memory: each function works on the tool.Memory of its step, and what it changes there is
// committed or thrown away by the kernel.
package memtool

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"memgpt"
	"memgpt/schema"
	"memgpt/tool"
)

// Form says how the functions are described and how much their results show.
type Form struct {
	// Compact is for small windows: no descriptions of arguments, short results. All compact specs together have at most
	// 690 tokens (o200k_base), all full ones 1,270.
	Compact bool
	// Native is for memgpt.ProtocolNative: no send_message, since text speaks, and no request_heartbeat, since the turn
	// goes on while functions are called.
	Native bool
}

// Tools returns the functions in a fixed order. The specs of those that are not Final have the optional argument
// request_heartbeat, unless the form is native; the functions themselves overlook it.
func Tools(form Form) ([]tool.Tool, error) {
	var tools []tool.Tool
	for _, d := range definitions() {
		if form.Native && d.name == memgpt.FuncSendMessage {
			continue
		}
		t, err := d.tool(form)
		if err != nil {
			return nil, fmt.Errorf("define function %s: %w", d.name, err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// System is Tools with the form in two words, as a kernel's configuration takes it.
func System(compact, native bool) ([]tool.Tool, error) {
	return Tools(Form{Compact: compact, Native: native})
}

// New makes a tool of a Go function. T is a struct with its arguments, as schema.For takes it: the tag json names an
// argument and says by omitempty that it may be left out, the tag jsonschema describes it. The result of fn is shown to
// the model as it is; an error becomes a failed result, so that its text should tell the model what to do. An effect of 0
// is memgpt.EffectOutside. New fails for a name that providers refuse and for a T that has no schema.
//
// The spec has no request_heartbeat; whoever offers the tool adds it where its protocol wants it.
func New[T any](name, description string, effect memgpt.Effect, fn func(ctx context.Context, args T) (string, error)) (tool.Tool, error) {
	if !toolName.MatchString(name) {
		return tool.Tool{}, memgpt.Errorf(memgpt.CodeInvalid,
			"make a tool: the name %q has to be 1 to 64 letters, digits, _ or - of ASCII", name)
	}
	if fn == nil {
		return tool.Tool{}, memgpt.Errorf(memgpt.CodeInvalid, "make tool %s: its function is nil", name)
	}
	s, err := schema.For[T]()
	if err != nil {
		return tool.Tool{}, fmt.Errorf("make tool %s: %w", name, err)
	}
	if s.Has(memgpt.ArgHeartbeat) {
		return tool.Tool{}, memgpt.Errorf(memgpt.CodeInvalid, "make tool %s: the argument %s belongs to the kernel",
			name, memgpt.ArgHeartbeat)
	}
	call := func(ctx context.Context, in tool.Invocation) (string, error) {
		args, err := decode[T](in.Args)
		if err != nil {
			return "", err
		}
		return fn(ctx, args)
	}
	spec := memgpt.ToolSpec{Name: name, Description: description, Parameters: s.JSON()}
	return tool.Tool{Spec: spec, Effect: effect, Call: call}, nil
}

// toolName is what the APIs of OpenAI and Anthropic take for the name of a function.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func decode[T any](raw json.RawMessage) (T, error) {
	var args T
	if len(raw) == 0 {
		return args, nil
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return args, fmt.Errorf("the arguments do not fit the function's schema: %w", err)
	}
	return args, nil
}

// definition is one memory function in both forms.
type definition struct {
	name     string
	full     string // description
	compact  string // description; "" where the name says it all
	effect   memgpt.Effect
	final    bool
	search   bool
	rewrites bool // tool.Tool.Rewrites
	aliases  map[string]string
	// fullOnly are arguments that the compact form doesn't name, and takes.
	fullOnly []string
	schema   func() (*schema.Schema, error)
	call     func(ctx context.Context, c call, raw json.RawMessage) (string, error)
}

// call is what a function works with.
type call struct {
	tool.Memory
	sizes
}

// minExcerpt is the least that is shown of a text, in characters: enough to see what it is about.
const minExcerpt = 40

// bestExcerpt is what is shown of the best text found, also where the others are cut shorter: most often it is the answer.
const bestExcerpt = 200

// leastQuote is what is shown of each text found as long as less of those that rank last makes room, in characters: five
// texts of a few words tell less than two whole sentences.
const leastQuote = 150

// briefExcerpt is what is shown of a text that ranks last, in characters: a line.
const briefExcerpt = 80

// fitted renders a result with less and less until it is shown whole: a result that is cut at its end loses its last hits
// and the way on. Texts are cut first, then those that rank last are shown by the id and a line, the best one is cut last.
func (c call) fitted(render func(call) (string, error)) (string, error) {
	for {
		text, err := render(c)
		if err != nil || c.Fits(text) || !c.sizes.shrink() {
			return text, err
		}
	}
}

// sizes bound what a result shows, in characters.
type sizes struct {
	excerpt int // of a text found
	best    int // of the best one at least
	page    int // of a text read
	brief   int // texts found, from the last one, that are shown by the id and briefExcerpt at most
	ranked  int // texts found that may be shown so
	pairs   int // contradictions among them
}

// shrink reports whether less can be shown.
func (s *sizes) shrink() bool {
	if s.excerpt <= leastQuote && s.page <= leastQuote {
		if s.pairs > 0 { // texts count for more than what is said of them
			s.pairs--
			return true
		}
		if s.brief < s.ranked {
			s.brief++
			return true
		}
	}
	if s.excerpt <= minExcerpt && s.page <= minExcerpt {
		if s.best <= minExcerpt {
			return false
		}
		s.best = max(s.best/2, minExcerpt)
	}
	least := minExcerpt
	if s.brief < s.ranked {
		least = leastQuote
	}
	s.excerpt, s.page = max(s.excerpt/2, min(s.excerpt, least)), max(s.page/2, min(s.page, least))
	return true
}

// define fills in what follows from the type of a function's arguments.
func define[T any](d definition, run func(ctx context.Context, c call, args T) (string, error)) definition {
	d.schema = schema.For[T]
	d.call = func(ctx context.Context, c call, raw json.RawMessage) (string, error) {
		args, err := decode[T](raw)
		if err != nil {
			return "", err
		}
		return run(ctx, c, args)
	}
	return d
}

func (d definition) tool(form Form) (tool.Tool, error) {
	spec, err := d.spec(form)
	if err != nil {
		return tool.Tool{}, err
	}
	size := sizes{excerpt: 600, best: bestExcerpt, page: 3000, pairs: maxContradictions}
	if form.Compact {
		size = sizes{excerpt: 300, best: bestExcerpt, page: 1200, pairs: maxContradictions}
	}
	var accepts json.RawMessage
	if form.Compact && len(d.fullOnly) > 0 {
		whole := d
		whole.fullOnly = nil
		all, err := whole.spec(form)
		if err != nil {
			return tool.Tool{}, err
		}
		accepts = all.Parameters
	}
	run := func(ctx context.Context, in tool.Invocation) (string, error) {
		return d.call(ctx, call{in.Memory, size}, in.Args)
	}
	return tool.Tool{Spec: spec, Effect: d.effect, Accepts: accepts, Aliases: d.aliases, Final: d.final, Search: d.search, Rewrites: d.rewrites, Call: run}, nil
}

// definitions lists the functions: speech first, then memory from the nearest to the farthest.
func definitions() []definition {
	var all []definition
	for _, group := range [][]definition{talkFunctions(), blockFunctions(), recallFunctions(), archiveFunctions(), readFunctions()} {
		all = append(all, group...)
	}
	return all
}
