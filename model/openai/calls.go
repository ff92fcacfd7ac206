package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"memgpt"
)

// calls gathers the calls of an answer. Servers number them with an index, name them with an id, do both, one or
// neither, and some give all of them the index 0.
type calls struct {
	list []*call
	ids  map[string]bool
}

type call struct {
	at     int  // position in the answer
	index  *int // as the server numbers it
	id     string
	name   string
	args   strings.Builder
	join   joiner
	extra  json.RawMessage // the provider's own addition
	opened bool            // id and name were passed on
}

// add takes in a piece of a call, or a whole one.
func (cs *calls) add(r *reply, t *toolCall, whole bool) {
	if t.ID == "" && t.Function.Name == "" && len(t.Function.Arguments) == 0 {
		return
	}
	c := cs.find(t)
	if whole || c == nil || c.follows(t) {
		c = &call{at: len(cs.list), index: t.Index}
		cs.list = append(cs.list, c)
	}
	if c.id == "" && !c.opened {
		c.id = string(t.ID)
	}
	if set(t.Extra) {
		c.extra = bytes.Clone(t.Extra)
	}
	c.mergeName(string(t.Function.Name))
	if c.repeats(t.Function.Arguments) {
		return
	}
	if s := c.join.push(t.Function.Arguments); s != "" {
		cs.pass(r, c, s)
	}
}

// find returns the call to which a piece seems to belong: the newest with its index, else the newest.
func (cs *calls) find(t *toolCall) *call {
	if len(cs.list) == 0 {
		return nil
	}
	newest := cs.list[len(cs.list)-1]
	if t.Index == nil {
		return newest
	}
	for i := len(cs.list) - 1; i >= 0; i-- {
		if c := cs.list[i]; c.index != nil && *c.index == *t.Index {
			return c
		}
	}
	if t.ID == "" && t.Function.Name == "" {
		return newest // only a continuation can be without both
	}
	return nil
}

// follows reports whether a piece begins a call after c rather than going on with it.
func (c *call) follows(t *toolCall) bool {
	name := string(t.Function.Name)
	if name == "" || c.name == "" {
		return false // some servers give every piece a new id, but only a first piece has a name
	}
	if t.ID != "" && c.id != "" {
		return string(t.ID) != c.id
	}
	args := c.args.String()
	if object(args) {
		return true
	}
	return name != c.name && (args != "" || t.Index == nil)
}

// mergeName takes in a name: whole, repeated, growing, or in pieces before the arguments.
func (c *call) mergeName(name string) {
	switch {
	case name == "" || name == c.name || c.opened:
	case strings.HasPrefix(name, c.name):
		c.name = name
	default:
		c.name += name
	}
}

// repeats reports whether whole arguments come a second time, as in the last piece of some streams.
func (c *call) repeats(args []byte) bool {
	return len(args) > 1 && len(args) == c.args.Len() && string(args) == c.args.String() && object(string(args))
}

// pass hands on a piece of arguments, with id and name if it is the first.
func (cs *calls) pass(r *reply, c *call, args string) {
	d := memgpt.CallDelta{Index: c.at, Arguments: args}
	if !c.opened {
		cs.open(r, c)
		d.ID, d.Name = c.id, c.name
	}
	c.args.WriteString(args)
	r.send(memgpt.Delta{Call: &d})
}

// open settles the id of a call: one of its own if the server gave none, or the same twice.
func (cs *calls) open(r *reply, c *call) {
	c.opened = true
	if cs.ids == nil {
		cs.ids = map[string]bool{}
	}
	for c.id == "" || cs.ids[c.id] {
		c.id = r.newID()
	}
	cs.ids[c.id] = true
}

// flush passes on what was held back.
func (cs *calls) flush(r *reply) {
	for _, c := range cs.list {
		if s := c.join.flush(); s != "" || !c.opened {
			cs.pass(r, c, s)
		}
	}
}
