package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"memgpt"
	"memgpt/token"
)

// checkV holds what must be true of every request that leaves. asked is the text with which the newest message of a user
// begins; "" when there is none yet.
func checkV(req *memgpt.Request, count *token.Counter, factor float64, window int, asked string) error {
	if len(req.Messages) == 0 || req.Messages[0].Role != memgpt.RoleSystem {
		return fmt.Errorf("the first message is not the system's")
	}
	ids := map[string]bool{}
	found := asked == ""
	for i := range req.Messages {
		m := &req.Messages[i]
		if err := checkMessage(req, i, ids); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
		found = found || m.Role == memgpt.RoleUser && strings.Contains(m.Said(), asked)
	}
	if !found {
		return fmt.Errorf("the newest message of the user is not in it: %.60q", asked)
	}
	if n := int(float64(countOf(req, count))*factor) + req.MaxTokens; n > window {
		return fmt.Errorf("%d tokens with the reply's %d are over the window of %d", n, req.MaxTokens, window)
	}
	return nil
}

// countOf counts a request anew, as its provider would.
func countOf(req *memgpt.Request, count *token.Counter) int {
	total := count.Tools(req.Tools) + 3
	for i := range req.Messages {
		total += count.Message(&req.Messages[i])
	}
	return total
}

func checkMessage(req *memgpt.Request, i int, ids map[string]bool) error {
	m := &req.Messages[i]
	if i > 0 && m.Role == memgpt.RoleSystem {
		return fmt.Errorf("a second message of the system")
	}
	calls := m.Calls()
	for n, c := range calls {
		if err := checkCall(req, i, n, c, ids); err != nil {
			return err
		}
	}
	if m.Role == memgpt.RoleTool {
		j := i
		for j > 0 && req.Messages[j].Role == memgpt.RoleTool {
			j--
		}
		if n := i - j - 1; n >= len(req.Messages[j].Calls()) {
			return fmt.Errorf("a result without a call")
		}
	}
	text := m.Said() + m.Thoughts()
	if text == "" && len(calls) == 0 {
		return fmt.Errorf("no content")
	}
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return fmt.Errorf("not clean text")
	}
	return nil
}

func checkCall(req *memgpt.Request, i, n int, c memgpt.Call, ids map[string]bool) error {
	var args map[string]any
	if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil || args == nil {
		return fmt.Errorf("arguments of %s are no object: %.80s", c.Name, c.Arguments)
	}
	if ids[c.ID] || c.ID == "" || len(c.ID) > 40 {
		return fmt.Errorf("id %q is used twice, empty or too long", c.ID)
	}
	ids[c.ID] = true
	if i+1+n >= len(req.Messages) {
		return fmt.Errorf("call %s has no result", c.ID)
	}
	if res, ok := req.Messages[i+1+n].Result(); !ok || res.CallID != c.ID {
		return fmt.Errorf("call %s is not followed by its result", c.ID)
	}
	return nil
}

// TestCheckV shows that the check can fail.
func TestCheckV(t *testing.T) {
	count, err := token.New(token.Config{})
	must(t, err)
	sys := memgpt.TextMessage(memgpt.RoleSystem, "", "s")
	user := memgpt.TextMessage(memgpt.RoleUser, "", "hello")
	callMsg := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: "f", Arguments: "{}"}}}
	result := memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "1", Text: "x"}}}
	bad := map[string][]memgpt.Message{
		"no system":       {user},
		"two systems":     {sys, user, sys},
		"open call":       {sys, user, callMsg},
		"orphan":          {sys, user, result},
		"late result":     {sys, callMsg, user, result},
		"no user":         {sys, callMsg, result},
		"empty":           {sys, user, {Role: memgpt.RoleAssistant}},
		"bad args":        {sys, user, {Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "1", Arguments: "{"}}}, result},
		"twice the same":  {sys, user, callMsg, result, callMsg, result},
		"over the window": {sys, user, memgpt.TextMessage(memgpt.RoleUser, "", strings.Repeat("word ", 2000))},
	}
	for name, msgs := range bad {
		if checkV(&memgpt.Request{Messages: msgs}, count, 1, 1000, "hello") == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	if err := checkV(&memgpt.Request{Messages: []memgpt.Message{sys, user, callMsg, result}}, count, 1, 1000, "hello"); err != nil {
		t.Error(err)
	}
}
