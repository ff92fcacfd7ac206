package checkv_test

import (
	"testing"

	"memgpt"
	"memgpt/internal/checkv"
)

// TestCheck shows that the check can fail.
func TestCheck(t *testing.T) {
	sys := memgpt.TextMessage(memgpt.RoleSystem, "", "s")
	user := memgpt.TextMessage(memgpt.RoleUser, "", "hello")
	callMsg := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: "f", Arguments: "{}"}}}
	result := memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "1", Text: "x"}}}
	bad := map[string][]memgpt.Message{
		"no system":      {user},
		"two systems":    {sys, user, sys},
		"open call":      {sys, user, callMsg},
		"orphan":         {sys, user, result},
		"late result":    {sys, callMsg, user, result},
		"no user":        {sys, callMsg, result},
		"empty":          {sys, user, {Role: memgpt.RoleAssistant}},
		"bad args":       {sys, user, {Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "1", Arguments: "{"}}}, result},
		"twice the same": {sys, user, callMsg, result, callMsg, result},
		"not clean":      {sys, user, memgpt.TextMessage(memgpt.RoleUser, "", "a\x00b")},
	}
	for name, msgs := range bad {
		if checkv.Check(&memgpt.Request{Messages: msgs}, 10, 1000, "hello") == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	good := &memgpt.Request{Messages: []memgpt.Message{sys, user, callMsg, result}, MaxTokens: 100}
	if err := checkv.Check(good, 900, 1000, "hello"); err != nil {
		t.Error(err)
	}
	if checkv.Check(good, 901, 1000, "hello") == nil {
		t.Error("over the window: not noticed")
	}
}
