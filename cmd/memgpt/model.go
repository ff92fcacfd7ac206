package main

import (
	"context"
	"fmt"
	"time"

	"memgpt"
	"memgpt/model/offline"
	"memgpt/model/openai"
	"memgpt/model/retry"
)

// pickModel returns the model that the settings name, else one that runs on this machine, else the stand-in.
func (a *app) pickModel(ctx context.Context) (memgpt.Model, error) {
	if slips, ok, err := offline.Parse(a.cfg.Model); err != nil {
		return nil, err
	} else if ok {
		return a.standIn(slips)
	}
	found, err := openai.Discover(ctx, openai.DiscoverConfig{Env: a.getenv, Model: a.cfg.Model})
	if err != nil {
		return nil, err
	}
	if found == nil {
		if a.cfg.Model != "" {
			return nil, fmt.Errorf("MEMGPT_MODEL is %q, but no endpoint is set and no local server was found;"+
				" set OPENAI_BASE_URL (and OPENAI_API_KEY), or start Ollama, LM Studio or llama.cpp", a.cfg.Model)
		}
		return a.standIn(offline.Config{})
	}
	if found.Note != "" {
		a.say("%s: %s", found.BaseURL, found.Note)
	}
	bare, err := openai.New(found.Config())
	if err != nil {
		return nil, err
	}
	m, err := a.metered(bare, found.BaseURL)
	if err != nil {
		return nil, err
	}
	breaker := retry.NewBreaker(retry.BreakerConfig{})
	return retry.New(retry.Config{Model: m, Breaker: breaker, Retry: func(_ context.Context, err error, wait time.Duration) {
		a.say("%v; trying again in %s", err, wait.Round(100*time.Millisecond))
	}})
}

// banner says which model answers. A stand-in is never presented as a language model.
func (a *app) banner() {
	known := a.model.Capabilities()
	if known.StandIn && a.cfg.Model != "" {
		a.say("memgpt: %s: not a language model but a rule-based stand-in, as it was asked for.", known.Name)
		return
	}
	if known.StandIn {
		a.say("memgpt: no language model is configured; a rule-based stand-in (%s) answers. Set OPENAI_BASE_URL or"+
			" OPENAI_API_KEY, or start a local server.", known.Name)
		return
	}
	window := "its window is not known"
	if n := a.cfg.Window; n > 0 {
		window = fmt.Sprintf("window %d tokens", n)
	} else if known.Window > 0 {
		window = fmt.Sprintf("window %d tokens", known.Window)
	}
	a.say("memgpt: %s, %s", known.Name, window)
}
