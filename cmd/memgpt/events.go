package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

func (a *app) eventsCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "events", Short: "show what an agent will do, when and why; cancel it", Args: cobra.NoArgs,
		Long: "events shows what waits in an agent's inbox: messages, heartbeats and schedules, the earliest first, in the agent's zone. It also\n" +
			"says how much of what the agent said unasked nobody has seen.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			return a.listEvents(cmd.Context(), all, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those of all agents")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	cmd.AddCommand(a.eventsCancel())
	return cmd
}

// eventLine is one event as events --json prints it. Its id is what events cancel takes.
type eventLine struct {
	ID       string           `json:"id"`
	Agent    string           `json:"agent"`
	Thread   string           `json:"thread"`
	Type     memgpt.EventType `json:"type"`
	Due      string           `json:"due"`
	For      *string          `json:"for,omitempty"` // of a timer that waits for longer
	Set      string           `json:"set"`
	Schedule bool             `json:"schedule,omitempty"`
	Cron     string           `json:"cron,omitempty"`
	Why      string           `json:"why"`
	Key      string           `json:"key,omitempty"`
	Text     string           `json:"text"`
}

// owned is an event with the agent and the conversation that it belongs to.
type owned struct {
	event  memgpt.Event
	agent  memgpt.Agent
	thread string
}

// waiting returns the pending events of one agent or of all, the earliest first.
func (a *app) waiting(ctx context.Context, all bool) ([]owned, error) {
	agents, err := a.store.Agents(ctx, "")
	if !all && err == nil {
		var agent memgpt.Agent
		agent, err = a.known(ctx)
		agents = []memgpt.Agent{agent}
	}
	var list []owned
	for _, agent := range agents {
		if err != nil {
			break
		}
		var events []memgpt.Event
		if events, err = a.store.Events(ctx, store.EventRange{Tenant: agent.Tenant, Agent: agent.ID}); err != nil {
			break
		}
		var threads []memgpt.Thread
		threads, err = a.store.Threads(ctx, agent.Tenant, agent.ID)
		for _, e := range events {
			o := owned{e, agent, e.Thread}
			if i := slices.IndexFunc(threads, func(t memgpt.Thread) bool { return t.ID == e.Thread }); i >= 0 {
				o.thread = threads[i].Name
			}
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(x, y owned) int { return x.event.Due.Compare(y.event.Due) })
	return list, err
}

func (o *owned) line(now time.Time) eventLine {
	e, zone := &o.event, o.agent.Location()
	l := eventLine{ID: e.ID, Agent: o.agent.Name, Thread: o.thread, Type: e.Type, Due: calendar.Format(e.Due, zone),
		Set: calendar.Format(e.Created, zone), Key: e.Key, Text: e.Message.Said(), Why: o.why(now)}
	if t := e.Timer; t != nil {
		if !t.For.IsZero() && !t.For.Equal(e.Due) {
			l.For = timeOf(t.For.In(zone))
		}
		l.Cron = t.Cron
		if store.IsSchedule(e) {
			l.ID, l.Schedule, l.Set = t.Schedule, true, calendar.Format(t.Set, zone)
		}
	}
	return l
}

// why says why an event waits, or is there at all.
func (o *owned) why(now time.Time) string {
	e, t := &o.event, o.event.Timer
	var parts []string
	switch {
	case (e.Begun || e.Step > 0) && e.Due.After(now):
		return "its turn waits for another agent's answer, until then"
	case e.Begun || e.Step > 0:
		return "its turn has begun and goes on"
	case store.IsSchedule(e) && t.Cron != "":
		parts = append(parts, "the agent's schedule, by the cron line "+t.Cron)
	case store.IsSchedule(e):
		parts = append(parts, "the agent's reminder")
	case e.Type == memgpt.EventTimer && t != nil && t.Schedule != "":
		parts = append(parts, "a schedule that has rung")
	case e.Type == memgpt.EventTidy && !o.agent.Tidy.On && (t == nil || !t.Rung):
		return "memory work is off: it will be dropped"
	case e.Type == memgpt.EventTidy:
		parts = append(parts, "memory work")
	case e.Type == memgpt.EventTimer:
		parts = append(parts, beatText(&o.agent))
	}
	if t != nil && t.Wait != "" {
		parts = append(parts, waitText(e))
	}
	if !e.Due.After(now) {
		parts = append(parts, "due: it waits for a process that runs agents")
	}
	return strings.Join(parts, "; ")
}

// waitText says why an event waits: memory work tells what makes it due.
func waitText(e *memgpt.Event) string {
	if e.Type == memgpt.EventTidy {
		return "for: " + e.Timer.Wait
	}
	return "waits: " + e.Timer.Wait
}

// beatText says by what settings an agent has heartbeats.
func beatText(a *memgpt.Agent) string {
	var by []string
	if a.Heartbeat > 0 {
		by = append(by, "every "+spanText(a.Heartbeat))
	}
	if a.Timers.Cron != "" {
		by = append(by, "by the cron line "+a.Timers.Cron)
	}
	if len(by) == 0 {
		return "heartbeats are off: it will be dropped"
	}
	return "heartbeat " + strings.Join(by, " and ")
}

func (a *app) listEvents(ctx context.Context, all, asJSON bool) error {
	list, err := a.waiting(ctx, all)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for i := range list {
		l := list[i].line(time.Now())
		if asJSON {
			if err := writeJSON(a.out, l); err != nil {
				return err
			}
			continue
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s/%s\t%s\t%s\t%s\n", l.Due, l.ID, l.Agent, l.Thread, l.Type, l.Why, inLine(l.Text, shownBytes))
	}
	if len(list) == 0 && !asJSON {
		a.say("nothing waits")
	}
	if err := w.Flush(); err != nil || asJSON {
		return err
	}
	return a.sayUnread(ctx, all)
}

// sayUnread says of which agents something waits that they said unasked.
func (a *app) sayUnread(ctx context.Context, all bool) error {
	agents, err := a.store.Agents(ctx, "")
	for i := range agents {
		if !all && agents[i].Name != a.agentName {
			continue
		}
		n, err := a.countOutbox(ctx, &agents[i])
		if err != nil {
			return err
		}
		text, how := n.text(), ""
		if n.unread > 0 {
			how = fmt.Sprintf("; memgpt chat --agent %s shows it", agents[i].Name)
		} else if n.failed > 0 {
			how = fmt.Sprintf("; memgpt agents hook %s --retry tells it again", agents[i].Name)
		}
		if text != "" {
			a.say("what %s said unasked: %s%s", agents[i].Name, text, how)
		}
	}
	return err
}

func (a *app) eventsCancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "take back a schedule, or a message that has not begun", Args: cobra.ExactArgs(1),
		Long: "cancel takes back a schedule for good, or another event that waits, of any agent. The beginning of an id will do where\n" +
			"no other begins so.",
		RunE: func(cmd *cobra.Command, args []string) error {
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			return a.cancelEvent(cmd.Context(), args[0])
		},
	}
}

func (a *app) cancelEvent(ctx context.Context, id string) error {
	list, err := a.waiting(ctx, true)
	if err != nil {
		return err
	}
	var found []owned
	for _, o := range list {
		if l := o.line(time.Now()); id != "" && strings.HasPrefix(l.ID, id) {
			found = append(found, o)
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("nothing that waits has the id %q; memgpt events --all shows the ids", id)
	case len(found) > 1:
		return fmt.Errorf("%d events have ids that begin with %q; write more of it", len(found), id)
	}
	h, err := a.inboxHost()
	if err != nil {
		return err
	}
	o := &found[0]
	switch e := &o.event; {
	case store.IsSchedule(e):
		_, err = h.CancelSchedule(ctx, o.agent, e.Timer.Schedule)
	case e.Type == memgpt.EventTimer && (e.Timer == nil || e.Timer.Schedule == ""):
		return fmt.Errorf("heartbeats are a setting: memgpt agents set %s heartbeat=0 cron=default ends them", o.agent.Name)
	case e.Type == memgpt.EventTidy && !e.Begun && e.Step == 0:
		return fmt.Errorf("memory work is a setting: memgpt agents set %s tidy=off ends it", o.agent.Name)
	default:
		err = h.Cancel(ctx, e.Tenant, e.Turn)
	}
	if err == nil {
		l := o.line(time.Now())
		a.say("cancelled %s, which was for %s: %s", l.ID, l.Due, inLine(l.Text, shownBytes))
	}
	return err
}
