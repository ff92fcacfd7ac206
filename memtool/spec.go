package memtool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"memgpt"
)

// parameters is a function's schema as a model gets it. Fields stand in the order in which they are sent.
type parameters struct {
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required,omitempty"`
	Additional *bool           `json:"additionalProperties,omitempty"`
}

// property is the schema of one argument, in as far as memory functions need one.
type property struct {
	Type        string    `json:"type"`
	Description string    `json:"description,omitempty"`
	Items       *property `json:"items,omitempty"`
}

// heartbeatText describes request_heartbeat in the full form.
const heartbeatText = "run again after this"

// spec renders the function for a form. The compact form keeps names, types and what is required; it also leaves out
// that no more properties are allowed, which costs as much as a description and which the executor sees to.
func (d definition) spec(form Form) (memgpt.ToolSpec, error) {
	spec := memgpt.ToolSpec{Name: d.name, Description: d.full}
	if form.Compact {
		spec.Description = d.compact
	}
	s, err := d.schema()
	if err != nil {
		return spec, err
	}
	var p parameters
	if err := json.Unmarshal(s.JSON(), &p); err != nil {
		return spec, fmt.Errorf("read the schema: %w", err)
	}
	closed := false
	if p.Additional = &closed; form.Compact {
		p.Additional = nil
	}
	if p.Properties, err = d.properties(p.Properties, form); err != nil {
		return spec, err
	}
	spec.Parameters, err = marshal(p)
	return spec, err
}

// properties rewrites the properties in their order, and adds request_heartbeat where it belongs.
func (d definition) properties(raw json.RawMessage, form Form) (json.RawMessage, error) {
	var out bytes.Buffer
	put := func(name string, p property) error {
		if form.Compact {
			p.Description = ""
			if slices.Contains(d.fullOnly, name) {
				return nil
			}
		}
		text, err := marshal(p)
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:%s", name, text)
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read the properties: %w", err)
	}
	for dec.More() {
		name, err := dec.Token()
		var p property
		if err == nil {
			err = dec.Decode(&p)
		}
		if err == nil {
			err = put(name.(string), p)
		}
		if err != nil {
			return nil, fmt.Errorf("read the properties: %w", err)
		}
	}
	if !d.final && !form.Native {
		if err := put(memgpt.ArgHeartbeat, property{Type: "boolean", Description: heartbeatText}); err != nil {
			return nil, err
		}
	}
	return json.RawMessage("{" + out.String() + "}"), nil
}

// marshal encodes without escapes of <, > and &, and without a line break at the end.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
