package openai

import (
	"context"
	"slices"
)

// Listed is a model that a server lists.
type Listed struct {
	Name   string
	Window int // tokens, as the server or the table of known models tells; 0 when unknown
}

// List returns the models that the server lists and that chat, in its order. It generates nothing and costs nothing.
func (m *Model) List(ctx context.Context) ([]Listed, error) {
	list, _, err := m.endpoint().list(ctx, "models")
	if err != nil {
		return nil, err
	}
	var models []Listed
	for i := range list {
		if !list[i].chats() {
			continue
		}
		l := Listed{Name: string(list[i].ID), Window: list[i].window()}
		if l.Window == 0 {
			l.Window = knownWindow(l.Name)
		}
		models = append(models, l)
	}
	return models, nil
}

// tellsProps reports whether the server may be llama.cpp, which tells of itself at /props.
func (e *endpoint) tellsProps() bool {
	ways := e.profile().Window
	if ways == nil {
		return near(e.base.Hostname())
	}
	return slices.Contains(ways, WindowProps)
}

// Near reports whether the server is on this machine or in a private network, where a question costs next to nothing.
func (m *Model) Near() bool { return near(m.base.Hostname()) }

// BaseURL returns the address of the endpoint as it was completed.
func (m *Model) BaseURL() string { return m.base.String() }
