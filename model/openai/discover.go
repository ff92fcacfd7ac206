package openai

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"memgpt/internal/wire"
)

// Names of environment variables that name an endpoint, as OpenAI's own clients read them.
const (
	EnvBaseURL = "OPENAI_BASE_URL"
	EnvAPIKey  = "OPENAI_API_KEY"
)

// HostedBaseURL is the endpoint that a key without a base URL is for, and HostedModel the model used there when none is
// named (small, cheap and able to call functions; OpenAI's list of models, 2025).
const (
	HostedBaseURL = "https://api.openai.com/v1"
	HostedModel   = "gpt-4.1-mini"
)

// DefaultProbe is how long Discover waits for a local server. One that isn't there refuses at once.
const DefaultProbe = 150 * time.Millisecond

// Place is a local server to look for.
type Place struct {
	Name    string // for people, e.g. "Ollama"
	BaseURL string
}

// LocalPlaces are the places at which Discover looks, the first that answers is taken: the default addresses of the
// three servers by their documentation, on the loopback interface only.
func LocalPlaces() []Place {
	return []Place{
		{"Ollama", "http://127.0.0.1:11434/v1"},
		{"LM Studio", "http://127.0.0.1:1234/v1"},
		{"llama.cpp", "http://127.0.0.1:8080/v1"},
	}
}

// DiscoverConfig says where to look.
type DiscoverConfig struct {
	Env    func(name string) string // the environment; nil is an empty one
	Model  string                   // the model that the user wants; "" takes the first that chats
	Places []Place                  // local servers to look for; nil is LocalPlaces, empty is none
	Probe  time.Duration            // wait for each place; 0 is DefaultProbe
}

// Found is an endpoint to talk to.
type Found struct {
	Source  string // what led to it: EnvBaseURL, EnvAPIKey or the name of a place
	BaseURL string
	APIKey  string
	Model   string // "" when the server takes any
	Window  int    // tokens; 0 when unknown
	Note    string // what a person should know, e.g. that it is loading its model; "" for nothing

	listed bool // the server lists the model
}

// Config returns the configuration for New.
func (f *Found) Config() Config {
	return Config{BaseURL: f.BaseURL, APIKey: f.APIKey, Model: f.Model, Window: f.Window}
}

// Discover finds what to talk to: the endpoint that the environment names, else a server on this machine, else nil. It
// connects to the named endpoint only to ask for the model and its window where they are not known, and else to nothing
// but the places. A named endpoint that can't be reached is found nevertheless, with a Note; a base URL that can't be
// read is CodeInvalid.
func Discover(ctx context.Context, cfg DiscoverConfig) (*Found, error) {
	if cfg.Env == nil {
		cfg.Env = func(string) string { return "" }
	}
	if cfg.Places == nil {
		cfg.Places = LocalPlaces()
	}
	base, key := cfg.Env(EnvBaseURL), cfg.Env(EnvAPIKey)
	switch {
	case base != "":
		return named(ctx, &Found{Source: EnvBaseURL, BaseURL: base, APIKey: key, Model: cfg.Model})
	case key != "":
		f := &Found{Source: EnvAPIKey, BaseURL: HostedBaseURL, APIKey: key, Model: cfg.Model}
		if f.Model == "" {
			f.Model = HostedModel
		}
		f.Window = knownWindow(f.Model)
		return f, nil
	}
	return local(ctx, &cfg)
}

// named completes what the user named.
func named(ctx context.Context, f *Found) (*Found, error) {
	base, err := parseBase(f.BaseURL)
	if err != nil {
		return nil, err
	}
	prof, err := profileFor("", base)
	if err != nil {
		return nil, err
	}
	prof.rebase(base)
	f.BaseURL = base.String()
	if f.Window = knownWindow(f.Model); f.Window > 0 && !near(base.Hostname()) {
		return f, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	client := wire.NewClient(nil, lookTimeout)
	defer client.CloseIdleConnections()
	e := &endpoint{base: base, key: f.APIKey, client: client, prof: prof}
	if err := e.complete(ctx, f); err != nil {
		f.Note = err.Error()
	}
	return f, nil
}

// complete finds the model, if none is named, and its window.
func (e *endpoint) complete(ctx context.Context, f *Found) error {
	if f.Model == "" {
		list, status, err := e.list(ctx, "models")
		if status == http.StatusServiceUnavailable && isLoading(err) {
			f.Note = "the server is loading its model"
			return nil
		}
		if err != nil {
			return err
		}
		f.Model = firstChat(list)
	}
	n, err := e.window(ctx, f.Model)
	f.Window = n
	return err
}

// isLoading tells a server that is loading its model (llama.cpp) from another that has no time.
func isLoading(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "loading model")
}

// firstChat picks a model: the first loaded one that chats, else the first that chats.
func firstChat(list []listed) string {
	name := ""
	for i := range list {
		if !list[i].chats() {
			continue
		}
		if list[i].State == "loaded" {
			return string(list[i].ID)
		}
		if name == "" {
			name = string(list[i].ID)
		}
	}
	return name
}

// local asks all places at once and takes the first of their order that lists the model, else the first that answers.
func local(ctx context.Context, cfg *DiscoverConfig) (*Found, error) {
	client := wire.NewClient(&http.Client{Transport: wire.NewTransport(orDefault(cfg.Probe, DefaultProbe), nil)}, 0)
	defer client.CloseIdleConnections()
	found := make([]*Found, len(cfg.Places))
	var wg sync.WaitGroup
	for i, p := range cfg.Places {
		wg.Go(func() { found[i] = probe(ctx, cfg, p, client) })
	}
	wg.Wait()
	var first *Found
	for _, f := range found {
		if f != nil && f.listed {
			return f, nil
		}
		if first == nil {
			first = f
		}
	}
	return first, ctx.Err()
}

// probe asks one place; nil is that nothing usable answers there.
func probe(ctx context.Context, cfg *DiscoverConfig, p Place, client *http.Client) *Found {
	ctx, cancel := context.WithTimeout(ctx, orDefault(cfg.Probe, DefaultProbe))
	defer cancel()
	base, err := parseBase(p.BaseURL)
	if err != nil {
		return nil
	}
	e := &endpoint{base: base, client: client}
	f := &Found{Source: p.Name, BaseURL: base.String(), Model: cfg.Model}
	list, status, err := e.list(ctx, "models")
	if status == http.StatusServiceUnavailable && isLoading(err) {
		f.Note = "the server is loading its model"
		return f
	}
	if err != nil {
		return nil
	}
	if f.Model == "" {
		if studio, _, err := e.list(ctx, "/api/v0/models"); err == nil && firstChat(studio) != "" {
			list = studio // tells which models are loaded
		}
		f.Model = firstChat(list)
	}
	if f.Model == "" {
		return nil
	}
	f.listed = slices.ContainsFunc(list, func(l listed) bool { return string(l.ID) == f.Model })
	f.Window, _ = e.window(ctx, f.Model)
	return f
}

// Listed reports whether a local server lists the model. One that was only named is not asked.
func (f *Found) Listed() bool { return f.listed }
