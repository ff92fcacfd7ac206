package card

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"memgpt"
	"memgpt/schema"
)

// Names of the checks.
const (
	CheckSpeaks    = "speaks"
	CheckStreams   = "streams"
	CheckCounts    = "counts"
	CheckCalls     = "calls"
	CheckParallel  = "parallel calls"
	CheckForced    = "forced choice"
	CheckAnswers   = "answers"
	CheckSaves     = "saves"
	CheckRepairs   = "repairs"
	CheckRemembers = "remembers"
)

// maxTries is the largest number of tries of a check.
const maxTries = 3

// check is one line of the card.
type check struct {
	name, about string
	tries       int
	calls       bool // it needs calls, and so is run with calls prompted and constrained too
	looks       bool // it needs memory to be looked up, and so is run with prefetch too
	run         func(context.Context, *bench) (result, error)
}

// bench is one try of a check.
type bench struct {
	lab   *lab
	way   Way
	calls Way // how functions are called
	model memgpt.Model
	try   int // from 0
}

// checks returns the lines of the card in their order: cheap ones first, so that the first seconds tell most.
func checks() []check {
	return []check{
		{name: CheckSpeaks, about: "answers in words", tries: 2, run: runSpeaks},
		{name: CheckStreams, about: "a streamed reply is whole, and the same as one in one piece", tries: 2, run: runStreams},
		{name: CheckCounts, about: "the server's count of tokens can be foretold by ours", tries: 1, run: runCounts},
		{name: CheckCalls, about: "calls the function that fits, with arguments that fit", tries: 3, calls: true, run: runCalls},
		{name: CheckParallel, about: "makes two calls in one reply", tries: 2, calls: true, run: runParallel},
		{name: CheckForced, about: "calls a function where one is required", tries: 3, calls: true, run: runForced},
		{name: CheckAnswers, about: "an agent's turn ends in words to its user", tries: 3, calls: true, run: runAnswers},
		{name: CheckSaves, about: "writes down what it is asked to keep", tries: 2, calls: true, run: runSaves},
		{name: CheckRepairs, about: "does a refused call again as it is told", tries: 2, calls: true, run: runRepairs},
		{name: CheckRemembers, about: "finds a fact again that has left main context", tries: 2, calls: true, looks: true, run: runRemembers},
	}
}

// system is the first message of the requests that go without a kernel.
const system = "You are a helpful assistant. You answer briefly. Where a function is offered that does what you are asked, you call it."

// ask makes a request of one message.
func ask(text string, tools ...memgpt.ToolSpec) *memgpt.Request {
	return &memgpt.Request{Tools: tools, Messages: []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, system),
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)}}
}

// generate asks the model and begins the result of the try. The way in which a model fails belongs to the result.
func (b *bench) generate(ctx context.Context, req *memgpt.Request) (*memgpt.Response, result, error) {
	resp, err := b.model.Generate(ctx, req, nil)
	r := result{asked: req.Messages[len(req.Messages)-1].Said(), came: b.lab.meter.replies()}
	return resp, r, err
}

// The functions that are offered without a kernel.
const (
	funcWeather  = "get_weather"
	funcReminder = "set_reminder"
)

func weatherSpec() memgpt.ToolSpec {
	return memgpt.ToolSpec{Name: funcWeather, Description: "Returns the present weather of a city.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"city":{"type":"string","description":"Name of the city."}},"required":["city"]}`)}
}

func reminderSpec() memgpt.ToolSpec {
	return memgpt.ToolSpec{Name: funcReminder, Description: "Reminds the user of something after some minutes.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string","description":"What to remind of."},"minutes":{"type":"integer","minimum":1}},"required":["text","minutes"]}`)}
}

// made is a call whose arguments fit, as the kernel would take it.
type made struct {
	name string
	args string // in lower case
}

// readCalls reads the calls of a reply as the kernel would: those of the protocol, else those in the text. It also says
// what is wrong with the first that doesn't fit.
func readCalls(resp *memgpt.Response, tools []memgpt.ToolSpec) (calls []made, wrong string) {
	list := resp.Message.Calls()
	if len(list) == 0 {
		found, _ := schema.FindCalls(resp.Message.Said(), func(name string) bool { return specNamed(tools, name) != nil })
		for _, f := range found {
			list = append(list, memgpt.Call{Name: f.Name, Arguments: f.Arguments})
		}
	}
	for _, c := range list {
		args, err := readArguments(c, tools, resp.Finish == memgpt.FinishLength)
		if err == nil {
			calls = append(calls, made{c.Name, strings.ToLower(args)})
		} else if wrong == "" {
			wrong = err.Error()
		}
	}
	if len(list) == 0 {
		wrong = "no call"
	}
	return calls, wrong
}

func readArguments(c memgpt.Call, tools []memgpt.ToolSpec, cut bool) (string, error) {
	spec := specNamed(tools, c.Name)
	if spec == nil {
		return "", fmt.Errorf("there is no function %q", memgpt.CutText(c.Name, 40))
	}
	s, err := schema.Parse(spec.Parameters)
	if err != nil {
		return "", err
	}
	args, _, err := s.Decode(c.Arguments, schema.Options{Function: c.Name, Cut: cut})
	return string(args), err
}

func specNamed(tools []memgpt.ToolSpec, name string) *memgpt.ToolSpec {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

// wanted is a call that is expected: a function, and words among its arguments.
type wanted struct {
	name  string
	words []string
}

func (w wanted) among(calls []made) bool {
	for _, c := range calls {
		if c.name == w.name && holdsAll(c.args, w.words) {
			return true
		}
	}
	return false
}

func holdsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// runSpeaks asks for a few words.
func runSpeaks(ctx context.Context, b *bench) (result, error) {
	text := []string{"Say hello to Ada in one short sentence.", "Name three kinds of fruit."}[b.try]
	resp, r, err := b.generate(ctx, ask(text))
	if err != nil {
		return r, err
	}
	r.passed = strings.ContainsFunc(resp.Message.Said(), unicode.IsLetter)
	r.why = "no words"
	return r, nil
}

// expectCalls asks something and looks for calls.
func (b *bench) expectCalls(ctx context.Context, text string, want ...wanted) (result, error) {
	req := ask(text, weatherSpec(), reminderSpec())
	resp, r, err := b.generate(ctx, req)
	if err != nil {
		return r, err
	}
	calls, wrong := readCalls(resp, req.Tools)
	found := 0
	for _, w := range want {
		if w.among(calls) {
			found++
		}
	}
	r.passed = found == len(want)
	switch {
	case wrong != "":
		r.why = wrong
	case found > 0:
		r.why = fmt.Sprintf("%d of the %d calls that were asked for", found, len(want))
	default:
		r.why = "another call than the one that was asked for"
	}
	return r, nil
}

func runCalls(ctx context.Context, b *bench) (result, error) {
	switch b.try {
	case 0:
		return b.expectCalls(ctx, "What is the weather in Oslo right now?", wanted{funcWeather, []string{"oslo"}})
	case 1:
		return b.expectCalls(ctx, "Remind me in 20 minutes to turn off the oven.", wanted{funcReminder, []string{"20", "oven"}})
	}
	return b.expectCalls(ctx, "Is it raining in Lima?", wanted{funcWeather, []string{"lima"}})
}

func runParallel(ctx context.Context, b *bench) (result, error) {
	if b.try == 0 {
		return b.expectCalls(ctx, "What is the weather in Oslo and in Lima? Make both calls at once, in one reply.",
			wanted{funcWeather, []string{"oslo"}}, wanted{funcWeather, []string{"lima"}})
	}
	return b.expectCalls(ctx, "Set two reminders at once, in one reply: tea in 4 minutes, eggs in 9 minutes.",
		wanted{funcReminder, []string{"tea", "4"}}, wanted{funcReminder, []string{"egg", "9"}})
}

// runForced requires a call where nothing in the message asks for one.
func runForced(ctx context.Context, b *bench) (result, error) {
	req := ask("Hello! How are you today?", weatherSpec(), reminderSpec())
	switch b.try {
	case 1:
		req = ask("Thank you, that was all for now.", weatherSpec(), reminderSpec())
	case 2:
		req = ask("I like a seat at the window.", reminderSpec())
	}
	req.Choice = memgpt.ChoiceRequired
	resp, r, err := b.generate(ctx, req)
	if err != nil {
		return r, err
	}
	calls, wrong := readCalls(resp, req.Tools)
	r.passed, r.why = len(calls) > 0, wrong
	return r, nil
}

// runStreams asks the same thing twice, once streamed: the stream's pieces have to make up its reply, and that is to be
// like the one that came in one piece.
func runStreams(ctx context.Context, b *bench) (result, error) {
	req := ask("Describe a lighthouse in two sentences.")
	if b.try == 1 {
		req = ask("What is the weather in Cairo?", weatherSpec())
	}
	req.MaxTokens = 100
	steady, whole := b.model, b.model
	if b.lab.cfg.Steady != nil {
		steady, whole = b.lab.metered(b.lab.cfg.Steady), b.lab.metered(b.lab.cfg.Whole)
	}
	r := result{asked: req.Messages[1].Said()}
	var heard reply
	streamed, err := steady.Generate(ctx, req, heard.hear)
	if refusesTemperature(err, b) {
		steady, whole, heard = b.model, b.model, reply{}
		streamed, err = steady.Generate(ctx, req, heard.hear)
	}
	r.came = b.lab.meter.replies()
	if err != nil {
		return r, err
	}
	if r.why = heard.differs(streamed); r.why != "" {
		return r, nil
	}
	other, err := whole.Generate(ctx, req, nil)
	r.came = b.lab.meter.replies()
	if err != nil {
		return r, err
	}
	if r.why = compare(streamed, other, steady != b.model); r.why != "" && steady != b.model {
		// A prompt that is read from the server's cache is computed in other pieces, which may turn a close choice of a word.
		// By now it is in the cache for both.
		if streamed, err = steady.Generate(ctx, req, nil); err != nil {
			return r, err
		}
		if other, err = whole.Generate(ctx, req, nil); err != nil {
			return r, err
		}
		r.why = compare(streamed, other, true)
	}
	r.passed = r.why == ""
	return r, nil
}

// refusesTemperature reports whether the model can't be asked with a temperature of 0.
func refusesTemperature(err error, b *bench) bool {
	return b.lab.cfg.Steady != nil && memgpt.CodeOf(err) == memgpt.CodeModelRequest
}

// reply is what a stream's pieces add up to.
type reply struct {
	text, thoughts strings.Builder
	calls          []memgpt.Call
	pieces         int
}

func (h *reply) hear(d memgpt.Delta) {
	h.pieces++
	h.text.WriteString(d.Text)
	h.thoughts.WriteString(d.Reasoning)
	if c := d.Call; c != nil && c.Index >= 0 && c.Index < 1000 {
		for len(h.calls) <= c.Index {
			h.calls = append(h.calls, memgpt.Call{})
		}
		h.calls[c.Index].Name += c.Name
		h.calls[c.Index].Arguments += c.Arguments
	}
}

// differs says in what the pieces differ from the reply; "" is in nothing.
func (h *reply) differs(resp *memgpt.Response) string {
	if h.pieces == 0 {
		return "no piece came before the whole reply"
	}
	var text strings.Builder
	for _, p := range resp.Message.Parts {
		if t, ok := p.(memgpt.Text); ok {
			text.WriteString(t.Text)
		}
	}
	calls := resp.Message.Calls()
	if strings.TrimSpace(h.text.String()) != strings.TrimSpace(text.String()) {
		return fmt.Sprintf("the stream's text differs from the reply's: %d and %d bytes", h.text.Len(), text.Len())
	}
	if len(h.calls) != len(calls) {
		return fmt.Sprintf("%d calls in the stream, %d in the reply", len(h.calls), len(calls))
	}
	for i, c := range calls {
		if h.calls[i].Name != c.Name || h.calls[i].Arguments != c.Arguments {
			return "a call in the stream differs from that in the reply"
		}
	}
	return ""
}

// compare says in what two replies to one request differ. Where the words are to be the same they are compared, else
// whether the reply ended and said or called something.
func compare(a, b *memgpt.Response, words bool) string {
	if words {
		if x, y := written(a), written(b); x != y {
			return "streamed and in one piece the replies differ: in one piece " + shown(y)
		}
		return ""
	}
	for _, r := range []*memgpt.Response{a, b} {
		if r.Finish == "" {
			return "the reply doesn't say why it ended"
		}
		if strings.TrimSpace(r.Message.Said()) == "" && len(r.Message.Calls()) == 0 {
			return "the reply is empty"
		}
	}
	return ""
}

// Bounds of what the server may count for one token of ours, where it doesn't vouch for its count by counting apart:
// vocabularies of 32,000 to 260,000 pieces lie within, a prompt that was cut or counted twice lies outside.
const (
	leastRatio = 0.6
	mostRatio  = 1.7
)

// foretold is by how much the server's count of a request may differ from what ours foretells after one report.
const foretold = 0.15

// runCounts asks a short and a long thing, and compares the counts.
func runCounts(ctx context.Context, b *bench) (result, error) {
	short, long := ask(small(3)+"\nHow many people are named in this text?"), ask(small(12)+"\nHow many people are named in this text?")
	var reported, ours [2]int
	var r result
	for i, req := range []*memgpt.Request{short, long} {
		req.MaxTokens = 16
		resp, err := b.model.Generate(ctx, req, nil)
		r.asked, r.came = fmt.Sprintf("a text of %d bytes", len(req.Messages[1].Said())), b.lab.meter.replies()
		if err != nil {
			return r, err
		}
		reported[i], ours[i] = resp.Usage.Input, requestSize(b.lab.count, req)
	}
	r.came = fmt.Sprintf("the server reports %d tokens of the short and %d of the long request, we count %d and %d", reported[0], reported[1], ours[0], ours[1])
	own, err := b.ownCount(ctx, long)
	if err != nil {
		return r, err
	}
	r.why = misjudged(ours, reported, own)
	r.passed = r.why == ""
	return r, nil
}

// ownCount is the server's count of a request apart from its usage; 0 where it offers none.
func (b *bench) ownCount(ctx context.Context, req *memgpt.Request) (int, error) {
	if b.lab.cfg.Count == nil {
		return 0, nil
	}
	counted := *req
	n, err := b.lab.cfg.Count(ctx, &counted)
	if memgpt.CodeOf(err) == memgpt.CodeInvalid { // it can't count
		return 0, nil
	}
	return n, err
}

// misjudged says what is wrong with reports, by our counts and the server's own of the long request; "" is nothing.
func misjudged(ours, reported [2]int, own int) string {
	if reported[0] <= 0 || reported[1] <= 0 {
		return "the server reports no tokens: there is only our estimate, which nothing corrects"
	}
	ratio := float64(reported[1]) / float64(ours[1])
	guess := float64(ours[1]) * float64(reported[0]) / float64(ours[0])
	switch {
	case own > 0 && own != reported[1]:
		return fmt.Sprintf("the server counts %d tokens and reports %d of the same request", own, reported[1])
	case ratio < leastRatio:
		return fmt.Sprintf("%.2f tokens are reported where we count 1: the server seems to cut the prompt; set its context window to the agent's", ratio)
	case own == 0 && ratio > mostRatio:
		return fmt.Sprintf("%.2f tokens are reported where we count 1: so much less of the window can be used", ratio)
	case guess > (1+foretold)*float64(reported[1]) || guess < (1-foretold)*float64(reported[1]):
		return fmt.Sprintf("after the short request we foretell %.0f tokens of the long one, and %d are reported", guess, reported[1])
	}
	return ""
}
