package offline_test

import (
	"testing"

	"memgpt/model/modeltest"
	"memgpt/model/offline"
)

func TestContract(t *testing.T) {
	modeltest.Run(t, func(t *testing.T) modeltest.Subject {
		m, err := offline.New(offline.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return modeltest.Subject{Model: m}
	})
}
