package main

import (
	"memgpt"
)

// describe gives an update the form in which --json prints it: its name under "update", then what it holds.
func describe(u memgpt.Update) map[string]any {
	switch u := u.(type) {
	case memgpt.TurnStarted:
		return map[string]any{"update": "turn_started", "turn": u.Turn.ID, "thread": u.Turn.Thread}
	case memgpt.Streamed:
		return describeDelta(u)
	case memgpt.StepDiscarded:
		return map[string]any{"update": "step_discarded", "step": u.Step, "reason": u.Reason}
	case memgpt.StepCommitted:
		entries := make([]logLine, 0, len(u.Entries))
		for i := range u.Entries {
			entries = append(entries, lineOf(&u.Entries[i]))
		}
		return map[string]any{"update": "step_committed", "step": u.Step, "entries": entries, "usage": u.Usage, "context": u.Context}
	case memgpt.TookIn:
		return map[string]any{"update": "took_in", "turn": u.Turn.ID, "into": u.Turn.Into}
	case memgpt.Spoke:
		out := map[string]any{"update": "spoke", "step": u.Step, "text": u.Text}
		if u.Saying != "" {
			out["unasked"] = u.Saying
		}
		return out
	case memgpt.Pressured:
		return map[string]any{"update": "memory_pressure", "tokens": u.Tokens, "mark": u.Mark}
	case memgpt.Flushed:
		return map[string]any{"update": "flushed", "messages": u.Messages, "tokens": u.Tokens, "failed": u.Failed, "by_model": u.ByModel}
	case memgpt.Handed:
		return map[string]any{"update": "handed_over", "hits": u.Hits, "tokens": u.Tokens}
	case memgpt.Warned:
		return map[string]any{"update": "warning", "code": u.Code, "text": u.Text}
	case memgpt.TurnEnded:
		out := map[string]any{"update": "turn_ended", "turn": u.Turn.ID, "state": u.Turn.State, "stop": u.Turn.Stop,
			"error": u.Turn.Error, "steps": u.Turn.Steps, "usage": u.Turn.Usage, "flags": u.Turn.Flags}
		if u.Turn.Into != "" {
			out["into"] = u.Turn.Into
		}
		return out
	}
	return map[string]any{"update": "unknown"}
}

func describeDelta(u memgpt.Streamed) map[string]any {
	out := map[string]any{"update": "delta", "step": u.Step}
	switch {
	case u.Delta.Call != nil:
		out["call"] = map[string]any{"index": u.Delta.Call.Index, "id": u.Delta.Call.ID, "name": u.Delta.Call.Name,
			"arguments": u.Delta.Call.Arguments}
	case u.Delta.Reasoning != "":
		out["reasoning"] = u.Delta.Reasoning
	default:
		out["text"] = u.Delta.Text
	}
	return out
}
