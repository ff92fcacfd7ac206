package memtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"memgpt"
	"memgpt/tool"
)

// argReason is the argument of every function that changes memory in tidying: why, for the owner. It is kept with the call.
const argReason = "reason"

// Tidying returns the functions with which memory is tidied in the background, in a fixed order: those that search, read and
// edit, and yield, which ends the turn. None speaks to anybody or sets a timer, and none deletes. Each edit takes a reason.
func Tidying(compact bool) ([]tool.Tool, error) {
	form := Form{Compact: compact, Native: true}
	var tools []tool.Tool
	for _, d := range definitions() {
		if !slices.Contains(tidyFunctions(), d.name) {
			continue
		}
		t, err := d.tool(form)
		if err == nil && d.effect == memgpt.EffectMemory && d.name != memgpt.FuncYield {
			err = demandReason(&t, form)
		}
		if err != nil {
			return nil, fmt.Errorf("define function %s for tidying: %w", d.name, err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func tidyFunctions() []string {
	return []string{memgpt.FuncYield, "core_memory_append", "memory_replace", "memory_rethink", "conversation_search",
		"archival_memory_insert", "archival_memory_search", "archival_memory_update", "archival_memory_merge", "memory_read"}
}

// demandReason adds the argument to a function, which fails without it.
func demandReason(t *tool.Tool, form Form) error {
	err := addReason(&t.Spec.Parameters, form)
	if err == nil && len(t.Accepts) > 0 {
		err = addReason(&t.Accepts, form)
	}
	if err != nil {
		return err
	}
	edit := t.Call
	t.Call = func(ctx context.Context, in tool.Invocation) (string, error) {
		if strings.TrimSpace(Reason(in.Args)) == "" {
			return "", errors.New("nothing was changed: reason is empty; say in a few words why, for the owner")
		}
		return edit(ctx, in)
	}
	return nil
}

func addReason(params *json.RawMessage, form Form) error {
	var p parameters
	if err := json.Unmarshal(*params, &p); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	reason := property{Type: "string", Description: "why, in a few words, for the owner"}
	if form.Compact {
		reason.Description = ""
	}
	text, err := marshal(reason)
	if err != nil {
		return err
	}
	p.Properties = json.RawMessage(strings.TrimSuffix(string(p.Properties), "}") + fmt.Sprintf(",%q:%s}", argReason, text))
	p.Required = append(slices.Clip(p.Required), argReason)
	*params, err = marshal(p)
	return err
}

// Reason returns what a call of tidying gives as its reason; "" where it gives none.
func Reason(args json.RawMessage) string {
	var given struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(args, &given) != nil {
		return ""
	}
	return given.Reason
}
