package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/openai"
	"memgpt/store"
)

// contestedRecords has somebody else write a record before each of the first so many commits.
type contestedRecords struct {
	data      []byte
	version   int64
	contested int
}

func (c *contestedRecords) Record(_ context.Context, tenant, kind, id string) (store.Record, error) {
	if c.version == 0 {
		return store.Record{}, memgpt.Errorf(memgpt.CodeNotFound, "none")
	}
	return store.Record{Tenant: tenant, Kind: kind, ID: id, Data: c.data, Version: c.version}, nil
}

func (c *contestedRecords) Commit(_ context.Context, in *store.Commit) (store.Committed, error) {
	if c.contested > 0 {
		c.contested--
		c.version++
		c.data = []byte(`{"verdict":"native"}`)
	}
	if in.Records[0].Version != c.version {
		return store.Committed{}, memgpt.Errorf(memgpt.CodeConflict, "changed")
	}
	c.version++
	c.data = in.Records[0].Data
	return store.Committed{}, nil
}

// TestVerdictsOfTwoProcesses: the one that has just tried is kept where both write at once; where that can't be, it is said
// and holds for this process.
func TestVerdictsOfTwoProcesses(t *testing.T) {
	for contested, kept := range map[int]bool{0: true, 1: true, 9: false} {
		said := ""
		records := &contestedRecords{contested: contested}
		v := &verdicts{records: records, place: "p", known: map[string]string{}, say: func(f string, args ...any) { said += fmt.Sprintf(f, args...) }}
		v.Put("m", "prompted: it writes calls")
		if got, ok := v.Get("m"); !ok || got != "prompted: it writes calls" {
			t.Errorf("%q %v", got, ok)
		}
		if strings.Contains(string(records.data), "prompted") != kept || (said == "") != kept {
			t.Errorf("contested %d times: %s, said %q", contested, records.data, said)
		}
	}
}

// TestTemplateVerdictIsTakenBack: a server that shows functions again, with another template, is called natively again;
// what was found out otherwise stays.
func TestTemplateVerdictIsTakenBack(t *testing.T) {
	shows := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/props" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, fmt.Sprintf(`{"chat_template_caps":{"supports_tools":%v}}`, shows))
	}))
	defer srv.Close()
	m, err := openai.New(openai.Config{BaseURL: srv.URL, Model: "m", Window: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	w := &wire{Model: m, openai: m, name: "m"}
	v := &verdicts{place: "p", known: map[string]string{}, say: t.Logf}
	for _, step := range []struct {
		shows        bool
		before, want string
	}{
		{false, "", droppedTools}, {true, droppedTools, ""}, {false, "native: it called", droppedTools},
		{true, "prompted: it writes calls", "prompted: it writes calls"}, {false, "prompted: it writes calls", "prompted: it writes calls"},
	} {
		shows, v.known["m"] = step.shows, step.before
		w.judgeTemplate(t.Context(), v)
		if got, _ := v.Get("m"); got != step.want {
			t.Errorf("%+v: the verdict is %q", step, got)
		}
	}
}

// TestServerAtOpenAIsAddress: whoever answers at OPENAI_BASE_URL is not taken for OpenAI, whose dialect it need not speak.
func TestServerAtOpenAIsAddress(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	at := func(base string) func(string) string {
		return func(name string) string {
			return map[string]string{openai.EnvBaseURL: base, openai.EnvAPIKey: "k"}[name]
		}
	}
	if got, err := resolve(t.Context(), at(srv.URL+"/v1"), "openai:gpt-4o"); err != nil || got.provider != "" || got.model != "gpt-4o" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := resolve(t.Context(), at(""), "openai:gpt-4o"); err != nil || got.provider != openaiProvider || got.model != "gpt-4o" {
		t.Errorf("%+v, %v", got, err)
	}
}
