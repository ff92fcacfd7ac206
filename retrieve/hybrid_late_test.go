package retrieve_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"memgpt/retrieve"
	"memgpt/tool"
)

// deafEncoder answers no sooner than it is let go, whatever becomes of its context.
type deafEncoder struct {
	*fakeEncoder
	letGo chan struct{}
}

func (e deafEncoder) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	<-e.letGo
	return e.fakeEncoder.Embed(ctx, texts, query)
}

// TestWordsHaveTimeLeft: a search under a deadline doesn't spend it on an encoder that is slow, or deaf.
func TestWordsHaveTimeLeft(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fake := newFake("m")
			m := fakeStore(someTexts, fake)
			var e tool.Embedder = fake
			letGo := make(chan struct{})
			if fake.slow = !deaf; deaf {
				e = deafEncoder{fake, letGo}
			}
			s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Embedders: []tool.Embedder{e}, Wait: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			start := time.Now()
			hits, err := s.Search(ctx, tool.Query{Owner: "a", Text: "umbrella tomorrow"})
			if err != nil || hits.Total != 1 || !strings.Contains(hits.Words, "deadline") || hits.Model != "" {
				t.Errorf("deaf %v: %+v, %v", deaf, hits, err)
			}
			if left := 2*time.Second - time.Since(start); left < time.Second || ctx.Err() != nil {
				t.Errorf("deaf %v: %v were left for words", deaf, left)
			}
			close(letGo)
		})
	}
}
