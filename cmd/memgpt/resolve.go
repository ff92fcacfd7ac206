package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/model/ollama"
	"memgpt/model/openai"
	"memgpt/schema"
)

// target is a model and where it is.
type target struct {
	provider string // "" where only an address is known
	base     string // address
	key      string
	model    string
	window   int    // tokens; 0 when unknown
	note     string // what a person should know; "" for nothing
}

// place names the endpoint of a target, without what may be secret in it.
func (t *target) place() string {
	if u, err := url.Parse(t.base); err == nil && u.Host != "" {
		return u.Host + strings.TrimRight(u.Path, "/")
	}
	return t.provider
}

// probeNamed is how long a server that the user named is looked for, where one on this machine answers at once.
const probeNamed = 2 * time.Second

// resolve finds the model of a name, [provider:]model, or what is there where the name is "". Of an endpoint it asks for
// no more than models and windows. A name that leads nowhere is CodeInvalid, a key that is missing CodeModelAuth.
func resolve(ctx context.Context, getenv func(string) string, name string) (target, error) {
	p, model, named := splitModel(name)
	if named {
		t, err := resolveAt(ctx, getenv, p, model)
		if memgpt.CodeOf(err) == memgpt.CodeModelAuth && model != "" { // Ollama has models such as mistral:7b
			if own, ok := ollamaHas(ctx, getenv, name); ok {
				return own, nil
			}
		}
		return t, err
	}
	if getenv(openai.EnvBaseURL) == "" {
		if p, ok := familyOf(name); ok && p.key(getenv) != "" {
			return resolveAt(ctx, getenv, p, name)
		}
	}
	found, err := openai.Discover(ctx, discovery(getenv, name))
	if err != nil {
		return target{}, err
	}
	if name != "" && (found == nil || local(found) && !found.Listed()) {
		if list := mayServe(getenv); len(list) == 1 {
			return resolveAt(ctx, getenv, list[0], name)
		}
		if _, ok := familyOf(name); ok {
			return target{}, nowhere(getenv, name)
		}
	}
	switch {
	case found == nil && name == "":
		return fromKeys(ctx, getenv)
	case found == nil:
		return target{}, nowhere(getenv, name)
	case found.Source == openai.LocalPlaces()[0].Name:
		p, _ := providerNamed(ollamaProvider)
		return resolveAt(ctx, getenv, p, found.Model)
	}
	return target{base: found.BaseURL, key: found.APIKey, model: found.Model, window: found.Window, note: found.Note}, nil
}

// local reports whether what was found was looked for on this machine.
func local(f *openai.Found) bool {
	return f.Source != openai.EnvBaseURL && f.Source != openai.EnvAPIKey
}

// discovery says where to look for a model. OLLAMA_HOST takes the place of Ollama's address.
func discovery(getenv func(string) string, model string) openai.DiscoverConfig {
	cfg := openai.DiscoverConfig{Env: getenv, Model: model, Places: openai.LocalPlaces()}
	if host := strings.TrimSpace(getenv("OLLAMA_HOST")); host != "" {
		cfg.Places[0].BaseURL = strings.TrimRight(ollamaAddress(host), "/") + "/v1"
		cfg.Probe = probeNamed
	}
	return cfg
}

// resolveAt finds a model of a provider that was named.
func resolveAt(ctx context.Context, getenv func(string) string, p provider, model string) (target, error) {
	t := target{provider: p.name, model: model}
	t.base, t.key = p.address(getenv)
	if t.key == "" && !p.local && getenv(p.base) == "" || t.key == "" && p.name == azureProvider {
		return t, memgpt.Errorf(memgpt.CodeModelAuth, "model %q is one of %s, whose key is missing: set %s", p.name+":"+model, p.name, p.keys[0])
	}
	if t.base == "" {
		return t, memgpt.Errorf(memgpt.CodeInvalid, "model %q is one of %s, whose address is missing: set %s", p.name+":"+model, p.name, p.base)
	}
	if t.model == "" && !p.local {
		if t.model = p.model; t.model == "" {
			return t, memgpt.Errorf(memgpt.CodeInvalid, "%s has no model that is used unasked: name one, as MEMGPT_MODEL=%s:MODEL;"+
				" memgpt models lists them", p.name, p.name)
		}
	}
	switch p.name {
	case anthropicProvider, azureProvider:
		return t, nil
	case ollamaProvider:
		return completeOllama(ctx, t)
	}
	found, err := openai.Discover(ctx, openai.DiscoverConfig{Model: t.model, Env: func(name string) string {
		return map[string]string{openai.EnvBaseURL: t.base, openai.EnvAPIKey: t.key}[name]
	}})
	if err != nil {
		return t, fmt.Errorf("%s: %w", p.base, err)
	}
	t.base, t.model, t.window, t.note = found.BaseURL, found.Model, found.Window, found.Note
	if p.name == openaiProvider && getenv(p.base) != "" {
		t.provider = "" // whoever is there speaks its protocol, perhaps with a dialect of its own
	}
	return t, nil
}

// completeOllama takes the newest model where none is named.
func completeOllama(ctx context.Context, t target) (target, error) {
	m, err := ollama.New(ollama.Config{BaseURL: t.base, APIKey: t.key})
	if err != nil {
		return t, fmt.Errorf("OLLAMA_HOST: %w", err)
	}
	defer func() { _ = m.Close() }()
	if t.model != "" {
		return t, nil
	}
	names, err := m.List(ctx)
	if err == nil && len(names) == 0 {
		err = memgpt.Errorf(memgpt.CodeInvalid, "ollama at %s has no model that chats; memgpt models pull NAME loads one down", t.place())
	}
	if err != nil {
		return t, err
	}
	t.model = names[0]
	return t, nil
}

// ollamaHas reports whether a local Ollama has a model of that name.
func ollamaHas(ctx context.Context, getenv func(string) string, name string) (target, bool) {
	p, _ := providerNamed(ollamaProvider)
	t := target{provider: p.name, model: name}
	t.base, t.key = p.address(getenv)
	m, err := ollama.New(ollama.Config{BaseURL: t.base, APIKey: t.key, Connect: openai.DefaultProbe})
	if err != nil {
		return t, false
	}
	defer func() { _ = m.Close() }()
	ctx, cancel := context.WithTimeout(ctx, probeNamed)
	defer cancel()
	names, err := m.List(ctx)
	return t, err == nil && slices.Contains(names, name)
}

// hostedWithKey are the providers, but OpenAI, whose key is set.
func hostedWithKey(getenv func(string) string) (list []provider) {
	for _, p := range providers() {
		if p.name != openaiProvider && !p.local && p.key(getenv) != "" {
			list = append(list, p)
		}
	}
	return list
}

// mayServe are the hosted providers whose key is set and that may have a model of any name.
func mayServe(getenv func(string) string) []provider {
	return slices.DeleteFunc(hostedWithKey(getenv), func(p provider) bool { return !p.many })
}

// fromKeys returns the default model of the first hosted provider whose key is set and that has one, else the stand-in.
func fromKeys(ctx context.Context, getenv func(string) string) (target, error) {
	t := target{provider: offlineProvider, model: offlineProvider}
	for _, p := range hostedWithKey(getenv) {
		if p.model != "" {
			return resolveAt(ctx, getenv, p, "")
		}
		t.note = fmt.Sprintf("a key of %s is set, but no model is named: set MEMGPT_MODEL=%s:MODEL (memgpt models lists them)", p.name, p.name)
	}
	return t, nil
}

// nowhere says why a name leads to no model, and what to do.
func nowhere(getenv func(string) string, name string) error {
	if p, ok := providerNamed(name); ok {
		return memgpt.Errorf(memgpt.CodeInvalid, "model %q is the name of a provider: add a model, as %s:MODEL, or a colon alone for its default", name, p.name)
	}
	if p, ok := familyOf(name); ok {
		return memgpt.Errorf(memgpt.CodeModelAuth, "model %q is one of %s, whose key is missing: set %s", name, p.name, p.keys[0])
	}
	var keyed, all []string
	for _, p := range mayServe(getenv) {
		keyed = append(keyed, p.name+":"+name)
	}
	for _, p := range providers() {
		all = append(all, p.name)
	}
	hint := ""
	if before, after, ok := strings.Cut(name, ":"); ok {
		if near := schema.Closest(before, all); near != "" {
			hint = fmt.Sprintf(" (did you mean %s:%s?)", near, after)
		}
	}
	if len(keyed) > 0 {
		return memgpt.Errorf(memgpt.CodeInvalid, "model %q names no provider, and no local server was found%s; write %s", name, hint, anyOfWords(keyed))
	}
	return memgpt.Errorf(memgpt.CodeInvalid, "model %q: no endpoint is set and no local server was found%s; set OPENAI_BASE_URL (and OPENAI_API_KEY),"+
		" or a provider's key and its name before the model's (%s), or start Ollama, LM Studio or llama.cpp", name, hint, strings.Join(all, ", "))
}
