package behaviour

import (
	"os"
	"testing"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/openai"
	"memgpt/model/prompted"
	"memgpt/schema"
)

// TestRealServer asks a real server, in as far as one is named. What a small model says is not looked at. Held to the
// schema it must call functions that exist, with arguments that fit, unless it is cut off; in any way it must be survived.
func TestRealServer(t *testing.T) {
	url := os.Getenv("MEMGPT_REAL_BASE_URL")
	if url == "" {
		t.Skip("MEMGPT_REAL_BASE_URL names no server of a real model (shared/tools/real-model.sh starts one)")
	}
	m, err := openai.New(openai.Config{BaseURL: url, Model: os.Getenv("MEMGPT_REAL_MODEL"), Schema: true})
	must(t, err)
	tools, err := memtool.System(true, false)
	must(t, err)
	req := &memgpt.Request{MaxTokens: 200, Messages: []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "You are an agent with a memory of your own."),
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, `{"type":"user_message","message":"I am Ada and I drink tea."}`)}}
	fits := map[string]*schema.Schema{}
	for _, tool := range tools {
		req.Tools = append(req.Tools, tool.Spec)
		fits[tool.Spec.Name], err = schema.Parse(tool.Spec.Parameters)
		must(t, err)
	}
	for _, way := range []prompted.Mode{prompted.Prompted, prompted.Constrained, prompted.Auto} {
		p, err := prompted.New(prompted.Config{Model: m, Mode: way})
		must(t, err)
		for range 3 {
			resp, err := p.Generate(t.Context(), req, func(memgpt.Delta) {})
			if code := memgpt.CodeOf(err); err != nil && code != memgpt.CodeModelEmpty && code != memgpt.CodeModelCut {
				t.Fatalf("%s: %v", way, err)
			}
			calls := resp.Message.Calls()
			t.Logf("%s: finish %s, %d tokens in, %d out, calls %+v, text %.80q, %v", way, resp.Finish, resp.Usage.Input, resp.Usage.Output, calls, resp.Message.Said(), err)
			if way != prompted.Constrained || resp.Finish == memgpt.FinishLength {
				continue
			}
			if len(calls) == 0 {
				t.Errorf("%s: no call", way)
			}
			for _, c := range calls {
				if s := fits[c.Name]; s == nil {
					t.Errorf("%s: there is no function %q", way, c.Name)
				} else if _, _, err := s.Decode(c.Arguments, schema.Options{}); err != nil {
					t.Errorf("%s: %v", way, err)
				}
			}
		}
	}
}
