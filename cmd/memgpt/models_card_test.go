package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memgpt"
	"memgpt/eval/card"
	"memgpt/model/script"
)

// runCardCommand runs models test as the command line does.
func runCardCommand(t *testing.T, env map[string]string, args ...string) (out, errs string, code int) {
	t.Helper()
	env["MEMGPT_HOME"] = filepath.Join(t.TempDir(), "home")
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append([]string{"models", "test"}, args...), streams{strings.NewReader(""), &stdout, &stderr},
		func(name string) string { return env[name] })
	if _, err := os.Stat(env["MEMGPT_HOME"]); !os.IsNotExist(err) {
		t.Errorf("the data directory was touched: %v", err)
	}
	return stdout.String(), stderr.String(), code
}

func TestModelsTestOfStandIn(t *testing.T) {
	out, errs, code := runCardCommand(t, map[string]string{}, "offline", "--time", "1h")
	if code != 0 || !strings.Contains(out, "Report card of offline, a stand-in and not a language model") || !strings.Contains(errs, "of 3600 s: ") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
}

// TestModelsTestOverTheWire has a server whose model only talks.
func TestModelsTestOverTheWire(t *testing.T) {
	s := script.NewServer(script.ServerConfig{Config: script.Config{CountOnly: true,
		Func: func(int, *memgpt.Request) script.Reply { return script.Text("What a fine day for a walk.") }},
		Count: func(body []byte) int { return len(body) / 8 }, Window: 32768})
	srv := httptest.NewServer(s)
	defer srv.Close()
	out, errs, code := runCardCommand(t, map[string]string{"OPENAI_BASE_URL": srv.URL + "/v1", "OPENAI_API_KEY": "k"}, "talker", "--time", "1h", "--json")
	var c card.Card
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s\n%s", code, err, out, errs)
	}
	if c.Verdict != card.Cannot || c.Model != "talker" {
		t.Errorf("%s: %s %s", c.Model, c.Verdict, c.Says)
	}
	for check, passed := range map[string]int{card.CheckSpeaks: 2, card.CheckStreams: 2, card.CheckCalls: 0, card.CheckAnswers: 3, card.CheckRemembers: 0} {
		if f := c.Figure(check, card.WayNative); f == nil || f.Passed != passed {
			t.Errorf("%s: %+v", check, f)
		}
	}
}

func TestModelsTestRefuses(t *testing.T) {
	if _, errs, code := runCardCommand(t, map[string]string{}, "offline", "--time", "0s"); code == 0 || !strings.Contains(errs, "--time") {
		t.Errorf("no time: exit %d, %s", code, errs)
	}
	srv := httptest.NewServer(script.NewServer(script.ServerConfig{Key: "right"}))
	defer srv.Close()
	_, errs, code := runCardCommand(t, map[string]string{"OPENAI_BASE_URL": srv.URL + "/v1", "OPENAI_API_KEY": "wrong"}, "m")
	if code == 0 || !strings.Contains(errs, "test model m") || !strings.Contains(errs, "401") {
		t.Errorf("a wrong key: exit %d, %s", code, errs)
	}
}
