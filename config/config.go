// Package config reads the settings of the command line from the environment. It is imported by cmd/memgpt alone: the
// library is configured in Go.
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config holds the settings. Zero values mean that nothing was set.
type Config struct {
	Home      string         // data directory (MEMGPT_HOME); never empty
	Model     string         // [provider:]model, or "offline" (MEMGPT_MODEL)
	Fallback  []string       // models that answer where that one can't, named likewise (MEMGPT_FALLBACK)
	Calls     string         // how models call functions: native, prompted or constrained; "" finds out (MEMGPT_CALLS)
	API       string         // chat or responses, for OpenAI-compatible endpoints; "" goes by the model (MEMGPT_API)
	Timeouts  Timeouts       // of one call of a model
	Window    int            // tokens (MEMGPT_WINDOW)
	Heartbeat *time.Duration // interval of timer heartbeats (MEMGPT_HEARTBEAT), 0 for none; nil leaves it to the agent
	Embedder  string         // what makes vectors of texts: builtin (also ""), none, a folder or a base URL (MEMGPT_EMBEDDER)
	BaseURL   string         // OPENAI_BASE_URL
	APIKey    string         // OPENAI_API_KEY
	Prices    string         // file with prices of one's own (MEMGPT_PRICES)
	Zone      string         // IANA name of the machine's time zone; "" when unknown

	// Budgets of all agents together: dollars and tokens, a day and in all (MEMGPT_BUDGET, MEMGPT_BUDGET_TOTAL,
	// MEMGPT_BUDGET_TOKENS, MEMGPT_BUDGET_TOKENS_TOTAL), as they are written; "" is no bound.
	Budget, BudgetTotal, BudgetTokens, BudgetTokensTotal string
}

// Timeouts bound one call of a model. 0 leaves a bound to its default.
type Timeouts struct {
	Connect time.Duration // to connect (MEMGPT_TIMEOUT_CONNECT)
	First   time.Duration // until the first piece of an answer, and between any two (MEMGPT_TIMEOUT_FIRST)
	Idle    time.Duration // without a byte after the first piece (MEMGPT_TIMEOUT_IDLE)
	Whole   time.Duration // of the whole call (MEMGPT_TIMEOUT_WHOLE)
}

// Read reads the settings. It fails for values that can't be read, naming the variable.
func Read(getenv func(string) string) (Config, error) {
	c := Config{
		Home: getenv("MEMGPT_HOME"), Model: strings.TrimSpace(getenv("MEMGPT_MODEL")),
		Embedder: strings.TrimSpace(getenv("MEMGPT_EMBEDDER")),
		BaseURL:  strings.TrimSpace(getenv("OPENAI_BASE_URL")), APIKey: strings.TrimSpace(getenv("OPENAI_API_KEY")),
		Zone: zone(getenv), Prices: strings.TrimSpace(getenv("MEMGPT_PRICES")),
		Budget: getenv("MEMGPT_BUDGET"), BudgetTotal: getenv("MEMGPT_BUDGET_TOTAL"),
		BudgetTokens: getenv("MEMGPT_BUDGET_TOKENS"), BudgetTokensTotal: getenv("MEMGPT_BUDGET_TOKENS_TOTAL"),
	}
	var err error
	if c.Home == "" {
		if c.Home, err = dataDir(getenv); err != nil {
			return c, err
		}
	}
	if v := getenv("MEMGPT_WINDOW"); v != "" {
		if c.Window, err = strconv.Atoi(v); err != nil || c.Window <= 0 {
			return c, fmt.Errorf("MEMGPT_WINDOW is %q: set it to a number of tokens, such as 8192", v)
		}
	}
	if v := getenv("MEMGPT_HEARTBEAT"); v != "" {
		every, err := time.ParseDuration(v)
		if err != nil || every < 0 || every > 0 && every < time.Second {
			return c, fmt.Errorf("MEMGPT_HEARTBEAT is %q: set it to a duration of a second or more, such as 30m, or to 0 for none", v)
		}
		c.Heartbeat = &every
	}
	return c, c.readModel(getenv)
}

// readModel reads how models are spoken to.
func (c *Config) readModel(getenv func(string) string) error {
	for name := range strings.SplitSeq(getenv("MEMGPT_FALLBACK"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			c.Fallback = append(c.Fallback, name)
		}
	}
	for _, w := range []struct {
		name  string
		value *string
		words []string // the first is the same as none
	}{
		{"MEMGPT_CALLS", &c.Calls, []string{"auto", "native", "prompted", "constrained"}},
		{"MEMGPT_API", &c.API, []string{"auto", "chat", "responses"}},
	} {
		v := strings.ToLower(strings.TrimSpace(getenv(w.name)))
		if v != "" && !slices.Contains(w.words, v) {
			return fmt.Errorf("%s is %q: set it to one of %s", w.name, v, strings.Join(w.words, ", "))
		}
		if v != w.words[0] {
			*w.value = v
		}
	}
	for name, bound := range map[string]*time.Duration{"CONNECT": &c.Timeouts.Connect, "FIRST": &c.Timeouts.First,
		"IDLE": &c.Timeouts.Idle, "WHOLE": &c.Timeouts.Whole} {
		name = "MEMGPT_TIMEOUT_" + name
		v := strings.TrimSpace(getenv(name))
		if v == "" {
			continue
		}
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("%s is %q: set it to a duration above 0, such as 90s or 10m", name, v)
		}
		*bound = d
	}
	return nil
}

// Database is the path of the store's file.
func (c Config) Database() string { return filepath.Join(c.Home, "memgpt.db") }

// dataDir is the user's data directory by the custom of the system.
func dataDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_DATA_HOME"); dir != "" && filepath.IsAbs(dir) {
		return filepath.Join(dir, "memgpt"), nil
	}
	if runtime.GOOS == "windows" {
		if dir := getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "memgpt"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the data: %w; set MEMGPT_HOME to a directory", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "memgpt"), nil
	}
	return filepath.Join(home, ".local", "share", "memgpt"), nil
}

// zone names the machine's time zone: TZ, else where the system's link points to.
func zone(getenv func(string) string) string {
	name := strings.TrimPrefix(getenv("TZ"), ":")
	if name == "" {
		target, err := filepath.EvalSymlinks("/etc/localtime")
		if err != nil {
			return ""
		}
		_, name, _ = strings.Cut(filepath.ToSlash(target), "zoneinfo/")
	}
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return ""
	}
	return name
}
