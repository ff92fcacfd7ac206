// Package token measures what a request costs in tokens. It owns the counting of texts, messages and function specs with
// a published encoding, and what it learned from providers about how far their counts are from ours. It knows no window,
// decides nothing and does no I/O: whoever counts decides what fits.
package token

import (
	"fmt"
	"hash/maphash"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"

	"memgpt"
)

// Names of encodings, as OpenAI publishes them.
const (
	O200k  = "o200k_base"
	Cl100k = "cl100k_base"
)

// EncodingOf returns the encoding whose tables are embedded here for a tokenizer as models name it
// (memgpt.Capabilities.Tokenizer): O200k where it is none of them or not known, since most vocabularies of today are of its
// size.
func EncodingOf(tokenizer string) string {
	if tokenizer == Cl100k {
		return Cl100k
	}
	return O200k
}

// What a wire message costs beside its texts. The figures for envelopes are those of OpenAI's chat format (the cookbook's
// "How to count tokens with tiktoken": three a message, one the role, three to open the reply), the others are rounded up.
const (
	messageTokens = 4 // start, role, separator, end
	callTokens    = 6 // markers around a call, its name and its arguments
	resultTokens  = 4 // markers around a result
	toolsTokens   = 8 // heading of the functions
	toolTokens    = 4 // around one function; little, since models are mostly shown less than the JSON that is counted
)

// ImageTokens is counted for an image, whatever its size: 85 + 170 for each of 6 tiles of 512 pixels, the price of a tall
// picture in high detail by OpenAI's guide to vision. A file that is not text is counted like one.
const ImageTokens = 1105

// Config configures a Counter. The zero value is usable.
type Config struct {
	Encoding string // O200k or Cl100k; "" is O200k
}

// Counter counts tokens by one encoding and remembers, by model, how far off its counts are. The encoding's tables are
// loaded with the first text. A Counter is safe for concurrent use and its memory is bounded.
type Counter struct {
	load    func() *codec.Codec
	splits  bool // split.go splits as the encoding does
	pieces  cache
	factors factors
}

// New returns a Counter. It fails for an unknown encoding.
func New(cfg Config) (*Counter, error) {
	c := &Counter{splits: cfg.Encoding != Cl100k, pieces: cache{seed: maphash.MakeSeed()}}
	switch cfg.Encoding {
	case "", O200k:
		c.load = sync.OnceValue(codec.NewO200kBase)
	case Cl100k:
		c.load = sync.OnceValue(codec.NewCl100kBase)
	default:
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "make a token counter: encoding %q is unknown; use %q or %q",
			cfg.Encoding, O200k, Cl100k)
	}
	return c, nil
}

// Message counts a message as it goes on the wire: its parts, their envelopes, and that of the message.
func (c *Counter) Message(m *memgpt.Message) int {
	n := messageTokens
	for _, p := range m.Parts {
		n += c.part(p)
	}
	return n
}

func (c *Counter) part(p memgpt.Part) int {
	switch p := p.(type) {
	case memgpt.Text:
		return c.Text(p.Text)
	case memgpt.Image:
		return ImageTokens
	case memgpt.File:
		if len(p.Data) > 0 && utf8.Valid(p.Data) {
			return c.Text(p.Name) + c.Text(string(p.Data))
		}
		return c.Text(p.Name) + ImageTokens
	case memgpt.Reasoning:
		return c.reasoning(p)
	case memgpt.Call:
		return callTokens + c.Text(p.ID) + c.Text(p.Name) + c.Text(p.Arguments)
	case memgpt.Result:
		return resultTokens + c.Text(p.CallID) + c.Text(p.Text)
	case memgpt.Unknown:
		return c.Text(string(p.Raw))
	}
	return c.Text(fmt.Sprint(p))
}

// reasoning counts opaque data without a text by its bytes: four a token, since what is encrypted stands for a text of
// about its own length.
func (c *Counter) reasoning(p memgpt.Reasoning) int {
	if p.Text == "" {
		return (len(p.Data) + 3) / 4
	}
	return c.Text(p.Text)
}

// Tools counts the functions that a request offers; 0 for none.
func (c *Counter) Tools(specs []memgpt.ToolSpec) int {
	if len(specs) == 0 {
		return 0
	}
	n := toolsTokens
	for _, s := range specs {
		n += toolTokens + c.Text(s.Name) + c.Text(s.Description) + c.Text(string(s.Parameters))
	}
	return n
}
