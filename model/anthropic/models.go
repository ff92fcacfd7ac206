package anthropic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"memgpt"
	"memgpt/internal/wire"
)

// known is what is known of a model: its sizes in tokens, 0 where unknown, and whether it refuses a forced choice because
// it always thinks.
type known struct {
	prefix         string
	window, output int
	unforced       bool
}

// knownModels are models by the beginning of their names; the first that fits counts. Sources: the pages "Overview" of each
// model at platform.claude.com, docs/en/models, and litellm 1.110.2 (max_input_tokens, max_output_tokens,
// supports_forced_tool_use), both seen 2026-11-30; the names are those of the SDK v2.15.0. What is newer is left to
// Model.Window and to refusals; the last row is the smallest window that a model of the API has had since 2023.
var knownModels = []known{
	{"claude-haiku-4-5", 200_000, 64_000, false}, {"claude-sonnet-4-5", 200_000, 64_000, false}, {"claude-opus-4-5", 200_000, 64_000, false},
	{"claude-opus-4-6", 1_000_000, 128_000, false}, {"claude-opus-4-7", 1_000_000, 128_000, false}, {"claude-opus-4-8", 1_000_000, 128_000, false},
	{"claude-sonnet-4-6", 1_000_000, 128_000, false}, {"claude-haiku-5-5", 1_000_000, 128_000, false},
	{"claude-sonnet-5-5", 1_000_000, 128_000, true}, {"claude-sonnet-5", 1_000_000, 128_000, false},
	{"claude-opus-5-5", 1_000_000, 128_000, true}, {"claude-opus-5", 1_000_000, 128_000, false},
	{"claude-fable-5-1", 1_000_000, 128_000, true}, {"claude-fable-5", 1_000_000, 128_000, false},
	{"claude-mythos-5-1", 1_000_000, 128_000, true}, {"claude-mythos-", 1_000_000, 128_000, false},
	{"claude-", 200_000, 0, false},
}

// knownModel looks a name up, with or without a gateway's prefix.
func knownModel(name string) known {
	name = strings.ToLower(name)
	name = name[strings.LastIndexAny(name, "/.")+1:]
	for _, k := range knownModels {
		if strings.HasPrefix(name, k.prefix) {
			return k
		}
	}
	return known{}
}

// lookTimeout bounds the look-up of a model.
const lookTimeout = 5 * time.Second

// Window looks the configured model's window and the bound of its replies up at the API, and Capabilities tells them from
// then on. What is configured is not looked up. Where the API could not be asked, the table's figure (0 when it has none)
// comes with the error.
func (m *Model) Window(ctx context.Context) (int, error) {
	if m.cfg.Window > 0 || m.cfg.Model == "" {
		return int(m.window.Load()), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	info, err := m.client.Models.Get(ctx, m.cfg.Model, sdk.ModelGetParams{})
	if err != nil {
		return int(m.window.Load()), m.lookFault(err)
	}
	if info.MaxInputTokens > 0 {
		m.window.Store(info.MaxInputTokens)
	}
	if info.MaxTokens > 0 && m.cfg.MaxOutput == 0 {
		m.output.Store(info.MaxTokens)
	}
	return int(m.window.Load()), nil
}

func (m *Model) lookFault(err error) error {
	var refusal *sdk.Error
	if errors.As(err, &refusal) {
		return m.refusal(refusal).err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ask %s for the model: %w", m.host, err)
	}
	return memgpt.Errorf(memgpt.CodeModelDown, "ask %s for the model: %w", m.host, wire.Plain(err))
}
