package kernel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"memgpt"
	"memgpt/schema"
	"memgpt/tool"
)

// allTools stands in a formKey for every configured tool.
const allTools = "*"

type formKey struct {
	compact, native bool
	mail            bool   // with Config.Mail
	tidy            bool   // those of Config.Tidying alone
	tools           string // names of further tools, joined; allTools for every one
}

// toolset is what one kind of agent is offered: it never changes.
type toolset struct {
	specs  []memgpt.ToolSpec
	byName map[string]*offered
	names  []string
	tokens func() int // of specs, by the counter's encoding
}

type offered struct {
	tool.Tool
	args *schema.Schema
}

// toolset returns the functions that an agent is offered, from a cache.
func (k *Kernel) toolset(key formKey, names []string) (*toolset, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ts := k.forms[key]; ts != nil {
		return ts, nil
	}
	ts, err := k.build(key, names)
	if err != nil {
		return nil, err
	}
	k.forms[key] = ts
	return ts, nil
}

func (k *Kernel) toolsetOf(a *memgpt.Agent, compact, tidy bool) (*toolset, error) {
	if tidy {
		return k.toolset(formKey{compact: compact, native: true, tidy: true}, nil)
	}
	key := formKey{compact: compact, native: a.Protocol == memgpt.ProtocolNative, mail: a.Reach.Agents && !compact, tools: allTools}
	if a.Tools != nil {
		key.tools = strings.Join(a.Tools, "\x00")
	}
	return k.toolset(key, a.Tools)
}

func (k *Kernel) build(key formKey, names []string) (*toolset, error) {
	system := func() ([]tool.Tool, error) { return k.cfg.System(key.compact, key.native) }
	if key.mail && k.cfg.Mail != nil {
		system = func() ([]tool.Tool, error) { return k.cfg.Mail(key.native) }
	}
	if key.tidy {
		system = func() ([]tool.Tool, error) {
			if k.cfg.Tidying == nil {
				return nil, memgpt.Errorf(memgpt.CodeInvalid, "offer functions for tidying: this kernel has none")
			}
			return k.cfg.Tidying(key.compact)
		}
	}
	tools, err := system()
	if err != nil {
		return nil, err
	}
	for _, t := range k.cfg.Tools {
		if key.tidy {
			break
		}
		if key.tools == allTools || slices.Contains(names, t.Spec.Name) {
			tools = append(tools, t)
		}
	}
	ts := &toolset{byName: map[string]*offered{}}
	for _, t := range tools {
		if err := ts.add(t, key.native); err != nil {
			return nil, err
		}
	}
	ts.tokens = sync.OnceValue(func() int { return k.cfg.Counter.Tools(ts.specs) })
	return ts, nil
}

func (ts *toolset) add(t tool.Tool, native bool) error {
	name := t.Spec.Name
	if ts.byName[name] != nil {
		return memgpt.Errorf(memgpt.CodeExists, "offer the function %s: there are two of that name; rename one", name)
	}
	if !native && !t.Final {
		params, err := withHeartbeat(t.Spec.Parameters)
		if err != nil {
			return memgpt.Errorf(memgpt.CodeInvalid, "offer the function %s: %w", name, err)
		}
		t.Spec.Parameters = params
	}
	args, err := schema.Parse(t.Spec.Parameters)
	if err != nil {
		return memgpt.Errorf(memgpt.CodeInvalid, "offer the function %s: %w", name, err)
	}
	t.Spec.Parameters = args.JSON()
	if t.Accepts != nil {
		if args, err = schema.Parse(t.Accepts); err != nil {
			return memgpt.Errorf(memgpt.CodeInvalid, "offer the function %s: what it accepts: %w", name, err)
		}
	}
	ts.specs = append(ts.specs, t.Spec)
	ts.byName[name] = &offered{t, args}
	ts.names = append(ts.names, name)
	return nil
}

// withHeartbeat returns parameters with the argument request_heartbeat.
func withHeartbeat(params json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 {
		params = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(params, &top); err != nil {
		return nil, fmt.Errorf("read its parameters: %w", err)
	}
	if _, ok := top.Properties[memgpt.ArgHeartbeat]; ok {
		return params, nil
	}
	const property = `"` + memgpt.ArgHeartbeat + `":{"type":"boolean"}`
	return insertProperty(params, property)
}

// insertProperty adds a property after the others, keeping the bytes and so the order of what is there.
func insertProperty(params json.RawMessage, property string) (json.RawMessage, error) {
	dec := json.NewDecoder(strings.NewReader(string(params)))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read its parameters: %w", err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if name != "properties" {
			continue
		}
		end := int(dec.InputOffset()) - 1 // the closing brace of properties
		sep := ""
		if strings.TrimSpace(string(value)) != "{}" && len(strings.TrimSpace(string(value[1:len(value)-1]))) > 0 {
			sep = ","
		}
		return json.RawMessage(string(params[:end]) + sep + property + string(params[end:])), nil
	}
	end := strings.LastIndexByte(string(params), '}')
	sep := ","
	if strings.TrimSpace(string(params[1:end])) == "" {
		sep = ""
	}
	return json.RawMessage(string(params[:end]) + sep + `"properties":{` + property + "}" + string(params[end:])), nil
}
