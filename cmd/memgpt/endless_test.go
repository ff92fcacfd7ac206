package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAnswersWithoutEnd: a server that streams thoughts for ever is given up after a bounded number of bytes, is not asked
// again, and the message stays in the log.
func TestAnswersWithoutEnd(t *testing.T) {
	thought := strings.Repeat("hm and again ", 20_000)
	for provider, piece := range map[string]string{
		"openai":    "data: " + `{"choices":[{"index":0,"delta":{"reasoning_content":"` + thought + `"}}]}` + "\n\n",
		"anthropic": "event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"` + thought + `"}}` + "\n\n",
		"ollama":    `{"model":"m","message":{"role":"assistant","thinking":"` + thought + `"},"done":false}` + "\n",
	} {
		t.Run(provider, func(t *testing.T) {
			if raced && provider != "openai" {
				t.Skip("64 MB a protocol take minutes under the race detector")
			}
			var asked atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/api/show" {
					_, _ = io.WriteString(w, `{"capabilities":["completion","tools"],"model_info":{}}`)
					return
				}
				if r.Method != http.MethodPost || !(strings.HasSuffix(r.URL.Path, "/chat/completions") || strings.HasSuffix(r.URL.Path, "/messages") || r.URL.Path == "/api/chat") {
					http.NotFound(w, r)
					return
				}
				asked.Add(1)
				w.Header().Set("Content-Type", map[bool]string{true: "application/x-ndjson", false: "text/event-stream"}[provider == "ollama"])
				if provider == "anthropic" {
					_, _ = fmt.Fprint(w, "event: content_block_start\ndata: "+`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`+"\n\n")
				}
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, piece); err != nil {
						return
					}
				}
			}))
			defer srv.Close()
			home := filepath.Join(t.TempDir(), "home")
			r := command(t, home, "", []string{"OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_API_KEY=k", "ANTHROPIC_BASE_URL=" + srv.URL,
				"ANTHROPIC_API_KEY=k", "OLLAMA_HOST=" + srv.URL, "MEMGPT_MODEL=" + provider + ":m"}, "run", "-m", "hello")
			if r.code == 0 || !strings.Contains(r.err, "longer than any reply") || asked.Load() != 1 {
				t.Errorf("asked %d times: %+v", asked.Load(), r)
			}
			if log := good(t, home, "", "log"); !strings.Contains(log.out, "hello") {
				t.Errorf("%+v", log)
			}
		})
	}
}
