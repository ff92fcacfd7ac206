package tool

import "context"

// Mailer is the part of Memory by which an agent writes to others. What is sent is part of the step's commit. Errors speak to
// the model.
type Mailer interface {
	// Write sends a text to the agent with a name or an ID, and returns its name. With ask the call, which must be of
	// memgpt.EffectDeferred, stays open: its result is the answer.
	Write(ctx context.Context, agent, text string, ask bool) (name string, err error)
	// WriteTagged sends a text to all other agents that have each of the tags. It returns their names, and why others didn't
	// get it. It is an error where nobody did.
	WriteTagged(ctx context.Context, tags []string, text string) (names, refused []string, err error)
}
