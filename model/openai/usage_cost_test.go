package openai

import (
	"encoding/json"
	"testing"

	"memgpt"
)

// TestUsageOfProviders holds what the parts of a usage are in, by the published forms: what was cached or written is part
// of the input, reasoning is part of the output, and nothing is counted twice.
func TestUsageOfProviders(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want memgpt.Usage
	}{
		"openai": {`{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":20},
			"completion_tokens_details":{"reasoning_tokens":25}}`, memgpt.Usage{Input: 100, Cached: 60, Written: 20, Output: 30, Reasoning: 25}},
		"openai, responses": {`{"input_tokens":100,"output_tokens":30,"total_tokens":130,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":20},
			"output_tokens_details":{"reasoning_tokens":25}}`, memgpt.Usage{Input: 100, Cached: 60, Written: 20, Output: 30, Reasoning: 25}},
		"deepseek": {`{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40,
			"completion_tokens_details":{"reasoning_tokens":25}}`, memgpt.Usage{Input: 100, Cached: 60, Output: 30, Reasoning: 25}},
		"xai, reasoning beside the completion": {`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":130,"completion_tokens_details":{"reasoning_tokens":25}}`,
			memgpt.Usage{Input: 100, Output: 30, Reasoning: 25}},
		"no total": {`{"prompt_tokens":100,"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":25}}`,
			memgpt.Usage{Input: 100, Output: 30, Reasoning: 25}},
		"openrouter": {`{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"cost":0.0000123456}`, memgpt.Usage{Input: 100, Output: 30, Priced: 1, Nano: 12346}},
		"free":       {`{"prompt_tokens":100,"completion_tokens":30,"cost":0}`, memgpt.Usage{Input: 100, Output: 30, Priced: 1}},
		"nonsense":   {`{"prompt_tokens":100,"completion_tokens":30,"cost":-1}`, memgpt.Usage{Input: 100, Output: 30}},
	} {
		var u usage
		if err := json.Unmarshal([]byte(c.body), &u); err != nil {
			t.Fatal(err)
		}
		if got := u.withCost(u.tokens()); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if p, _ := ProfileOf("openrouter"); !p.TellsCost {
		t.Error("openrouter's own word on costs isn't read")
	}
	if p, _ := ProfileOf("openai"); p.TellsCost {
		t.Error("a cost that nobody documents is read")
	}
}
