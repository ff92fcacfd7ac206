package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestRead(t *testing.T) {
	got, err := Read(env("MEMGPT_HOME", "h", "MEMGPT_MODEL", " offline ", "MEMGPT_WINDOW", "4096", "MEMGPT_HEARTBEAT", "90s",
		"OPENAI_BASE_URL", "http://localhost:1/v1", "OPENAI_API_KEY", "k", "TZ", "Asia/Shanghai",
		"MEMGPT_PRICES", "p.json", "MEMGPT_BUDGET", "1", "MEMGPT_BUDGET_TOTAL", "2", "MEMGPT_BUDGET_TOKENS", "3", "MEMGPT_BUDGET_TOKENS_TOTAL", "4"))
	if err != nil {
		t.Fatal(err)
	}
	every := 90 * time.Second
	want := Config{Home: "h", Model: "offline", Window: 4096, Heartbeat: &every, BaseURL: "http://localhost:1/v1",
		APIKey: "k", Zone: "Asia/Shanghai", Prices: "p.json", Budget: "1", BudgetTotal: "2", BudgetTokens: "3", BudgetTokensTotal: "4"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReadModelSettings(t *testing.T) {
	got, err := Read(env("MEMGPT_HOME", "h", "TZ", "UTC", "MEMGPT_FALLBACK", " a:b , c,,", "MEMGPT_CALLS", "Prompted", "MEMGPT_API", "responses",
		"MEMGPT_TIMEOUT_CONNECT", "1s", "MEMGPT_TIMEOUT_FIRST", "2m", "MEMGPT_TIMEOUT_IDLE", "30s", "MEMGPT_TIMEOUT_WHOLE", "1h"))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Home: "h", Zone: "UTC", Fallback: []string{"a:b", "c"}, Calls: "prompted", API: "responses",
		Timeouts: Timeouts{time.Second, 2 * time.Minute, 30 * time.Second, time.Hour}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got, err = Read(env("MEMGPT_HOME", "h", "MEMGPT_CALLS", "auto", "MEMGPT_API", "auto")); err != nil || got.Calls != "" || got.API != "" {
		t.Errorf("auto is %q and %q, %v", got.Calls, got.API, err)
	}
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	for name, value := range map[string]string{"MEMGPT_WINDOW": "many", "MEMGPT_HEARTBEAT": "5", "MEMGPT_CALLS": "magic", "MEMGPT_API": "soap",
		"MEMGPT_TIMEOUT_CONNECT": "0s", "MEMGPT_TIMEOUT_FIRST": "ten", "MEMGPT_TIMEOUT_IDLE": "-1s", "MEMGPT_TIMEOUT_WHOLE": "1"} {
		if _, err := Read(env("MEMGPT_HOME", "h", name, value)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: error %v doesn't name it", name, value, err)
		}
	}
	if _, err := Read(env("MEMGPT_HOME", "h", "MEMGPT_WINDOW", "-1")); err == nil {
		t.Error("a negative window was taken")
	}
}

func TestDataDirFollowsTheUser(t *testing.T) {
	got, err := Read(env("XDG_DATA_HOME", "/data"))
	if err != nil || got.Home != "/data/memgpt" {
		t.Errorf("home is %q, %v", got.Home, err)
	}
	if got, err = Read(env("TZ", "No/Where", "MEMGPT_HOME", "h")); err != nil || got.Zone != "" {
		t.Errorf("zone is %q, %v", got.Zone, err)
	}
}
