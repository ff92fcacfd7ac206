package ollama

import (
	"context"
	"testing"

	"memgpt/model/modeltest"
)

func TestErrorsShowNoKey(t *testing.T) {
	modeltest.ErrorsShowNoKey(t, func(base, key string) (modeltest.Keyed, error) {
		m, err := New(Config{BaseURL: base, APIKey: key, Model: "m", Window: 8192})
		if err != nil {
			return modeltest.Keyed{}, err
		}
		list := func(ctx context.Context) error { _, err := m.List(ctx); return err }
		return modeltest.Keyed{Model: m, List: list, Close: m.Close}, nil
	})
}
