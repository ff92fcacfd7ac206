package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// animals are texts of which none shares a word with "a feline pet".
const animals = `{"text":"Our cat Mimi sleeps on the radiator all day."}
{"text":"The quarterly budget was approved without changes."}
{"text":"He repaired the roof before the storm came."}
{"text":"Flight 318 to Osaka leaves at dawn."}
{"text":"The violin needs new strings."}
{"text":"She planted tomatoes behind the shed."}
{"text":"The printer on the second floor is out of toner."}
{"text":"My brother collects old coins."}
`

// TestIndex loads texts, makes their vectors and finds one by its meaning alone.
func TestIndex(t *testing.T) {
	home := t.TempDir()
	good(t, home, animals, "load", "-")
	wants(t, "before", good(t, home, "", "index").out, "model memgpt-e5-small-q4: 8 texts of 1 ")
	wants(t, "search before", good(t, home, "", "search", "a feline pet").err, "searched by words alone")
	wants(t, "wait", good(t, home, "", "index", "--wait").out, "8 texts got a vector, none is left")
	wants(t, "after", good(t, home, "", "index").out, ": 0 texts")
	hits := lines[hitLine](t, good(t, home, "", "search", "--json", "--explain", "a feline pet").out)
	if len(hits) == 0 || !strings.Contains(hits[0].Text, "Mimi") || len(hits[0].Parts) == 0 {
		t.Errorf("%+v", hits)
	}
	none := command(t, home, "", []string{"MEMGPT_EMBEDDER=none"}, "search", "a feline pet")
	if none.code != 0 || strings.Contains(none.out, "Mimi") {
		t.Errorf("words alone found %q, status %d", none.out, none.code)
	}
	wants(t, "no vectors", command(t, home, "", []string{"MEMGPT_EMBEDDER=none"}, "index").err, "MEMGPT_EMBEDDER is none")
}

// TestRunEmbedsItsOwn has a later process find by its meaning what an earlier one was told.
func TestRunEmbedsItsOwn(t *testing.T) {
	if raced {
		t.Skip("with the race detector the encoder gets through no text in the time that a run has")
	}
	home := t.TempDir()
	good(t, home, "", "run", "-m", "The physician said that I should give up coffee for good.")
	var out string
	for range 8 { // on a slow machine a process gets through few texts, and leaves the rest to the next one
		good(t, home, "", "run", "-m", "The train to Leeds was late again.")
		if out = good(t, home, "", "search", "what did the doctor advise").out; strings.Contains(strings.SplitN(out, "\n", 2)[0], "physician") {
			return
		}
	}
	t.Errorf("found %q", out)
}

// TestAnotherEmbedder changes the model: until its vectors are made the old ones serve, and afterwards they are gone.
func TestAnotherEmbedder(t *testing.T) {
	var posts atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		posts.Add(1)
		var data []string
		for i, text := range in.Input { // texts lie anywhere, but those that speak of a pet far out in one direction
			h := fnv.New64a()
			_, _ = h.Write([]byte(text))
			rnd := rand.New(rand.NewPCG(h.Sum64(), 1))
			v := make([]float64, 24)
			for d := range v {
				v[d] = rnd.NormFloat64()
			}
			if strings.Contains(text, "Mimi") || strings.Contains(text, "feline") {
				v[0] += 12
			}
			vector, _ := json.Marshal(v)
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%s}`, i, vector))
		}
		_, _ = fmt.Fprintf(w, `{"data":[%s],"model":"m"}`, strings.Join(data, ","))
	}))
	defer srv.Close()
	other := []string{"MEMGPT_EMBEDDER=" + srv.URL + "/v1#toy"}
	home := t.TempDir()
	good(t, home, animals, "load", "-")
	good(t, home, "", "index", "--wait")
	old := command(t, home, "", other, "search", "a feline pet")
	wants(t, "old vectors", strings.SplitN(old.out, "\n", 2)[0], "Mimi")
	wait := command(t, home, "", other, "index", "--wait")
	wants(t, "new vectors", wait.out, "model toy: 8 texts got a vector")
	asked := posts.Load()
	found := command(t, home, "", other, "search", "a feline pet")
	wants(t, "found by the new", strings.SplitN(found.out, "\n", 2)[0], "Mimi")
	if posts.Load() == asked {
		t.Error("the new model did not embed the query")
	}
	wants(t, "old ones are gone", good(t, home, "", "index").out, "model memgpt-e5-small-q4: 8 texts")
}
