package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/cost"
	"memgpt/model/offline"
	"memgpt/model/openai"
	"memgpt/store"
)

// metered returns a model that says what its calls cost, by the prices of its provider.
func (s *modelSet) metered(m memgpt.Model, t *target) memgpt.Model {
	return cost.Meter(m, s.prices, pricedBy(t))
}

// pricedBy names the provider whose prices hold for a target; "" where it isn't known.
func pricedBy(t *target) string {
	own, named := providerNamed(t.provider)
	switch at := providerAt(t.base); {
	case named && own.name != openaiProvider && !own.local && own.name != ollamaProvider:
		return own.name // through a gateway of the user's own too
	case at == "" && named && own.name != openaiProvider:
		return cost.ProviderLocal // on another machine of the user's own
	default:
		return at
	}
}

// priceLine is a price as models --json prints it, in dollars a million tokens.
type priceLine struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
	Date   string  `json:"date,omitempty"`
	Source string  `json:"source,omitempty"`
}

// priceOf returns what a model costs in short requests, nil where that isn't known.
func (s *modelSet) priceOf(t *target) *priceLine {
	p, ok := s.prices.Price(pricedBy(t), t.model, 0)
	if !ok {
		return nil
	}
	return &priceLine{float64(p.Input) / 1e6, float64(p.Cached) / 1e6, float64(p.Output) / 1e6, p.Date, p.Source}
}

// cell is the price for a person: that of input and of output.
func (p *priceLine) cell() string {
	switch {
	case p == nil:
		return "?"
	case p.Input == 0 && p.Output == 0:
		return "free"
	}
	return fmt.Sprintf("$%g in, $%g out", p.Input, p.Output)
}

// standIn returns the stand-in, which costs nothing.
func (s *modelSet) standIn(slips offline.Config) (memgpt.Model, error) {
	m, err := offline.New(slips)
	if err != nil {
		return nil, err
	}
	return cost.Meter(m, s.prices, cost.ProviderLocal), nil
}

// prices returns the built-in prices, behind those of the user's own file.
func (a *app) prices() (*cost.Table, error) {
	table, err := cost.Builtin()
	if err != nil || a.cfg.Prices == "" {
		return table, err
	}
	file, err := os.ReadFile(a.cfg.Prices)
	if err == nil {
		table, err = table.With(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the prices of MEMGPT_PRICES=%s: %w", a.cfg.Prices, err)
	}
	return table, nil
}

// providerAt names the provider behind a base URL as the table of prices does; "" where it isn't known.
func providerAt(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		return cost.ProviderLocal
	}
	if host == "api.anthropic.com" {
		return anthropicProvider
	}
	for _, name := range openai.Providers() {
		p, _ := openai.ProfileOf(name)
		for _, h := range p.Hosts {
			if host == h || strings.HasSuffix(host, "."+h) {
				return name
			}
		}
	}
	return ""
}

// budgetOfAll reads the budget of all agents together.
func (a *app) budgetOfAll() (b memgpt.Budget, err error) {
	for _, v := range []struct {
		name, value string
		money       bool
		to          *int64
	}{{"MEMGPT_BUDGET", a.cfg.Budget, true, &b.Nano}, {"MEMGPT_BUDGET_TOTAL", a.cfg.BudgetTotal, true, &b.NanoTotal},
		{"MEMGPT_BUDGET_TOKENS", a.cfg.BudgetTokens, false, &b.Tokens}, {"MEMGPT_BUDGET_TOKENS_TOTAL", a.cfg.BudgetTokensTotal, false, &b.TokensTotal}} {
		if *v.to, err = parseBudget(v.value, v.money); err != nil {
			return b, fmt.Errorf("%s is %q: %w", v.name, v.value, err)
		}
	}
	return b, nil
}

// budgetSettings are those of one agent.
func budgetSettings() []setting {
	return []setting{
		budgetSetting("budget", "dollars a day that calls of the model may cost, as 2.50", true, func(a *memgpt.Agent) *int64 { return &a.Budget.Nano }),
		budgetSetting("budget_total", "dollars that they may cost in all", true, func(a *memgpt.Agent) *int64 { return &a.Budget.NanoTotal }),
		budgetSetting("budget_tokens", "tokens a day that they may use", false, func(a *memgpt.Agent) *int64 { return &a.Budget.Tokens }),
		budgetSetting("budget_tokens_total", "tokens that they may use in all", false, func(a *memgpt.Agent) *int64 { return &a.Budget.TokensTotal }),
	}
}

func budgetSetting(key, about string, money bool, at func(*memgpt.Agent) *int64) setting {
	return setting{key, about, "no bound", func(a *memgpt.Agent, v string) (err error) {
		*at(a), err = parseBudget(v, money)
		return err
	}, func(a *memgpt.Agent) string {
		n := *at(a)
		switch {
		case n == 0:
			return ""
		case money:
			whole, rest := n/1_000_000_000, strings.TrimRight(fmt.Sprintf("%09d", n%1_000_000_000), "0")
			return fmt.Sprintf("%d.%s", whole, rest+"00"[min(len(rest), 2):])
		}
		return strconv.FormatInt(n, 10)
	}}
}

// parseBudget reads a bound in dollars or tokens. A day's may end with "/day".
func parseBudget(v string, money bool) (n int64, err error) {
	v = strings.TrimSuffix(strings.ReplaceAll(strings.TrimSpace(v), "_", ""), "/day")
	switch {
	case v == "" || v == "none" || v == "off":
		return 0, nil
	case money:
		if n, err = cost.ParseDollars(v); err != nil {
			return 0, errors.New("it takes an amount in dollars such as 2.50, or nothing for no bound")
		}
	default:
		if n, err = strconv.ParseInt(v, 10, 64); err != nil || n < 0 {
			return 0, errors.New("it takes a whole number of tokens, or nothing for no bound")
		}
	}
	if n == 0 {
		return 0, errors.New("a budget of nothing would let no model answer; leave it empty for no bound")
	}
	return n, nil
}

// costFlag lets a command that runs turns say what each cost.
func (a *app) costFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.showCost, "cost", false, "say what each turn cost, on standard error")
}

// sayCost tells what a turn cost where that is asked for.
func (a *app) sayCost(u memgpt.Usage) {
	if a.showCost {
		a.say("cost: %s (%s, %d tokens in, %d of them cached, %d out)", costText(u), plural(u.Calls, "call"), u.Input, u.Cached, u.Output)
	}
}

// costText is what calls cost, as far as it is known.
func costText(u memgpt.Usage) string {
	switch {
	case u.Calls == 0 || u.Priced == u.Calls:
		return store.FormatMoney(u.Nano)
	case u.Priced == 0:
		return "unknown"
	}
	return fmt.Sprintf("%s and %s of unknown cost", store.FormatMoney(u.Nano), plural(u.Calls-u.Priced, "call"))
}

func (a *app) costCommand() *cobra.Command {
	var days int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "cost", Short: "show what model calls used and cost, and what is left of budgets", Args: cobra.NoArgs,
		Long: "cost shows what model calls used by day, agent and model, and what is left of budgets. Days are those of each agent's\n" +
			"zone; the budget of all agents (MEMGPT_BUDGET and so on) counts days in UTC. What a call used that was under way when\n" +
			"the process was killed is not known. What a model of unknown price cost is unknown, not nothing: MEMGPT_PRICES names a\n" +
			"file with prices of your own.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > math.MaxInt16 {
				return fmt.Errorf("--days must be from 1 to %d", math.MaxInt16)
			}
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			list, err := a.costAgents(cmd.Context(), cmd.Flags().Changed("agent"))
			if err != nil {
				return err
			}
			return a.printCost(cmd.Context(), list, days, asJSON)
		},
	}
	cmd.Flags().IntVar(&days, "days", 7, "days to show, today included")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line: spending first, then budgets")
	return cmd
}

// costAgents are the agents to show: the named one, or all, with those that are gone.
func (a *app) costAgents(ctx context.Context, named bool) (map[string]memgpt.Agent, error) {
	if named {
		agent, err := a.known(ctx)
		return map[string]memgpt.Agent{agent.ID: agent}, err
	}
	agents, err := a.store.Agents(ctx, "")
	if err != nil {
		return nil, err
	}
	list := map[string]memgpt.Agent{}
	for _, agent := range agents {
		list[agent.ID] = agent
	}
	rows, err := a.store.Spending(ctx, store.SpendingRange{Total: true})
	for _, s := range rows {
		if _, ok := list[s.Agent]; !ok {
			list[s.Agent] = memgpt.Agent{ID: s.Agent, Name: s.Agent}
		}
	}
	return list, err
}

// costLine is what an agent's calls of a model used on a day, as cost --json prints it. Cost is null where it isn't known.
type costLine struct {
	Day     string  `json:"day"`
	Agent   string  `json:"agent"`
	Model   string  `json:"model"`
	Calls   int     `json:"calls"`
	Unknown int     `json:"unknown_cost_calls,omitempty"` // calls that are not in cost
	Input   int     `json:"input"`
	Cached  int     `json:"cached"`
	Written int     `json:"written"`
	Output  int     `json:"output"`
	Cost    *string `json:"cost"` // dollars, to a billionth

	usage memgpt.Usage
}

func (a *app) printCost(ctx context.Context, agents map[string]memgpt.Agent, days int, asJSON bool) error {
	lines, err := a.costLines(ctx, agents, days)
	if err != nil {
		return err
	}
	budgets, err := a.budgetLines(ctx, agents)
	if err != nil {
		return err
	}
	if asJSON {
		for _, l := range lines {
			if err := writeJSON(a.out, l); err != nil {
				return err
			}
		}
		for _, b := range budgets {
			if err := writeJSON(a.out, b); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "day\tagent\tmodel\tcalls\tin\tcached\tout\tcost")
	var sum memgpt.Usage
	for _, l := range lines {
		u := l.usage
		sum = sum.Add(u)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", l.Day, printable(l.Agent), printable(l.Model), u.Calls, u.Input, u.Cached, u.Output, costText(u))
	}
	_, _ = fmt.Fprintf(w, "%s\t\t\t%d\t%d\t%d\t%d\t%s\n", plural(days, "day"), sum.Calls, sum.Input, sum.Cached, sum.Output, costText(sum))
	for _, b := range budgets {
		_, _ = fmt.Fprintln(w, b.text())
	}
	return w.Flush()
}

// costLines adds up what was spent on the last days, the newest first.
func (a *app) costLines(ctx context.Context, agents map[string]memgpt.Agent, days int) ([]costLine, error) {
	now := time.Now()
	rows, err := a.store.Spending(ctx, store.SpendingRange{From: now.UTC().AddDate(0, 0, -days-1).Format(store.DayFormat)})
	if err != nil {
		return nil, err
	}
	sums := map[[3]string]memgpt.Usage{}
	for _, s := range rows {
		agent, ok := agents[s.Agent]
		if ok && s.Day > now.In(agent.Location()).AddDate(0, 0, -days).Format(store.DayFormat) {
			key := [3]string{s.Day, agent.Name, s.Model}
			sums[key] = sums[key].Add(s.Usage)
		}
	}
	var lines []costLine
	for key, u := range sums {
		l := costLine{Day: key[0], Agent: key[1], Model: key[2], Calls: u.Calls, Unknown: u.Calls - u.Priced, Input: u.Input, Cached: u.Cached,
			Written: u.Written, Output: u.Output, usage: u}
		if u.Priced > 0 {
			dollars := fmt.Sprintf("%d.%09d", u.Nano/1_000_000_000, u.Nano%1_000_000_000)
			l.Cost = &dollars
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(x, y costLine) int {
		return cmp.Or(cmp.Compare(y.Day, x.Day), cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Model, y.Model))
	})
	return lines, nil
}

// budgetLine is one bound and what is left of it, as cost --json prints it.
type budgetLine struct {
	Budget string  `json:"budget"` // name of the setting or variable
	Agent  string  `json:"agent"`  // "" is all of them
	Unit   string  `json:"unit"`   // "nano_dollars" or "tokens"
	Most   int64   `json:"most"`
	Used   int64   `json:"used"`
	Left   int64   `json:"left"`
	Frees  *string `json:"frees"` // null for never
}

func (b *budgetLine) text() string {
	amount := func(n int64) string { return strconv.FormatInt(n, 10) + " tokens" }
	if b.Unit != "tokens" {
		amount = store.FormatMoney
	}
	whose, span := "all agents", " in all"
	if b.Agent != "" {
		whose = "agent " + printable(b.Agent)
	}
	if b.Frees != nil {
		span = " a day, until " + *b.Frees
	}
	return fmt.Sprintf("%s of %s: %s of %s left%s", b.Budget, whose, amount(b.Left), amount(b.Most), span)
}

// budgetLines lists the budgets of the agents and of all together.
func (a *app) budgetLines(ctx context.Context, agents map[string]memgpt.Agent) (lines []budgetLine, err error) {
	names := make([]memgpt.Agent, 0, len(agents))
	for _, agent := range agents {
		names = append(names, agent)
	}
	slices.SortFunc(names, func(x, y memgpt.Agent) int { return cmp.Compare(x.Name, y.Name) })
	all, err := a.budgetOfAll()
	if err != nil {
		return nil, err
	}
	names = append(names, memgpt.Agent{Budget: all})
	for i := range names {
		more, err := a.budgetsOf(ctx, &names[i])
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// budgetsOf lists the budgets of one agent; without a name it stands for all.
func (a *app) budgetsOf(ctx context.Context, agent *memgpt.Agent) (lines []budgetLine, err error) {
	now := time.Now().In(agent.Location())
	day := now.Format(store.DayFormat)
	frees := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location())
	for _, of := range []store.SpendingRange{{Agent: agent.ID, From: day, To: day, UTC: agent.ID == ""}, {Agent: agent.ID, Total: true}} {
		rows, err := a.store.Spending(ctx, of)
		if err != nil {
			return nil, err
		}
		var u memgpt.Usage
		for _, s := range rows {
			u = u.Add(s.Usage)
		}
		suffix, money, tokens := "", agent.Budget.Nano, agent.Budget.Tokens
		if of.Total {
			suffix, money, tokens = "_total", agent.Budget.NanoTotal, agent.Budget.TokensTotal
		}
		for _, b := range []budgetLine{{Budget: "budget" + suffix, Unit: "nano_dollars", Most: money, Used: u.Nano},
			{Budget: "budget_tokens" + suffix, Unit: "tokens", Most: tokens, Used: int64(u.Input + u.Output)}} {
			if b.Most == 0 {
				continue
			}
			if b.Agent, b.Left = agent.Name, max(b.Most-b.Used, 0); agent.ID == "" {
				b.Budget = "MEMGPT_" + strings.ToUpper(b.Budget)
			}
			if !of.Total {
				b.Frees = timeOf(frees)
			}
			lines = append(lines, b)
		}
	}
	return lines, nil
}
