// Package checkv checks that a request which leaves a kernel is one that every provider takes and that shows what it must:
// invariants 4, 5 and 10 of the architecture. Tests of the kernel and of real servers share it.
package checkv

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"memgpt"
)

// maxID is the longest id of a call that the strictest provider takes (OpenAI, 40 bytes).
const maxID = 40

// Check returns what is wrong with a request; nil is nothing. size is what it counts as, functions and templates included,
// in the tokens of window. asked stands in the newest message of a user; "" when there is none yet.
func Check(req *memgpt.Request, size, window int, asked string) error {
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
	if size+req.MaxTokens > window {
		return fmt.Errorf("%d tokens with the reply's %d are over the window of %d", size+req.MaxTokens, req.MaxTokens, window)
	}
	return nil
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
	if ids[c.ID] || c.ID == "" || len(c.ID) > maxID {
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
