package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"memgpt"
)

// encode returns the body of a request. The request is not changed, and nothing of it is kept.
//
// Up to four cache breakpoints are set, the most that the API takes: behind the tools, behind the instructions, behind
// working context, and behind the newest message, which the next request has at the same place. The API takes the default
// life of five minutes, renewed by use, and passes over what is shorter than its least for the model (512 to 4,096 tokens)
// without a word (its guide to prompt caching, and litellm 1.110.2, prompt_cache_min_tokens; 2026-11-30). A summary is asked
// for once, and caching it would only cost.
func encode(req *memgpt.Request, model string, cfg *Config, how form) ([]byte, error) {
	list := req.Messages
	params := sdk.MessageNewParams{Model: model, MaxTokens: int64(maxTokens(req, model, cfg))}
	if len(list) > 0 && list[0].Role == memgpt.RoleSystem {
		params.System = systemBlocks(memgpt.CleanText(list[0].Said()))
		list = list[1:]
	}
	h := history{thoughts: how.thoughts}
	for i := range list {
		h.add(&list[i])
	}
	turns := h.finish()
	params.Tools = tools(req.Tools)
	if len(params.Tools) == 0 {
		params.Tools = h.stubs()
	}
	params.ToolChoice = choice(req, len(params.Tools), how)
	if !cfg.NoCache && req.Purpose != memgpt.PurposeSummary {
		mark(&params, turns)
	}
	for _, t := range turns {
		params.Messages = append(params.Messages, t.param())
	}
	extra := map[string]any{"stream": true}
	for name, value := range cfg.Extra {
		extra[name] = value
	}
	params.SetExtraFields(extra)
	return json.Marshal(params)
}

// careful is the bound of a reply where neither the request nor a table has one: each model of the API takes it.
const careful = 4096

// maxTokens is the bound of the reply, which the API wants to be told. It refuses one over the model's own.
func maxTokens(req *memgpt.Request, model string, cfg *Config) int {
	limit := orKnown(cfg.MaxOutput, knownModel(model).output)
	switch {
	case req.MaxTokens <= 0 && limit > 0:
		return limit
	case req.MaxTokens <= 0:
		return careful
	case limit > 0:
		return min(req.MaxTokens, limit)
	}
	return req.MaxTokens
}

// blocksTag opens working context at the end of the system message, as the kernel compiles it. In the contents of blocks
// the tag can't occur.
const blocksTag = "\n<memory_blocks>\n"

// systemBlocks splits the system message so that the instructions stay cached when working context changes. Joined, the
// blocks are the message byte for byte.
func systemBlocks(text string) []sdk.TextBlockParam {
	var blocks []sdk.TextBlockParam
	if i := strings.LastIndex(text, blocksTag); i > 0 && strings.TrimSpace(text[:i]) != "" {
		blocks = append(blocks, sdk.TextBlockParam{Text: text[:i]})
		text = text[i:]
	}
	if strings.TrimSpace(text) != "" {
		blocks = append(blocks, sdk.TextBlockParam{Text: text})
	}
	return blocks
}

// emptySchema is that of a function without arguments.
const emptySchema = `{"type":"object","properties":{}}`

func tools(specs []memgpt.ToolSpec) []sdk.ToolUnionParam {
	var list []sdk.ToolUnionParam
	for _, spec := range specs {
		t := sdk.ToolParam{Name: wireName(spec.Name), InputSchema: schema(spec.Parameters)}
		if spec.Description != "" {
			t.Description = sdk.String(spec.Description)
		}
		list = append(list, sdk.ToolUnionParam{OfTool: &t})
	}
	return list
}

// schema passes a schema on byte for byte, since another order of its keys would miss the cache.
func schema(raw json.RawMessage) sdk.ToolInputSchemaParam {
	if len(raw) == 0 {
		raw = json.RawMessage(emptySchema)
	}
	return param.Override[sdk.ToolInputSchemaParam](raw)
}

func choice(req *memgpt.Request, tools int, how form) sdk.ToolChoiceUnionParam {
	switch {
	case tools == 0:
	case req.Choice == memgpt.ChoiceNone || len(req.Tools) == 0:
		return sdk.ToolChoiceUnionParam{OfNone: &sdk.ToolChoiceNoneParam{}}
	case req.Choice == memgpt.ChoiceRequired && how.force:
		return sdk.ToolChoiceUnionParam{OfAny: &sdk.ToolChoiceAnyParam{}}
	}
	return sdk.ToolChoiceUnionParam{}
}

// mark sets the cache breakpoints.
func mark(params *sdk.MessageNewParams, turns []*turn) {
	here := sdk.NewCacheControlEphemeralParam()
	if n := len(params.Tools); n > 0 {
		params.Tools[n-1].OfTool.CacheControl = here
	}
	for i := range params.System {
		params.System[i].CacheControl = here
	}
	for _, t := range slices.Backward(turns) {
		if at := t.markable(); at != nil {
			*at = here
			return
		}
	}
}
