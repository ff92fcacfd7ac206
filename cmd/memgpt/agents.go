package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

func (a *app) agentsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "agents", Short: "list the agents, show and change their settings", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			return a.listAgents(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	cmd.AddCommand(a.agentsShow(), a.agentsSet(), a.agentsHook())
	return cmd
}

// agentLine is one agent as agents --json prints it. Settings holds those that have a value.
type agentLine struct {
	Name     string            `json:"name"`
	ID       string            `json:"id"`
	Created  *string           `json:"created"`
	Version  int64             `json:"version"`
	Settings map[string]string `json:"settings"`
	Unread   int               `json:"unread"`            // messages that it said unasked and nobody has seen
	Unsent   int               `json:"hook_failed"`       // messages that its hook was not told
	Threads  []string          `json:"threads,omitempty"` // of agents show
}

func agentLineOf(agent *memgpt.Agent) agentLine {
	l := agentLine{Name: agent.Name, ID: agent.ID, Created: timeOf(inZone(agent.Created, *agent)), Version: agent.Version,
		Settings: map[string]string{}}
	for _, s := range settings() {
		if v := s.write(agent); v != "" {
			l.Settings[s.key] = v
		}
	}
	return l
}

func (a *app) listAgents(ctx context.Context, asJSON bool) error {
	agents, err := a.store.Agents(ctx, "")
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for i := range agents {
		l := agentLineOf(&agents[i])
		n, err := a.countOutbox(ctx, &agents[i])
		if err != nil {
			return err
		}
		if l.Unread, l.Unsent = n.unread, n.failed; asJSON {
			if err := writeJSON(a.out, l); err != nil {
				return err
			}
			continue
		}
		var set []string
		for _, s := range settings() {
			if v := l.Settings[s.key]; v != "" {
				set = append(set, s.key+"="+short(v))
			}
		}
		if text := n.text(); text != "" {
			set = append(set, "["+text+"]")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", l.Name, agents[i].Created.In(agents[i].Location()).Format("2006-01-02"), strings.Join(set, " "))
	}
	if len(agents) == 0 && !asJSON {
		a.say("there are no agents in %s; memgpt run or chat makes one", a.cfg.Home)
	}
	return w.Flush()
}

func (a *app) agentsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "show an agent's settings, with what holds where none is made", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.agentName = args[0]
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error { return a.showAgent(cmd.Context(), agent, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

func (a *app) showAgent(ctx context.Context, agent memgpt.Agent, asJSON bool) error {
	l := agentLineOf(&agent)
	threads, err := a.store.Threads(ctx, agent.Tenant, agent.ID)
	if err != nil {
		return err
	}
	for _, t := range threads {
		l.Threads = append(l.Threads, t.Name)
	}
	n, err := a.countOutbox(ctx, &agent)
	if err != nil {
		return err
	}
	if l.Unread, l.Unsent = n.unread, n.failed; asJSON {
		return writeJSON(a.out, l)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "agent\t%s (%s)\nmade\t%s\nconversations\t%s\n", l.Name, l.ID,
		calendar.Format(agent.Created, agent.Location()), strings.Join(l.Threads, ", "))
	if text := n.text(); text != "" {
		_, _ = fmt.Fprintf(w, "said unasked\t%s\n", text)
	}
	for _, s := range settings() {
		v := l.Settings[s.key]
		if v == "" {
			v = "(" + s.unset + ")"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\n", s.key, strings.ReplaceAll(v, "\n", "\n\t"))
	}
	return w.Flush()
}

func (a *app) agentsSet() *cobra.Command {
	var about strings.Builder
	for _, s := range settings() {
		fmt.Fprintf(&about, "  %-16s %s; else %s\n", s.key, s.about, s.unset)
	}
	return &cobra.Command{
		Use: "set NAME KEY=VALUE...", Short: "change an agent's settings", Args: cobra.MinimumNArgs(2),
		Long: "set changes settings of an agent, all that are named or, where one can't be, none. They hold from its next turn on,\n" +
			"also in programs that run. KEY= and KEY=default take a setting back.\n\n" + about.String(),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.agentName = args[0]
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				agent, err := a.setAgent(cmd.Context(), agent, args[1:])
				if err != nil {
					return err
				}
				h, err := a.inboxHost()
				if err != nil {
					return err
				}
				return h.Heartbeats(cmd.Context(), agent)
			})
		},
	}
}

// setTries bounds how often settings are set anew when somebody else changes the same agent.
const setTries = 5

// setAgent sets an agent's settings in one commit, and says what changed.
func (a *app) setAgent(ctx context.Context, agent memgpt.Agent, pairs []string) (memgpt.Agent, error) {
	for try := 1; len(pairs) > 0; try++ {
		changed, err := apply(agent, pairs)
		if err == nil {
			err = a.checkArchives(ctx, &agent, &changed)
		}
		if err != nil {
			return agent, fmt.Errorf("agent %s: nothing was changed: %w", agent.Name, err)
		}
		said := settingChanges(&agent, &changed)
		if len(said) == 0 {
			return agent, nil
		}
		c := &store.Commit{Now: time.Now(), Agents: []memgpt.Agent{changed}}
		secret, err := a.hookChange(ctx, &agent, &changed, c)
		if err == nil {
			_, err = a.store.Commit(ctx, c)
		}
		if err == nil {
			for _, s := range said {
				a.say("agent %s: %s", agent.Name, s)
			}
			if secret != "" {
				a.say(secretText, agent.Name, secret, agent.Name)
			}
			changed.Version++
			return changed, nil
		}
		if memgpt.CodeOf(err) != memgpt.CodeConflict || try == setTries {
			return agent, fmt.Errorf("change the settings of agent %s: %w", agent.Name, err)
		}
		if agent, err = a.store.Agent(ctx, agent.Tenant, agent.ID); err != nil {
			return agent, err
		}
	}
	return agent, nil
}

// settingChanges says which settings differ.
func settingChanges(old, now *memgpt.Agent) (said []string) {
	for _, s := range settings() {
		before, after := s.write(old), s.write(now)
		if before == after {
			continue
		}
		said = append(said, fmt.Sprintf("%s is now %s (was %s)", s.key, settingText(after, s.unset), settingText(before, s.unset)))
	}
	return said
}

func settingText(value, unset string) string {
	if value == "" {
		return unset
	}
	return short(value)
}

// prefetchFlag lets a command that runs an agent set its prefetch mode on the way, from now on.
func (a *app) prefetchFlag(cmd *cobra.Command) {
	cmd.Flags().Var(&a.prefetch, "prefetch", "whether the system looks memory up for messages: off, on or auto; it stays set, as by agents set")
}

// prefetchMode is the value of a flag; "" leaves the agent as it is.
type prefetchMode string

// String implements pflag.Value.
func (m *prefetchMode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *prefetchMode) Type() string { return "mode" }

// Set implements pflag.Value.
func (m *prefetchMode) Set(value string) error {
	var probe memgpt.Agent
	if err := settingNamed("prefetch").read(&probe, value); err != nil {
		return err
	}
	*m = prefetchMode(probe.Prefetch.Mode)
	return nil
}
