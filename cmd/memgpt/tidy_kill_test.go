package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
)

var tidyToken = regexp.MustCompile(`"by":"user","text":"(token-\d+)"`)

// tidyTokens serves a tidier that takes its time. It stores one passage for each token that a message which it was given has, one
// a step, and ends when each has its own by what it sees.
func tidyTokens(t *testing.T, slow time.Duration) (env []string) {
	s := httptest.NewServer(script.NewServer(script.ServerConfig{Config: script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		var told string
		noted := map[string]bool{}
		for i := range req.Messages {
			var event struct{ Type, Message string }
			if json.Unmarshal([]byte(req.Messages[i].Said()), &event) == nil && event.Type == string(memgpt.EventTidy) {
				told = event.Message
			}
			for _, c := range req.Messages[i].Calls() {
				var args struct{ Reason string }
				_ = json.Unmarshal([]byte(c.Arguments), &args)
				noted[args.Reason] = true
			}
		}
		for _, found := range tidyToken.FindAllStringSubmatch(told, -1) {
			if token := found[1]; !noted[token] {
				return script.Calls(script.Call("archival_memory_insert", "content", "The user said "+token+".", "reason", token),
					script.Call("core_memory_append", "label", "human", "content", token, "reason", token)).After(slow)
			}
		}
		return script.Call("yield").After(slow)
	}}}))
	t.Cleanup(s.Close)
	return []string{"OPENAI_BASE_URL=" + s.URL + "/v1", "OPENAI_API_KEY=k"}
}

// TestTidyingKilledInTheMidst: daemons are killed while they tidy, and users write meanwhile. What each message said is noted
// once, in blocks and passages, and the place up to which memory is read is its end.
func TestTidyingKilledInTheMidst(t *testing.T) {
	kills := 6
	env := tidyTokens(t, 40*time.Millisecond)
	home := filepath.Join(t.TempDir(), "home")
	good(t, home, "", "run", "-m", "token-1000")
	st, agent, _ := timedStore(t, home)
	good(t, home, "", "agents", "set", "default", "tidy=on", "tidy_turns=1", "tidy_model=openai:tidier")
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range kills {
		daemon, _, _, _ := startChild(t, home, env, "daemon")
		for i := range 3 {
			r := command(t, home, "", env, "run", "--thread", fmt.Sprint("t", i%2), "-m", fmt.Sprintf("token-%d", 1001+3*n+i))
			if r.code != 0 {
				t.Fatalf("%+v", r)
			}
		}
		time.Sleep(time.Duration(rng.IntN(700)) * time.Millisecond) // real time: processes are killed at random moments
		killed(daemon)
	}
	startChild(t, home, env, "daemon")
	waitUntil(t, func() bool {
		events, err := st.Events(t.Context(), store.EventRange{})
		return err == nil && len(events) == 0
	})
	checkTokensTidied(t, st, &agent, 3*kills+1)
}

// checkTokensTidied holds that each token is noted once.
func checkTokensTidied(t *testing.T, st store.Store, agent *memgpt.Agent, tokens int) {
	t.Helper()
	ctx := t.Context()
	blocks, err := st.Blocks(ctx, "", agent.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	list, err := st.PassagesOf(ctx, store.PassageRange{Owner: agent.ID, Dead: true})
	if err != nil {
		t.Fatal(err)
	}
	var passages strings.Builder
	for i := range list {
		passages.WriteString(list[i].Text)
	}
	for n := range tokens {
		token := fmt.Sprintf("token-%d", 1000+n)
		if p, b := strings.Count(passages.String(), token), strings.Count(blocks[1].Value, token); p != 1 || b != 1 {
			t.Errorf("%s is in %d passages and %d times in the block", token, p, b)
		}
	}
	record, err := st.Record(ctx, "", store.TidyKind, agent.ID)
	_, tidied, err := store.ReadTidied(agent, record, err)
	if err != nil || tidied.Turn != "" || tidied.More {
		t.Errorf("%+v, %v", tidied, err)
	}
	threads, err := st.Threads(ctx, "", agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range threads {
		if th := &threads[i]; !store.IsTidyThread(th) && tidied.Seen[th.ID] != th.Next-1 {
			t.Errorf("conversation %s is read up to %d of %d", th.Name, tidied.Seen[th.ID], th.Next-1)
		}
	}
}

// TestTheShareOfTidyingIsBounded: a run that does its share of memory work by a model that never ends leaves it after a time.
func TestTheShareOfTidyingIsBounded(t *testing.T) {
	env := tidyTokens(t, time.Hour)
	home := filepath.Join(t.TempDir(), "home")
	good(t, home, "", "run", "-m", "token-1000")
	good(t, home, "", "agents", "set", "default", "tidy=on", "tidy_turns=1", "tidy_model=openai:tidier")
	settings := map[string]string{"MEMGPT_HOME": home, "MEMGPT_MODEL": "offline"}
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		settings[name] = value
	}
	a := &app{streams: streams{strings.NewReader(""), io.Discard, io.Discard}, getenv: func(name string) string { return settings[name] }, agentName: "default"}
	defer a.close()
	if err := a.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	agent, err := a.known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.tidyShare(ctx, agent, time.Now(), 200*time.Millisecond); !errors.Is(err, errShareOver) {
		t.Errorf("the share ended with %v", err)
	}
	if events, err := a.store.Events(t.Context(), store.EventRange{Thread: store.TidyThreadID(agent.ID)}); err != nil || len(events) != 1 {
		t.Errorf("events %+v, %v", events, err)
	}
}
