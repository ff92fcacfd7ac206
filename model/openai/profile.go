package openai

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"memgpt"
)

// Profile is what one provider publishes of its dialect of Chat Completions. It is the first try only: what a server
// refuses nevertheless is learned from its refusals. The zero value is a server of which nothing is known.
type Profile struct {
	Name   string   // as Config.Provider names it
	Hosts  []string // ends of the host names by which it is recognised; ":8000" is that port on a machine near by
	Source string   // where the rules were checked; the table of profiles has the date

	Base        string            // path of the API where a base URL names the host alone; "{model}" stands for the model
	Deployments string            // query of addresses that name a deployment in their path
	KeyHeader   string            // header that carries the key as it is; "" is a bearer token
	Headers     map[string]string // sent with each request

	MaxTokens     string      // field that bounds the reply: "max_tokens" or "max_completion_tokens"; "" is "max_tokens"
	Required      string      // value of tool_choice that asks for a call; "" is "required"
	NoForce       bool        // refuses Required
	Forced        bool        // obeys Required
	Parallel      bool        // may make several calls in a reply
	Strict        bool        // enforces the schema of a function that is marked strict
	NoStreamUsage bool        // refuses stream_options, and reports usage without it
	Images        ImageForm   // form in which images are taken
	Sees          []string    // beginnings of the names of models that see images; "*" is all of them
	Developer     []string    // beginnings of the names of models that want the role developer instead of system
	Responses     []string    // beginnings of the names of models that speak the Responses API alone
	Window        []WindowWay // where the size of the window is told, in the order to ask
	Count         []CountWay  // how the server counts a request's tokens; nil tries them all
	TellsCost     bool        // tells what a call cost, in dollars, in its usage
	Cached        string      // place of the cached tokens in the usage; the reader knows all places

	Reasoning     string        // place of a reply's reasoning: a field, or "<think>" in the text; the reader knows all places
	ReasoningBack ReasoningBack // whether reasoning goes back
	Signed        bool          // the first call of a message carries the provider's signature (extra_content)

	ShortIDs        bool // ids of calls are 9 letters and digits
	Alternate       bool // no two messages of users in a row
	AfterResult     bool // an assistant's message stands between a result and a user's message
	EmptyCallText   bool // content beside calls is "" instead of null
	NoEmptyMessages bool // content of other messages is never empty. The encoder keeps this for all providers
}

// ImageForm is a form in which a provider takes images.
type ImageForm string

// Forms of images. The zero value takes none.
const (
	ImagesNone ImageForm = ""
	ImagesData ImageForm = "data" // their bytes, as a data URL
	ImagesURL  ImageForm = "url"  // their bytes or an address
)

// ReasoningBack says when reasoning goes back to the provider.
type ReasoningBack string

// Ways of sending reasoning back. The zero value keeps it.
const (
	ReasoningKept   ReasoningBack = ""
	ReasoningAlways ReasoningBack = "always" // with each message that has some
	ReasoningEvery  ReasoningBack = "every"  // with each message of the assistant, as "" where it has none
)

// WindowWay is a place where a server tells the size of the window.
type WindowWay string

// Places of the window's size.
const (
	WindowModels WindowWay = "models" // an extra of GET /v1/models
	WindowProps  WindowWay = "props"  // GET /props of llama.cpp
	WindowStudio WindowWay = "studio" // GET /api/v0/models of LM Studio
	WindowOllama WindowWay = "ollama" // GET /api/ps of Ollama
	WindowTable  WindowWay = "table"  // the table of known models
)

// Values of Config.API.
const (
	APIChat      = "chat"      // Chat Completions
	APIResponses = "responses" // the Responses API
)

// unknownProfile is the profile of a server of which nothing is known.
var unknownProfile = Profile{Parallel: true, Images: ImagesURL}

// Providers returns the names of the known providers in alphabetical order.
func Providers() []string {
	var names []string
	for i := range profiles {
		names = append(names, profiles[i].Name)
	}
	slices.Sort(names)
	return names
}

// ProfileOf returns the profile of a provider, and whether it is known.
func ProfileOf(name string) (Profile, bool) {
	for i := range profiles {
		if strings.EqualFold(profiles[i].Name, name) {
			return profiles[i], true
		}
	}
	return Profile{}, false
}

// profileFor finds the profile of an endpoint: the named one, else the one whose host it is, else the unknown one. A
// name that isn't known is CodeInvalid.
func profileFor(name string, base *url.URL) (*Profile, error) {
	if name != "" {
		p, ok := ProfileOf(name)
		if !ok {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "provider %q is not known: want one of %s, or none to go by the base URL",
				memgpt.CutText(name, 100), strings.Join(Providers(), ", "))
		}
		return &p, nil
	}
	for i := range profiles {
		if slices.ContainsFunc(profiles[i].Hosts, func(h string) bool { return servedAt(base, h) }) {
			return &profiles[i], nil
		}
	}
	return &unknownProfile, nil
}

// servedAt reports whether a host matches: a name, a domain above it, or a port on a machine near by.
func servedAt(base *url.URL, host string) bool {
	name := strings.ToLower(base.Hostname())
	if port, ok := strings.CutPrefix(host, ":"); ok {
		return base.Port() == port && near(name)
	}
	return name == host || strings.HasSuffix(name, "."+host)
}

// profile returns the profile of a configuration.
func (c *Config) profile() *Profile {
	if c.prof == nil {
		return &unknownProfile
	}
	return c.prof
}

// rebase completes a base URL of a provider.
func (p *Profile) rebase(base *url.URL) {
	if p.Base != "" && base.Path == "/v1" { // as parseBase completes a bare host
		base.Path = p.Base
	}
	if base.RawQuery == "" && strings.Contains(base.Path, "/deployments/") {
		base.RawQuery = p.Deployments
	}
}

// mergedHeaders returns the headers of a request: those of the provider, under those of the configuration.
func (p *Profile) mergedHeaders(own map[string]string) map[string]string {
	if len(p.Headers) == 0 {
		return own
	}
	all := maps.Clone(p.Headers)
	maps.Copy(all, own)
	return all
}

// firstShape returns the form of the first request for a model.
func (p *Profile) firstShape(cfg *Config, model string) shape {
	return shape{
		noUsage:          p.NoStreamUsage,
		completionTokens: p.MaxTokens == "max_completion_tokens",
		noForce:          p.NoForce,
		merge:            p.Alternate,
		bridge:           p.AfterResult,
		shortIDs:         p.ShortIDs,
		emptyText:        p.EmptyCallText,
		developer:        beginsWithAny(model, p.Developer),
		sees:             p.Images != ImagesNone && beginsWithAny(model, p.Sees),
		imageData:        p.Images == ImagesData,
		strict:           p.Strict,
		thoughtsBack:     cfg.ReasoningField == "" && p.ReasoningBack == ReasoningEvery,
		responses:        cfg.API == APIResponses || cfg.API == "" && beginsWithAny(model, p.Responses),
		chatOnly:         cfg.API == APIChat,
		extras:           p.Signed || p.Name == "", // a server that is not known gets back what it sent
		fillExtras:       p.Signed,
	}
}

// beginsWithAny reports whether a model's name, without the vendor before it, begins with one of the beginnings.
func beginsWithAny(model string, beginnings []string) bool {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	return slices.ContainsFunc(beginnings, func(b string) bool { return b == "*" || strings.HasPrefix(name, b) })
}
