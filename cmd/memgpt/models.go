package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/store/sqlite"
)

// modelsAsk bounds what an endpoint is asked for a list of models.
const modelsAsk = 4 * time.Second

// modelsShown is how many models of one provider a person is shown unasked: some list hundreds.
const modelsShown = 12

func (a *app) modelsCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "models", Short: "list the models that can be reached", Args: cobra.NoArgs,
		Long: "models lists what can be reached now: at the providers whose keys are set, at servers of this machine, and the\n" +
			"stand-in. A name stands as MEMGPT_MODEL, --model and agents set NAME model= take it; * marks the one that would answer.\n" +
			"Endpoints are asked for their lists alone: nothing is generated, and nothing costs.\n\n" +
			"  can    what the model or its server is known to do: call functions (tools), several in a reply (parallel), obey that\n" +
			"         it must (forced), see images, give its reasoning, hold a reply to a schema\n" +
			"  price  dollars a million tokens of input and output, in short requests; ? where it isn't known, see MEMGPT_PRICES\n" +
			"  calls  how functions are called, as was found in use, with the reason",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			if err := a.configure(); err != nil {
				return err
			}
			if err := a.openForModels(cmd.Context()); err != nil {
				return err
			}
			lines := a.listModels(cmd.Context())
			if asJSON {
				for i := range lines {
					if err := writeJSON(a.out, &lines[i]); err != nil {
						return err
					}
				}
				return nil
			}
			return a.printModels(lines, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	cmd.Flags().BoolVar(&all, "all", false, "print all models of each provider")
	cmd.AddCommand(a.modelsPull(), a.modelsTestCommand())
	return cmd
}

// openForModels opens the store, if there is one, for what is remembered of models.
func (a *app) openForModels(ctx context.Context) (err error) {
	if a.models, err = a.newModels(nil); err != nil {
		return err
	}
	if _, err := os.Stat(a.cfg.Database()); err != nil {
		return nil
	}
	if a.store, err = sqlite.Open(ctx, sqlite.Config{Path: a.cfg.Database()}); err != nil {
		return fmt.Errorf("%w (MEMGPT_HOME names the data directory)", err)
	}
	a.models.records = a.store
	return nil
}

// modelLine is one model, or an endpoint of which no model is known, as models --json prints it.
type modelLine struct {
	Name     string     `json:"name"` // as MEMGPT_MODEL takes it; "" of an endpoint alone
	Provider string     `json:"provider"`
	Model    string     `json:"model"`
	At       string     `json:"at,omitempty"` // host and path
	Window   int        `json:"window"`       // tokens; 0 when unknown
	Can      []string   `json:"can"`          // tools, parallel, forced, images, reasoning, schema
	Price    *priceLine `json:"price"`        // null when unknown
	Calls    string     `json:"calls"`        // native, prompted or constrained; "" when nobody knows yet
	Reason   string     `json:"reason,omitempty"`
	State    string     `json:"state"` // see the constants
	Why      string     `json:"why,omitempty"`
	Current  bool       `json:"current"` // it would answer now
}

// States of a line.
const (
	modelReady       = "ready"
	modelUnlisted    = "unlisted"    // the endpoint tells no models
	modelUnreachable = "unreachable" // it can't be reached, or refuses
)

// can names what a model is known to do.
func can(c memgpt.Capabilities) []string {
	names := []string{}
	for _, f := range []struct {
		name string
		has  bool
	}{{"tools", c.Tools}, {"parallel", c.Parallel}, {"forced", c.Forced}, {"images", c.Images}, {"reasoning", c.Reasoning}, {"schema", c.Schema}} {
		if f.has {
			names = append(names, f.name)
		}
	}
	return names
}

func (a *app) printModels(lines []modelLine, all bool) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\tmodel\twindow\tcan\tprice\tcalls\tstate")
	shown, left := map[string]int{}, map[string]int{}
	for i := range lines {
		l := &lines[i]
		if shown[l.Provider]++; !all && !l.Current && shown[l.Provider] > modelsShown {
			left[l.Provider]++
			continue
		}
		_, _ = fmt.Fprintln(w, strings.Join(l.cells(), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range providers() {
		if n := left[p.name]; n > 0 {
			a.say("%s has %d more; --all shows them", p.name, n)
		}
	}
	return nil
}

// cells are the columns of a line for a person.
func (l *modelLine) cells() []string {
	mark, name, window, price, calls, state := "", l.Name, "?", l.Price.cell(), l.Calls, l.State
	if l.Current {
		mark = "*"
	}
	if name == "" {
		name = l.Provider + ":"
	}
	if l.Window > 0 {
		window = fmt.Sprint(l.Window)
	}
	if calls == "" {
		calls = "not tried"
	}
	if l.Reason != "" {
		calls += ": " + short(l.Reason)
	}
	if l.Why != "" {
		state += ": " + short(l.Why)
	}
	if l.Model == "" {
		window, price, calls = "", "", ""
	}
	return []string{mark, name, window, strings.Join(l.Can, " "), price, calls, state}
}
