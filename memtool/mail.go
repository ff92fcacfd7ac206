package memtool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"memgpt"
	"memgpt/tool"
)

type writeAgentArgs struct {
	Agent   string `json:"agent"`
	Message string `json:"message"`
}

type writeTaggedArgs struct {
	Tags    []string `json:"tags"`
	Message string   `json:"message"`
}

// Mail returns the functions by which an agent writes to others, in a fixed order. They need a host that runs the others;
// who has one offers them to agents whose Reach says so (see SystemWithMail). As those of Schedules, their specs are compact
// in every form.
func Mail(native bool) ([]tool.Tool, error) {
	var tools []tool.Tool
	for _, d := range mailFunctions() {
		t, err := d.tool(Form{Compact: true, Native: native})
		if err != nil {
			return nil, fmt.Errorf("define function %s: %w", d.name, err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// SystemWithMail is SystemWithSchedules with the functions of Mail, for large windows. The specs of all are compact, since the fixed
// part of a request may have 2,000 tokens; results are shown as in the full form.
func SystemWithMail(native bool) ([]tool.Tool, error) {
	tools, err := Tools(Form{Native: native})
	if err != nil {
		return nil, err
	}
	short, err := Tools(Form{Native: native, Compact: true})
	if err != nil {
		return nil, err
	}
	for i := range tools {
		tools[i].Spec = short[i].Spec
	}
	timers, err := Schedules(native)
	if err != nil {
		return nil, err
	}
	mail, err := Mail(native)
	return slices.Concat(tools, timers, mail), err
}

func mailFunctions() []definition {
	to := map[string]string{"other_agent_id": "agent", "agent_id": "agent", "agent_name": "agent", "name": "agent", "to": "agent",
		"text": "message", "content": "message", "msg": "message"}
	tagged := map[string]string{"match_all": "tags", "tag": "tags", "text": "message", "content": "message", "msg": "message"}
	return []definition{
		define(definition{name: "send_message_to_agent_async", effect: memgpt.EffectMemory, aliases: to}, writeAgent),
		define(definition{name: "send_message_to_agent_and_wait_for_reply", effect: memgpt.EffectDeferred, final: true, aliases: to}, askAgent),
		define(definition{name: "send_message_to_agents_matching_tags", effect: memgpt.EffectMemory, aliases: tagged,
			compact: "To all agents with these tags."}, writeTagged),
	}
}

func writeAgent(ctx context.Context, c call, args writeAgentArgs) (string, error) {
	name, err := c.Write(ctx, args.Agent, args.Message, false)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Sent to %s. If it writes back, that comes as a message of its own.", name), nil
}

func askAgent(ctx context.Context, c call, args writeAgentArgs) (string, error) {
	name, err := c.Write(ctx, args.Agent, args.Message, true)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Sent to %s.", name), nil
}

func writeTagged(ctx context.Context, c call, args writeTaggedArgs) (string, error) {
	names, refused, err := c.WriteTagged(ctx, args.Tags, args.Message)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Sent to %s: %s.", count(len(names), "agent"), shorten(strings.Join(names, ", "), c.excerpt))
	if len(refused) > 0 {
		text += " Not to others: " + shorten(strings.Join(refused, "; "), c.excerpt)
	}
	return text, nil
}
