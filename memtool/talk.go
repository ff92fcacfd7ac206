package memtool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"memgpt"
)

// maxPause is the longest pause of timer heartbeats, in minutes: the figure of the first implementation.
const maxPause = 360

type sendArgs struct {
	Message string `json:"message" jsonschema:"what the user reads"`
}

type yieldArgs struct{}

type pauseArgs struct {
	Minutes int `json:"minutes" jsonschema:"1 to 360"`
}

func talkFunctions() []definition {
	return []definition{
		define(definition{
			name: memgpt.FuncSendMessage, effect: memgpt.EffectMemory, final: true,
			full:    "Say something to the user. Nothing else that you write is seen.",
			compact: "Speak.",
			aliases: map[string]string{"text": "message", "content": "message", "msg": "message", "response": "message", "reply": "message"},
		}, send),
		define(definition{
			name: memgpt.FuncYield, effect: memgpt.EffectMemory, final: true,
			full:    "End the turn without a word.",
			compact: "End silently.",
		}, yield),
		define(definition{
			name: memgpt.FuncPauseHeartbeats, effect: memgpt.EffectMemory, final: true,
			full:    "Hold timer heartbeats back for a while.",
			aliases: map[string]string{"duration": "minutes", "time": "minutes"},
		}, pause),
	}
}

func send(_ context.Context, c call, args sendArgs) (string, error) {
	if strings.TrimSpace(args.Message) == "" {
		return "", errors.New("message is empty: write what the user should read, or call yield to end the turn without a word")
	}
	c.Say(args.Message)
	return "Sent.", nil
}

func yield(_ context.Context, c call, _ yieldArgs) (string, error) {
	c.Yield()
	return "The turn ends here.", nil
}

func pause(_ context.Context, c call, args pauseArgs) (string, error) {
	if args.Minutes <= 0 {
		return "", fmt.Errorf("minutes is %d: give a number from 1 to %d", args.Minutes, maxPause)
	}
	minutes, note := args.Minutes, ""
	if minutes > maxPause {
		minutes, note = maxPause, ", which is the longest pause"
	}
	c.PauseHeartbeats(time.Duration(minutes) * time.Minute)
	return fmt.Sprintf("Timer heartbeats are paused for %d minutes%s.", minutes, note), nil
}
