package memtool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/schema"
	"memgpt/token"
	"memgpt/tool"
)

func TestSpecsStaySmall(t *testing.T) {
	counter, err := token.New(token.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		form Form
		most int
	}{{Form{}, 1270}, {Form{Native: true}, 1010}, {Form{Compact: true}, 690}, {Form{Compact: true, Native: true}, 550}} {
		tools, err := Tools(tt.form)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, tool := range tools {
			c := counter.Text(tool.Spec.Name) + counter.Text(tool.Spec.Description) + counter.Text(string(tool.Spec.Parameters))
			n += c
		}
		t.Logf("%+v: %d functions, %d tokens, %d as counted for a request", tt.form, len(tools), n, counter.Tools(specs(tools)))
		if n > tt.most {
			t.Errorf("%+v: %d tokens, at most %d are meant", tt.form, n, tt.most)
		}
	}
}

func specs(tools []tool.Tool) []memgpt.ToolSpec {
	var list []memgpt.ToolSpec
	for _, t := range tools {
		list = append(list, t.Spec)
	}
	return list
}

func decodeLine(t *testing.T, text string) line {
	t.Helper()
	var l line
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return l
}

// wanted is every function with its arguments in order; those after the bar may be left out.
var wanted = map[string]string{
	"send_message":           "message",
	"yield":                  "",
	"pause_heartbeats":       "minutes",
	"core_memory_append":     "label content | request_heartbeat",
	"core_memory_replace":    "label old_content new_content | request_heartbeat",
	"memory_insert":          "label new_string | insert_line request_heartbeat",
	"memory_replace":         "label old_string new_string | request_heartbeat",
	"memory_rethink":         "label new_memory | request_heartbeat",
	"conversation_search":    "query | roles start_date end_date page context request_heartbeat",
	"conversation_evict":     "| through summary request_heartbeat",
	"archival_memory_insert": "content | tags about from request_heartbeat",
	"archival_memory_search": "query | tags start_date end_date as_of page request_heartbeat",
	"archival_memory_update": "id content | ended about from request_heartbeat",
	"archival_memory_merge":  "ids content | ended about from request_heartbeat",
	"archival_memory_delete": "id | request_heartbeat",
	"memory_read":            "id | offset around request_heartbeat",
}

var forms = []Form{{}, {Compact: true}, {Native: true}, {Compact: true, Native: true}}

func TestNamesAndArguments(t *testing.T) {
	for _, form := range forms {
		tools, err := Tools(form)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, x := range tools {
			got[x.Spec.Name] = strings.TrimSpace(strings.TrimSuffix(describe(t, accepted(x)), "|"))
			checkAliases(t, x)
		}
		want := map[string]string{}
		for name, args := range wanted {
			if form.Native {
				args = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(args, "request_heartbeat")), "|"))
			}
			want[name] = args
		}
		if form.Native {
			delete(want, "send_message")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", form, diff)
		}
	}
}

// describe lists a schema's arguments, and checks that it is one that strict servers take.
func describe(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var p parameters
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil || p.Type != "object" || p.Additional != nil && *p.Additional {
		t.Errorf("%s: %v", raw, err)
	}
	if _, err := schema.Parse(raw); err != nil {
		t.Error(err)
	}
	var required, optional []string
	props := json.NewDecoder(bytes.NewReader(p.Properties))
	if _, err := props.Token(); err != nil {
		t.Fatal(err)
	}
	for props.More() {
		name, err := props.Token()
		var one property
		if err == nil {
			err = props.Decode(&one)
		}
		if err != nil || !slices.Contains([]string{"string", "integer", "boolean", "array"}, one.Type) || (one.Type == "array") != (one.Items != nil) {
			t.Errorf("%s: %v", raw, err)
		}
		if slices.Contains(p.Required, name.(string)) {
			required = append(required, name.(string))
		} else {
			optional = append(optional, name.(string))
		}
	}
	if len(required) != len(p.Required) {
		t.Errorf("%s: something required is no property", raw)
	}
	return strings.TrimSpace(strings.Join(required, " ") + " | " + strings.Join(optional, " "))
}

// accepted is the schema that a function's arguments are checked against.
func accepted(x tool.Tool) json.RawMessage {
	if x.Accepts != nil {
		return x.Accepts
	}
	return x.Spec.Parameters
}

// The compact form doesn't name what says when a fact holds, and takes it.
func TestCompactTakesWhatItLeavesOut(t *testing.T) {
	for name, left := range map[string]string{"archival_memory_insert": "about from", "archival_memory_update": "about ended from",
		"archival_memory_merge": "about ended from", "archival_memory_search": "as_of"} {
		x := named(t, Form{Compact: true}, name)
		shown, err := schema.Parse(x.Spec.Parameters)
		if err != nil {
			t.Fatal(err)
		}
		for _, arg := range strings.Fields(left) {
			if shown.Has(arg) || !x.schema.Has(arg) {
				t.Errorf("%s: %s is named (%v) or not taken", name, arg, shown.Has(arg))
			}
		}
	}
	f := newFake()
	if _, err := f.run(t, Form{Compact: true}, "archival_memory_insert", `{"content":"Lin moved to Berlin","about":"2024-05"}`); err != nil {
		t.Fatal(err)
	}
	if got := tool.DateText(f.fact.About, tokyo); got != "2024-05" {
		t.Errorf("it is about %q", got)
	}
}

// checkAliases makes sure that aliases lead to arguments, and hide none.
func checkAliases(t *testing.T, x tool.Tool) {
	t.Helper()
	s, err := schema.Parse(accepted(x))
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range x.Aliases {
		if !s.Has(to) || s.Has(from) {
			t.Errorf("%s: the alias %s of %s hides an argument or leads nowhere", x.Spec.Name, from, to)
		}
	}
}

func TestOlderSpellings(t *testing.T) {
	for _, tt := range []struct{ name, args, want string }{
		{"core_memory_append", `{"name":"human","content":"x"}`, "updated"},
		{"core_memory_replace", `{"name":"human","old_string":"cat","new_string":"dog"}`, "updated"},
		{"memory_replace", `{"label":"human","old_str":"cat","new_str":"dog"}`, "updated"},
		{"memory_replace", `{"block":"human","old_content":"cat","new_content":"dog"}`, "updated"},
		{"memory_insert", `{"label":"human","new_str":"x","line":0}`, "updated"},
		{"memory_insert", `{"label":"human","content":"x"}`, "updated"},
		{"memory_rethink", `{"label":"human","content":"x"}`, "updated"},
		{"archival_memory_delete", `{"memory_id":"x"}`, "Deleted x"},
		{"archival_memory_merge", `{"memory_ids":["x","y"],"text":"z"}`, "replaces x, y"},
		{"conversation_search", `{"q":"x","since":"2024-10-01"}`, "No results"},
	} {
		if got := newFake().ok(t, tt.name, tt.args); !strings.Contains(got, tt.want) {
			t.Errorf("%s(%s) gave %q", tt.name, tt.args, got)
		}
	}
}

func TestMarks(t *testing.T) {
	tools, err := Tools(Form{})
	if err != nil {
		t.Fatal(err)
	}
	reads := []string{"conversation_search", "archival_memory_search", "memory_read"}
	finals := []string{"send_message", "yield", "pause_heartbeats"}
	for _, x := range tools {
		isRead, want := slices.Contains(reads, x.Spec.Name), memgpt.EffectMemory
		if isRead {
			want = memgpt.EffectRead
		}
		if x.Effect != want || x.Search != isRead || x.Final != slices.Contains(finals, x.Spec.Name) {
			t.Errorf("%s: effect %d, search %v, final %v", x.Spec.Name, x.Effect, x.Search, x.Final)
		}
		if x.Spec.Description == "" || !strings.Contains(string(x.Spec.Parameters), `"additionalProperties":false`) {
			t.Errorf("%s has no description or an open schema", x.Spec.Name)
		}
	}
}

func TestNewTool(t *testing.T) {
	type weather struct {
		City string `json:"city" jsonschema:"where"`
		Days int    `json:"days,omitempty"`
	}
	fn := func(_ context.Context, w weather) (string, error) {
		if w.City == "" {
			return "", errors.New("city is empty")
		}
		return fmt.Sprint(w.City, w.Days), nil
	}
	x, err := New("weather", "Tells the weather.", memgpt.EffectRead, fn)
	if err != nil {
		t.Fatal(err)
	}
	if x.Spec.Name != "weather" || x.Spec.Description != "Tells the weather." || x.Effect != memgpt.EffectRead || describe(t, x.Spec.Parameters) != "city | days" {
		t.Errorf("%+v", x)
	}
	if got, err := x.Call(t.Context(), tool.Invocation{Args: json.RawMessage(`{"city":"杭州","days":2}`)}); got != "杭州2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := x.Call(t.Context(), tool.Invocation{}); err == nil || err.Error() != "city is empty" {
		t.Errorf("no arguments gave %v", err)
	}
	if _, err := x.Call(t.Context(), tool.Invocation{Args: json.RawMessage(`{"city":1}`)}); err == nil {
		t.Error("arguments of the wrong type were taken")
	}
	for _, name := range []string{"", "two words", "天气", strings.Repeat("x", 65)} {
		if _, err := New(name, "", 0, fn); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("the name %q gave %v", name, err)
		}
	}
	if _, err := New[weather]("x", "", 0, nil); err == nil {
		t.Error("no function was taken")
	}
	if _, err := New("x", "", 0, func(context.Context, string) (string, error) { return "", nil }); err == nil {
		t.Error("arguments that are no struct were taken")
	}
	type reserved struct {
		Beat bool `json:"request_heartbeat"`
	}
	if _, err := New("x", "", 0, func(context.Context, reserved) (string, error) { return "", nil }); err == nil {
		t.Error("the kernel's argument was taken")
	}
}
