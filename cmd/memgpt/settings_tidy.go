package main

import (
	"time"

	"memgpt"
)

// Bounds of the settings of tidying.
const (
	mostTidyTurns = 10_000
	leastTidyIdle = time.Second
)

// tidySettings say when an agent's memory is tidied in the background, and by whom.
func tidySettings() []setting {
	return []setting{
		switchSetting("tidy", "on or off: whether its memory is tidied in the background", func(a *memgpt.Agent) *bool { return &a.Tidy.On }),
		countSetting("tidy_turns", "after so many turns", "8", func(a *memgpt.Agent) *int { return &a.Tidy.Turns }, 1, mostTidyTurns),
		spanSetting("tidy_idle", "when nobody wrote for so long, as 10m", "10m",
			func(a *memgpt.Agent) *time.Duration { return &a.Tidy.Idle }, leastTidyIdle),
		textSetting("tidy_model", "[provider:]model that tidies", "that of the agent", func(a *memgpt.Agent) *string { return &a.Tidy.Model }, checkModel),
	}
}
