package memgpt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/calendar"
)

func TestPartsSurviveARoundTrip(t *testing.T) {
	parts := memgpt.Parts{
		memgpt.Text{Text: "请牢记,我不能喝酒 🍷 <b>&"}, memgpt.Text{Text: "hm", Thought: true},
		memgpt.Image{MIME: "image/png", Data: []byte{1, 2, 3}}, memgpt.File{Name: "a.txt", URL: "https://example.org/a"},
		memgpt.Reasoning{Text: "r", Provider: "p", Data: json.RawMessage(`{"signature":"x","n":12345678901234567890}`)},
		memgpt.Call{ID: "1", Name: "f", Arguments: `{"a":"\n"}`}, memgpt.Result{CallID: "1", Name: "f", Text: "ok", Failed: true}, memgpt.Quotes{IDs: []string{"m"}},
		memgpt.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"deep":[1,{"x":null}]}`)},
	}
	data, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "我不能喝酒 🍷") {
		t.Errorf("text was escaped: %s", data)
	}
	var back memgpt.Parts
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(parts, back); d != "" {
		t.Error(d)
	}
	if err := json.Unmarshal([]byte(`[{"text":7}]`), &back); err == nil {
		t.Error("a part of the wrong form was taken")
	}
}

func TestSaid(t *testing.T) {
	m := memgpt.Message{Parts: memgpt.Parts{
		memgpt.Text{Text: "thinking", Thought: true}, memgpt.Call{Name: "send_message", Arguments: `{"message":"你好"}`},
		memgpt.Call{Name: "send_message", Arguments: `{"text":"no message"}`}, memgpt.Call{Name: "other", Arguments: `{"message":"x"}`},
		memgpt.Text{Text: "spoken"}}}
	if got := m.Said(); got != "你好\nspoken" {
		t.Errorf("said %q", got)
	}
	if got := m.Thoughts(); got != "thinking" {
		t.Errorf("thoughts %q", got)
	}
	if _, ok := m.Result(); ok || len(m.Calls()) != 3 {
		t.Error("calls or results are wrong")
	}
}

func TestCleanAndCutText(t *testing.T) {
	for in, want := range map[string]string{"ok 好": "ok 好", "a\x00b": "ab", "\xff": "\uFFFD", "\xed\xa0\x80": "\uFFFD"} {
		if got := memgpt.CleanText(in); got != want {
			t.Errorf("CleanText(%q) = %q, want %q", in, got, want)
		}
	}
	text := "a好👩‍👩‍👧‍👦é"
	for n := -1; n <= len(text)+1; n++ {
		got := memgpt.CutText(text, n)
		if !utf8.ValidString(got) || !strings.HasPrefix(text, got) || len(got) > max(n, 0) {
			t.Errorf("CutText(%d) = %q", n, got)
		}
		if n >= 0 && n < len(text) && len(got) < n-3 {
			t.Errorf("CutText(%d) left only %d bytes", n, len(got))
		}
	}
	if memgpt.Runes("你好世界你好世界你好") != 10 {
		t.Error("characters are not code points")
	}
}

func FuzzCleanText(f *testing.F) {
	f.Add("a\x00\xff好")
	f.Fuzz(func(t *testing.T, s string) {
		got := memgpt.CleanText(s)
		if !utf8.ValidString(got) || strings.Contains(got, "\x00") || memgpt.CleanText(got) != got {
			t.Errorf("CleanText(%q) = %q", s, got)
		}
	})
}

func TestErrors(t *testing.T) {
	under := io.ErrUnexpectedEOF
	err := fmt.Errorf("outer: %w", memgpt.Errorf(memgpt.CodeModelDown, "ask %s: %w", "it", under))
	if memgpt.CodeOf(err) != memgpt.CodeModelDown || !errors.Is(err, under) {
		t.Errorf("%v", err)
	}
	if want := "outer: ask it: unexpected EOF"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if got := memgpt.Errorf(memgpt.CodeBusy, "plain").Error(); got != "plain" {
		t.Errorf("%q", got)
	}
	if got := (&memgpt.Error{Code: memgpt.CodeBusy, Err: under}).Error(); got != under.Error() {
		t.Errorf("%q", got)
	}
	if memgpt.CodeOf(under) != "" || memgpt.CodeOf(nil) != "" {
		t.Error("a foreign error has a code")
	}
}

func TestAgentsZone(t *testing.T) {
	at := time.Date(2026, 4, 6, 16, 51, 0, 0, time.UTC)
	for zone, want := range map[string]string{"America/New_York": "2026-04-06T12:51:00-04:00", "": "2026-04-06T16:51:00Z", "No/Where": "2026-04-06T16:51:00Z"} {
		a := memgpt.Agent{Zone: zone}
		if got := calendar.Format(at, a.Location()); got != want {
			t.Errorf("%q: %s, want %s", zone, got, want)
		}
	}
	if calendar.Format(time.Time{}, nil) != "unknown" {
		t.Error("an unknown time is shown as one")
	}
}
