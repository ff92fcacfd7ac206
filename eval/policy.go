package eval

import (
	"fmt"
	"strings"

	"memgpt"
)

// Policy is how the agents of a run manage their memory. Zero values are the defaults of agents.
type Policy struct {
	Alert    float64         `json:"alert"`     // share of the usable window at which the pressure alert is raised
	Flush    float64         `json:"flush"`     // share at which the queue is flushed
	Target   float64         `json:"target"`    // share down to which a flush evicts
	PageSize int             `json:"page_size"` // hits a page of search results
	Summary  string          `json:"summary"`   // SummaryOn or SummaryOff
	Protocol memgpt.Protocol `json:"protocol"`
	// Prefetch bounds in tokens what the system hands over, in modes in which it does.
	Prefetch int `json:"prefetch,omitempty"`
}

// Settings of Policy.Summary: whether what is evicted leaves a recursive summary.
const (
	SummaryOn  = "on"
	SummaryOff = "off"
)

// DefaultPolicy returns the defaults of agents, as memgpt.Policy and memgpt.Prefetch state them.
func DefaultPolicy() Policy {
	return Policy{Alert: .7, Flush: 1, Target: .5, PageSize: 5, Summary: SummaryOn, Protocol: memgpt.ProtocolMemGPT, Prefetch: 1000}
}

// settled puts the defaults in place of zero values.
func (p Policy) settled() Policy {
	d := DefaultPolicy()
	if p.Alert > 0 {
		d.Alert = p.Alert
	}
	if p.Flush > 0 {
		d.Flush = p.Flush
	}
	if p.Target > 0 {
		d.Target = p.Target
	}
	if p.PageSize > 0 {
		d.PageSize = p.PageSize
	}
	if p.Summary != "" {
		d.Summary = p.Summary
	}
	if p.Protocol != "" {
		d.Protocol = p.Protocol
	}
	if p.Prefetch > 0 {
		d.Prefetch = p.Prefetch
	}
	return d
}

// String names what differs from the defaults, as alert=0.9 page=3; "" where nothing does.
func (p Policy) String() string {
	p, d := p.settled(), DefaultPolicy()
	var list []string
	add := func(name string, v, standard any) {
		if v != standard {
			list = append(list, fmt.Sprintf("%s=%v", name, v))
		}
	}
	add("alert", p.Alert, d.Alert)
	add("flush", p.Flush, d.Flush)
	add("target", p.Target, d.Target)
	add("page", p.PageSize, d.PageSize)
	add("summary", p.Summary, d.Summary)
	add("protocol", p.Protocol, d.Protocol)
	add("prefetch", p.Prefetch, d.Prefetch)
	return strings.Join(list, " ")
}

// settlePolicy checks the policy against the mode, and makes one of the two places where a prefetch budget may be given.
func (c *Config) settlePolicy() error {
	p := &c.Policy
	switch {
	case c.Mode.baseline() && (*p != Policy{} || c.Live):
		return memgpt.Errorf(memgpt.CodeInvalid, "mode %s has one prompt and no memory to manage: policies and live conversations are for modes of agents (%s)",
			c.Mode, ModeMemGPT)
	case p.Summary != "" && p.Summary != SummaryOn && p.Summary != SummaryOff:
		return memgpt.Errorf(memgpt.CodeInvalid, "policy summary is %q; it takes %s or %s", p.Summary, SummaryOn, SummaryOff)
	case p.Prefetch > 0 && !c.Mode.prefetches():
		return memgpt.Errorf(memgpt.CodeInvalid, "policy prefetch: nothing is handed over in mode %s; take mode %s or %s", c.Mode, ModePrefetch, ModeBoth)
	case p.Prefetch > 0 && c.Budget > 0 && c.Budget != p.Prefetch:
		return memgpt.Errorf(memgpt.CodeInvalid, "the prefetch budget is given twice, %d and %d tokens; leave one out", c.Budget, p.Prefetch)
	case p.Prefetch > 0:
		c.Budget = p.Prefetch
	case c.Budget > 0:
		p.Prefetch = c.Budget
	}
	return nil
}

// policyReport is what a report says of the policies; nil for a baseline.
func (c *Config) policyReport() *Policy {
	if c.Mode.baseline() {
		return nil
	}
	p := c.Policy.settled()
	if !c.Mode.prefetches() {
		p.Prefetch = 0
	}
	return &p
}

// policyNote is what a record says of the policies.
func (c *Config) policyNote() string {
	note := c.Policy.String()
	if c.Live {
		note = strings.TrimSpace("live " + note)
	}
	return note
}

// apply sets an agent's policies.
func (p Policy) apply(a *memgpt.Agent) {
	a.Protocol = p.Protocol
	a.Policy.Alert, a.Policy.Flush, a.Policy.Target, a.Policy.PageSize = p.Alert, p.Flush, p.Target, p.PageSize
}

// Pressure counts what the queue manager did.
type Pressure struct {
	Alerts  int `json:"alerts"`
	Flushes int `json:"flushes"` // evictions with one move of the queue's head, by the manager or the model
	Evicted int `json:"evicted"` // messages that left by them
}

// add takes in what the kernel tells.
func (p *Pressure) add(u memgpt.Update) {
	switch u := u.(type) {
	case memgpt.Pressured:
		p.Alerts++
	case memgpt.Flushed:
		if u.Messages > 0 {
			p.Flushes++
		}
		p.Evicted += u.Messages
	}
}

func (p *Pressure) plus(q Pressure) {
	p.Alerts += q.Alerts
	p.Flushes += q.Flushes
	p.Evicted += q.Evicted
}

// PressureReport is what the queue manager did in the turns of the questions, a question; and before them, where the
// material was held as a live conversation.
type PressureReport struct {
	Alerts  float64     `json:"alerts"`
	Flushes float64     `json:"flushes"`
	Evicted float64     `json:"evicted"`
	Live    *LiveReport `json:"live,omitempty"`
}

// LiveReport is what the live conversations took, all together.
type LiveReport struct {
	Conversations int `json:"conversations"`
	Messages      int `json:"messages"`
	Pressure
	Calls  int `json:"calls"`  // of the model, to alerts and for summaries
	Tokens int `json:"tokens"` // of those requests and replies, by our own count
}

// pressureReport adds up the records.
func (r *runner) pressureReport(records []Record) *PressureReport {
	if r.cfg.Mode.baseline() {
		return nil
	}
	var alerts, flushes, evicted mean
	for i := range records {
		p := records[i].Pressure
		alerts.add(float64(p.Alerts))
		flushes.add(float64(p.Flushes))
		evicted.add(float64(p.Evicted))
	}
	rep := &PressureReport{Alerts: alerts.value(), Flushes: flushes.value(), Evicted: evicted.value()}
	if r.cfg.Live {
		rep.Live = &r.live
	}
	return rep
}

// policyRows tell of policies that are not the default ones, and what the queue manager did.
func (r *Report) policyRows() (rows [][2]string) {
	if r.Policy == nil {
		return nil
	}
	if text := r.Policy.String(); text != "" {
		rows = append(rows, [2]string{"policy", text})
	}
	p := r.Pressure
	if p.Alerts+p.Evicted > 0 {
		rows = append(rows, [2]string{"pressure a question", fmt.Sprintf("%g alerts, %g evictions of %g messages", p.Alerts, p.Flushes, p.Evicted)})
	}
	if l := p.Live; l != nil {
		rows = append(rows, [2]string{"held live", fmt.Sprintf("%d messages in %d conversations: %d alerts, %d evictions of %d messages; %d calls of the model, %d tokens",
			l.Messages, l.Conversations, l.Alerts, l.Flushes, l.Evicted, l.Calls, l.Tokens)})
	}
	return rows
}
