package script_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// TestProtocols has one reply in each protocol: what it looks like in a stream and in one piece, where it breaks off, and
// how it is refused. That clients read it is held by the matrix of test/behaviour.
func TestProtocols(t *testing.T) {
	reply := script.Calls(script.Think("hm"), script.Text("hello"), script.Call("f", "a", "1"))
	for _, test := range []struct {
		path, body            string
		whole, stream, broken []string
		refused               []string
	}{
		{"/v1/chat/completions", `{"messages":[],"stream":%S}`,
			[]string{`"reasoning_content":"hm"`, `"content":"hello"`, `"arguments":"{\"a\":\"1\"}"`, `"finish_reason":"tool_calls"`},
			[]string{`"reasoning_content":"hm"`, `"content":"hello"`, `"name":"f"`, "data: [DONE]\n\n"},
			[]string{`"hm"`}, []string{"429", `{"error":{"message":"slow down"`}},
		{"/v1/responses", `{"input":[],"stream":%S}`,
			[]string{`"text":"hm","type":"summary_text"`, `"type":"output_text"`, `"type":"function_call"`, `"call_id":"call_1"`, `"status":"completed"`, `"object":"response"`},
			[]string{"event: response.created\ndata: ", `"delta":"hello"`, "event: response.function_call_arguments.delta\n", "event: response.completed\n"},
			[]string{`"delta":"hm"`}, []string{"429", `{"error":{"message":"slow down"`}},
		{"/v1/messages", `{"messages":[],"stream":%S}`,
			[]string{`"type":"thinking"`, `"signature":"script"`, `"text":"hello"`, `"input":{"a":"1"}`, `"stop_reason":"tool_use"`, `"type":"message"`},
			[]string{"event: message_start\n", "event: ping\n", `"thinking":"hm"`, `"partial_json":"{\"a\":\"1\"}"`, `"stop_reason":"tool_use"`, "event: message_stop\n"},
			[]string{`"thinking":"hm"`}, []string{"429", `{"error":{"message":"slow down"`, `"type":"error"`}},
		{"/api/chat", `{"messages":[],"stream":%S}`,
			[]string{`"thinking":"hm"`, `"content":"hello"`, `"arguments":{"a":"1"}`, `"done":true`, `"done_reason":"stop"`, `"prompt_eval_count":`},
			[]string{`"thinking":"hm"`, `"content":"hello"`, `"arguments":{"a":"1"}`, `"done":true`},
			[]string{`"thinking":"hm"`}, []string{"429", `{"error":"slow down"}`}},
	} {
		limit := &memgpt.Error{Code: memgpt.CodeModelLimit, Text: "slow down"}
		s := script.NewServer(script.ServerConfig{Config: script.Config{Replies: []script.Reply{reply, reply, reply.Broken(1), script.Fail(limit)}}})
		srv := httptest.NewServer(s)
		t.Cleanup(srv.Close)
		for _, ask := range []struct {
			stream string
			want   []string
		}{{"false", test.whole}, {"true", test.stream}, {"true", append(test.broken, "ERROR")}, {"true", test.refused}} {
			got := postTo(t, srv, test.path, strings.Replace(test.body, "%S", ask.stream, 1))
			for _, want := range ask.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s: no %q in %s", test.path, want, got)
				}
			}
			if broken := strings.Contains(got, "ERROR"); broken && strings.Contains(got, "hello") {
				t.Errorf("%s: it goes on where it is broken off: %s", test.path, got)
			}
		}
		s.Model.Done(t)
	}
}

// postTo returns status and body of an answer; ERROR stands where it breaks off.
func postTo(t *testing.T, srv *httptest.Server, path, body string) string {
	t.Helper()
	resp, err := srv.Client().Post(srv.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return "ERROR"
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		got = append(got, "ERROR"...)
	}
	return resp.Status + " " + string(got)
}
