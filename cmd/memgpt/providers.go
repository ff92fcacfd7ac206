package main

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"memgpt/model/anthropic"
	"memgpt/model/ollama"
	"memgpt/model/openai"
)

// Names of providers that the code has to tell from others.
const (
	anthropicProvider = "anthropic"
	azureProvider     = "azure"
	ollamaProvider    = "ollama"
	offlineProvider   = "offline"
	openaiProvider    = "openai"
)

// provider is whom a model's name may begin with, and the variables that its own clients read.
type provider struct {
	name     string
	keys     []string // of its key, the first that is set counts
	base     string   // of its address
	model    string   // used where none is named: small, cheap and able to call functions; "" is none
	families []string // beginnings of names that nobody else serves
	local    bool     // a server of one's own: it needs no key
	many     bool     // it serves models of many names, so that any may be one of them
}

// providers are all there are. The variables are those of the providers' own clients (the packages openai, anthropic,
// groq, together, mistralai, xai-sdk, openrouter and ollama of PyPI, as of 2026-11); where those read no address, it is
// the name with _BASE_URL.
func providers() []provider {
	return []provider{
		{name: openaiProvider, keys: []string{openai.EnvAPIKey}, base: openai.EnvBaseURL, model: openai.HostedModel,
			families: []string{"gpt-4", "gpt-5", "chatgpt-"}},
		{name: anthropicProvider, keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, base: "ANTHROPIC_BASE_URL",
			model: "claude-haiku-5-5", families: []string{"claude-"}},
		{name: "gemini", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, base: "GEMINI_BASE_URL", families: []string{"gemini-"}},
		{name: "deepseek", keys: []string{"DEEPSEEK_API_KEY"}, base: "DEEPSEEK_BASE_URL", model: "deepseek-chat",
			families: []string{"deepseek-chat", "deepseek-reasoner"}},
		{name: "mistral", keys: []string{"MISTRAL_API_KEY"}, base: "MISTRAL_BASE_URL", model: "mistral-small-latest",
			families: []string{"mistral-large-", "mistral-medium-"}, many: true},
		{name: "xai", keys: []string{"XAI_API_KEY"}, base: "XAI_BASE_URL", families: []string{"grok-"}},
		{name: "groq", keys: []string{"GROQ_API_KEY"}, base: "GROQ_BASE_URL", many: true},
		{name: "together", keys: []string{"TOGETHER_API_KEY"}, base: "TOGETHER_BASE_URL", many: true},
		{name: "openrouter", keys: []string{"OPENROUTER_API_KEY"}, base: "OPENROUTER_BASE_URL", many: true},
		{name: azureProvider, keys: []string{"AZURE_OPENAI_API_KEY"}, base: "AZURE_OPENAI_ENDPOINT", many: true},
		{name: ollamaProvider, keys: []string{"OLLAMA_API_KEY"}, base: "OLLAMA_HOST", local: true},
		{name: "lmstudio", keys: []string{"LM_API_TOKEN"}, base: "LMSTUDIO_BASE_URL", local: true},
		{name: "llamacpp", keys: []string{"LLAMA_API_KEY"}, base: "LLAMACPP_BASE_URL", local: true},
		{name: "vllm", keys: []string{"VLLM_API_KEY"}, base: "VLLM_BASE_URL", local: true},
		{name: "sglang", keys: []string{"SGLANG_API_KEY"}, base: "SGLANG_BASE_URL", local: true},
	}
}

func providerNamed(name string) (provider, bool) {
	all := providers()
	i := slices.IndexFunc(all, func(p provider) bool { return strings.EqualFold(p.name, name) })
	if i < 0 {
		return provider{}, false
	}
	return all[i], true
}

// splitModel reads [provider:]model. A colon after anything but a provider's name belongs to the model, as in qwen3:8b.
func splitModel(name string) (p provider, model string, named bool) {
	if before, after, ok := strings.Cut(name, ":"); ok {
		if p, ok := providerNamed(strings.TrimSpace(before)); ok {
			return p, strings.TrimSpace(after), true
		}
	}
	return provider{}, name, false
}

// familyOf returns the provider that alone serves models of such a name.
func familyOf(model string) (provider, bool) {
	for _, p := range providers() {
		if slices.ContainsFunc(p.families, func(f string) bool { return strings.HasPrefix(strings.ToLower(model), f) }) {
			return p, true
		}
	}
	return provider{}, false
}

// key returns the provider's key as the environment has it; "" is none.
func (p *provider) key(getenv func(string) string) string {
	for _, name := range p.keys {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			return v
		}
	}
	return ""
}

// address returns where the provider is: what its variable says, else its own place. OPENAI_BASE_URL holds for servers
// of one's own that speak OpenAI's protocol too, with its key. It is "" where there is no address.
func (p *provider) address(getenv func(string) string) (base, key string) {
	base, key = strings.TrimSpace(getenv(p.base)), p.key(getenv)
	switch {
	case p.name == ollamaProvider:
		return ollamaAddress(base), key
	case p.name == azureProvider:
		return azureAddress(base, strings.TrimSpace(getenv("OPENAI_API_VERSION"))), key
	case base != "":
		return base, key
	case p.name == anthropicProvider:
		return anthropic.DefaultBaseURL, key
	}
	if all := strings.TrimSpace(getenv(openai.EnvBaseURL)); p.local && all != "" {
		if key == "" {
			key = strings.TrimSpace(getenv(openai.EnvAPIKey))
		}
		return all, key
	}
	host := ""
	if prof, ok := openai.ProfileOf(p.name); ok {
		host = prof.Hosts[0]
	}
	if strings.HasPrefix(host, ":") {
		return "http://127.0.0.1" + host + "/v1", key
	}
	return "https://" + host, key
}

// azureAddress completes an endpoint as AZURE_OPENAI_ENDPOINT names it. Without a version the provider's own holds.
func azureAddress(endpoint, version string) string {
	if endpoint == "" || strings.Contains(endpoint, "/openai") || version == "" {
		return endpoint
	}
	return strings.TrimRight(endpoint, "/") + "/openai/deployments/{model}?api-version=" + url.QueryEscape(version)
}

// ollamaAddress reads OLLAMA_HOST as Ollama's clients do: host, port and scheme may each be left out, and an address at
// which a server listens for all is reached here.
func ollamaAddress(host string) string {
	if host == "" {
		return ollama.DefaultBaseURL
	}
	full := host
	if !strings.Contains(full, "://") {
		full = "http://" + strings.TrimPrefix(full, "//")
	}
	u, err := url.Parse(full)
	if err != nil {
		return host // whoever opens it says what is wrong
	}
	name, port := u.Hostname(), u.Port()
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	if port == "" && full != host {
		port = "11434"
	}
	if u.Host = name; port != "" {
		u.Host = net.JoinHostPort(name, port)
	} else if strings.Contains(name, ":") {
		u.Host = "[" + name + "]"
	}
	return u.String()
}
