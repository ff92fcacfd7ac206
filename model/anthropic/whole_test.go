package anthropic

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"memgpt"
)

// TestSignatureOfAWholeAnswer: a gateway that doesn't stream gives thinking with its signature at once. Both go back.
func TestSignatureOfAWholeAnswer(t *testing.T) {
	m, _ := serveFunc(t, Config{}, func(_ int, _ *wireRequest, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},`+
			`{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`)
	})
	resp, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "a"})), nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := encode(ask(user(memgpt.Text{Text: "a"}), resp.Message, user(memgpt.Text{Text: "b"})), "m", &m.cfg, form{thoughts: true})
	if err != nil || !strings.Contains(string(back), `"signature":"c2ln"`) || !strings.Contains(string(back), `"thinking":"hm"`) {
		t.Errorf("%s, %v", back, err)
	}
}
