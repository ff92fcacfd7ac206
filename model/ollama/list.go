package ollama

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

// noChat matches names of models that only embed.
var noChat = regexp.MustCompile(`embed|minilm|\bbge-|rerank`)

// List returns the names of the models that the server has and that chat, the newest first, as the server does.
func (m *Model) List(ctx context.Context) ([]string, error) {
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := m.ask(ctx, http.MethodGet, "/api/tags", "", nil, &tags); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range tags.Models {
		if t.Name != "" && !noChat.MatchString(strings.ToLower(t.Name)) {
			names = append(names, t.Name)
		}
	}
	return names, nil
}
