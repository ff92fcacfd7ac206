package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/internal/wire"
	"memgpt/model/modeltest"
)

// responsesServer speaks the Responses API as OpenAI publishes it (platform.openai.com/docs/api-reference/responses and
// /responses-streaming, /docs/guides/reasoning on encrypted reasoning), and refuses what breaks its rules.
type responsesServer struct {
	output   func(body map[string]any) []string // items of the answer
	status   string                             // "" is completed
	details  string                             // of an incomplete answer
	plain    bool                               // answers in one piece whatever is asked
	bytewise bool
	stuck    bool
	mu       sync.Mutex
	bodies   []map[string]any
	refusals []string
}

const responsesUsage = `{"input_tokens":100,"input_tokens_details":{"cached_tokens":30},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":120}`

func (s *responsesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/responses" {
		http.Error(w, `{"error":{"message":"not found"}}`, http.StatusNotFound)
		return
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	refusal := judgeResponses(body)
	if refusal != "" {
		s.refusals = append(s.refusals, refusal)
	}
	s.mu.Unlock()
	switch {
	case refusal != "":
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": refusal, "type": "invalid_request_error", "code": nil}})
	case body["stream"] == true && !s.plain:
		w.Header().Set("Content-Type", "text/event-stream")
		s.stream(w, r, body)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.whole(s.output(body)))
	}
}

func (s *responsesServer) whole(items []string) string {
	status := s.status
	if status == "" {
		status = "completed"
	}
	details := "null"
	if s.details != "" {
		details = `{"reason":"` + s.details + `"}`
	}
	return fmt.Sprintf(`{"id":"resp_1","object":"response","model":"served","status":%q,"error":null,"incomplete_details":%s,"output":[%s],"usage":%s}`,
		status, details, strings.Join(items, ","), responsesUsage)
}

// stream sends the items as the API streams them: each is added empty, grows by its deltas, and comes whole at its end.
func (s *responsesServer) stream(w http.ResponseWriter, r *http.Request, body map[string]any) {
	send := func(kind, data string) {
		text := "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + data + "}\n\n"
		if !s.bytewise {
			_, _ = io.WriteString(w, text)
			return
		}
		for i := range len(text) {
			_, _ = w.Write([]byte{text[i]})
			w.(http.Flusher).Flush()
		}
	}
	send("response.created", `"response":{"id":"resp_1","object":"response","model":"served","status":"in_progress","output":[]}`)
	items := s.output(body)
	for i, item := range items {
		streamItem(send, i, item)
		w.(http.Flusher).Flush()
		if s.stuck {
			<-r.Context().Done()
			return
		}
	}
	kind := "response.completed"
	if s.status != "" {
		kind = "response." + s.status
	}
	send(kind, `"response":`+s.whole(items))
}

func streamItem(send func(kind, data string), index int, item string) {
	var it map[string]any
	if err := json.Unmarshal([]byte(item), &it); err != nil {
		panic(err)
	}
	id := fmt.Sprintf(`"item_id":%q,"output_index":%d`, it["id"], index)
	begin := map[string]any{"type": it["type"], "id": it["id"], "status": "in_progress"}
	pieces := func(kind, more, text string) {
		for _, piece := range strings.SplitAfter(text, " ") {
			quoted, _ := json.Marshal(piece)
			send(kind, id+more+`,"delta":`+string(quoted))
		}
	}
	added := func() {
		raw, _ := json.Marshal(begin)
		send("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, raw))
	}
	switch it["type"] {
	case "function_call":
		begin["call_id"], begin["name"], begin["arguments"] = it["call_id"], it["name"], ""
		added()
		pieces("response.function_call_arguments.delta", "", it["arguments"].(string))
		send("response.function_call_arguments.done", id+fmt.Sprintf(`,"arguments":%q`, it["arguments"]))
	case "message":
		added()
		send("response.content_part.added", id+`,"content_index":0,"part":{"type":"output_text","text":""}`)
		pieces("response.output_text.delta", `,"content_index":0`, it["content"].([]any)[0].(map[string]any)["text"].(string))
	case "reasoning":
		begin["summary"] = []any{}
		added()
		for n, part := range it["summary"].([]any) {
			send("response.reasoning_summary_part.added", id+fmt.Sprintf(`,"summary_index":%d`, n))
			pieces("response.reasoning_summary_text.delta", fmt.Sprintf(`,"summary_index":%d`, n), part.(map[string]any)["text"].(string))
		}
	}
	send("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

// judgeResponses returns what the API says against a request; "" takes it.
func judgeResponses(body map[string]any) string {
	for name := range body {
		if !slices.Contains([]string{"model", "input", "tools", "tool_choice", "max_output_tokens", "store", "include", "stream"}, name) {
			return "Unknown parameter: '" + name + "'."
		}
	}
	if body["store"] != false || fmt.Sprint(body["include"]) != "[reasoning.encrypted_content]" {
		return "this test wants nothing stored and reasoning encrypted"
	}
	if n, ok := body["max_output_tokens"].(float64); ok && n < 16 {
		return "Invalid 'max_output_tokens': integer below minimum value"
	}
	tools, _ := body["tools"].([]any)
	for _, tool := range tools {
		t := tool.(map[string]any)
		if t["type"] != "function" || t["name"] == nil || t["parameters"] == nil {
			return "Missing required parameter: 'tools[0].name'."
		}
		if t["strict"] != false { // the default is strict, which this schema does not keep
			return "Invalid schema for function"
		}
	}
	return judgeItems(body["input"].([]any))
}

func judgeItems(items []any) string {
	open := map[string]bool{}
	for i, item := range items {
		it := item.(map[string]any)
		switch it["type"] {
		case "message":
			if !slices.Contains([]any{"developer", "system", "user", "assistant"}, it["role"]) || it["content"] == "" || it["content"] == nil {
				return "Invalid message"
			}
		case "function_call":
			id := it["call_id"].(string)
			if id == "" || len(id) > 64 || open[id] || !object(it["arguments"].(string)) {
				return "Invalid 'input': call_id or arguments of a call"
			}
			open[id] = true
		case "function_call_output":
			id := it["call_id"].(string)
			if !open[id] {
				return "No tool call found for function call output with call_id " + id + "."
			}
			delete(open, id)
		case "reasoning":
			next := ""
			if i+1 < len(items) {
				n := items[i+1].(map[string]any)
				next, _ = n["type"].(string)
				if next == "message" && n["role"] != "assistant" {
					next = "message of another"
				}
			}
			if !slices.Contains([]string{"message", "function_call", "reasoning"}, next) {
				return "Item 'rs' of type 'reasoning' was provided without its required following item."
			}
		default:
			return fmt.Sprintf("Invalid value: '%v'.", it["type"])
		}
	}
	if len(open) > 0 {
		return "No tool output found for function call"
	}
	return ""
}

const (
	sealedItem  = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"想 first"},{"type":"summary_text","text":"then"}],"encrypted_content":"gAAAA=="}`
	messageItem = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"好 well 🍷","annotations":[]}]}`
	callItem    = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"send_message","arguments":"{\"message\": \"你好 🍷\"}"}`
	secondItem  = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"f","arguments":"{}"}`
)

func allItems(body map[string]any) []string {
	if body["tools"] == nil {
		return []string{messageItem}
	}
	return []string{sealedItem, messageItem, callItem, secondItem}
}

// TestResponsesContract runs the contract of models over the Responses API.
func TestResponsesContract(t *testing.T) {
	for name, s := range map[string]func() *responsesServer{
		"stream":   func() *responsesServer { return &responsesServer{output: allItems} },
		"plain":    func() *responsesServer { return &responsesServer{output: allItems, plain: true} },
		"bytewise": func() *responsesServer { return &responsesServer{output: allItems, bytewise: true} },
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.Run(t, func(t *testing.T) modeltest.Subject {
				var opened atomic.Int64
				at := func(s *responsesServer) *Model {
					srv := httptest.NewUnstartedServer(s)
					srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
						if state == http.StateNew {
							opened.Add(1)
						}
					}
					srv.Start()
					t.Cleanup(srv.Close)
					m, err := New(Config{BaseURL: srv.URL, Model: "m", APIKey: "k", Images: true, API: APIResponses})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						_ = m.Close()
						if len(s.refusals) > 0 {
							t.Errorf("refused: %v", s.refusals)
						}
					})
					return m
				}
				stuck := s()
				stuck.stuck, stuck.plain = true, false
				return modeltest.Subject{Model: at(s()), Stuck: at(stuck), Connections: func() int { return int(opened.Load()) }}
			})
		})
	}
}

// TestResponsesBody has the items in their order, and what a chat has in other places.
func TestResponsesBody(t *testing.T) {
	req := worked()
	req.MaxTokens, req.Choice, req.Tools = 3, memgpt.ChoiceRequired, req.Tools[:1]
	req.Messages[2].Parts = memgpt.Parts{
		memgpt.Reasoning{Text: "x", Provider: "openai", Data: jsonRaw(sealedItem)}, memgpt.Text{Text: "so", Thought: true},
		memgpt.Call{ID: "call_f-1", Name: "f", Arguments: `{"a":1}`},
		memgpt.Call{ID: "call_g-2", Name: "g", Arguments: `{"a`},
		memgpt.Reasoning{Text: "of another", Provider: "anthropic", Data: jsonRaw(sealedItem)},
		memgpt.Reasoning{Text: "left alone", Provider: "openai", Data: jsonRaw(sealedItem)},
	}
	req.Messages[5].Parts = append(req.Messages[5].Parts, memgpt.Image{MIME: "image/gif", Data: []byte("GIF")})
	got := string(encodeResponses(req, "m", &Config{Images: true}, shape{responses: true, developer: true}))
	want := `{"model":"m","input":[
{"type":"message","role":"developer","content":"system"},
{"type":"message","role":"user","content":"hi"},
` + sealedItem + `,
{"type":"message","role":"assistant","content":"so"},
{"type":"function_call","call_id":"call_f-1","name":"f","arguments":"{\"a\":1}"},
{"type":"function_call","call_id":"call_g-2","name":"g","arguments":"{}"},
{"type":"function_call_output","call_id":"call_f-1","output":"one"},
{"type":"function_call_output","call_id":"call_g-2","output":"two"},
{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"},{"type":"input_image","image_url":"data:image/gif;base64,R0lG"}]}
],"tools":[{"type":"function","name":"f","description":"does","parameters":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":false}],"tool_choice":"required","max_output_tokens":16,"store":false,"include":["reasoning.encrypted_content"],"stream":true}`
	if diff := cmp.Diff(strings.ReplaceAll(want, "\n", ""), got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// TestResponsesSchema holds a reply to a schema as the API has it, beside what the user sets of the same field.
func TestResponsesSchema(t *testing.T) {
	req := ask("hi")
	req.Schema = jsonRaw(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	got := string(encodeResponses(req, "m", &Config{}, shape{responses: true}))
	if want := `"text":{"format":{"type":"json_schema","name":"reply","strict":false,"schema":{"type":"object","properties":{"a":{"type":"string"}}}}}`; strings.Count(got, want) != 1 || strings.Contains(got, "response_format") || !json.Valid([]byte(got)) {
		t.Errorf("body %s", got)
	}
	own := &Config{Extra: map[string]json.RawMessage{"text": jsonRaw(`{"verbosity":"low"}`)}}
	if got := string(encodeResponses(req, "m", own, shape{responses: true})); strings.Count(got, `"text":`) != 1 || !strings.Contains(got, `"verbosity":"low"`) || !strings.Contains(got, `"name":"reply"`) || !json.Valid([]byte(got)) {
		t.Errorf("body %s", got)
	}
}

// TestErrorsNameTheAPI: what a person reads names the API that was asked.
func TestErrorsNameTheAPI(t *testing.T) {
	for api, name := range map[string]string{APIChat: "chat completion", APIResponses: "responses"} {
		for kind, h := range map[string]http.HandlerFunc{
			"refusal": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			"page":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			"nothing": func(http.ResponseWriter, *http.Request) {},
			"words":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "so") },
			"error": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"error":{"message":"oops"}}`)
			},
			"half a stream": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: {\"type\":\"response.created\"}\n\n")
			},
		} {
			m := serve(t, h, Config{API: api})
			if _, err := m.Generate(t.Context(), ask("hi"), nil); err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%s, %s: %v", api, kind, err)
			}
		}
	}
}

// TestResponsesRoundTrip carries reasoning through the log's JSON and back, unchanged and in its place.
func TestResponsesRoundTrip(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := &responsesServer{output: allItems, plain: plain}
		m := serve(t, s, Config{Model: "gpt-5-pro", API: APIResponses})
		var h heard
		resp, err := m.Generate(t.Context(), worked(), h.add)
		if err != nil {
			t.Fatal(err)
		}
		h.same(t, resp)
		want := &memgpt.Response{Finish: memgpt.FinishCalls, Model: "served", Usage: memgpt.Usage{Calls: 1, Input: 100, Cached: 30, Output: 20, Reasoning: 12},
			Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: memgpt.Parts{
				memgpt.Reasoning{Text: "想 first\n\nthen", Provider: "openai", Data: jsonRaw(sealedItem)}, memgpt.Text{Text: "好 well 🍷"},
				memgpt.Call{ID: "call_1", Name: "send_message", Arguments: `{"message": "你好 🍷"}`}, memgpt.Call{ID: "call_2", Name: "f", Arguments: `{}`}}}}
		if diff := cmp.Diff(want, resp); diff != "" {
			t.Errorf("plain %v: response (-want +got):\n%s", plain, diff)
		}
		logged, err := json.Marshal(resp.Message)
		if err != nil {
			t.Fatal(err)
		}
		var back memgpt.Message
		if err := json.Unmarshal(logged, &back); err != nil {
			t.Fatal(err)
		}
		next := worked()
		next.Messages = append(next.Messages, back,
			memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "call_1", Text: "ok"}}},
			memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "call_2", Text: "ok"}}})
		if _, err := m.Generate(t.Context(), next, nil); err != nil {
			t.Fatal(err)
		}
		var item any
		if err := json.Unmarshal([]byte(sealedItem), &item); err != nil {
			t.Fatal(err)
		}
		input := s.bodies[1]["input"].([]any)
		at := slices.IndexFunc(input, func(i any) bool { return cmp.Equal(i, item) })
		if at < 0 || input[at+1].(map[string]any)["content"] != "好 well 🍷" || input[at+2].(map[string]any)["call_id"] != "call_1" {
			t.Errorf("plain %v: the reasoning is not back in its place: %v", plain, input)
		}
	}
}

// TestResponsesEnds has answers that do not simply end.
func TestResponsesEnds(t *testing.T) {
	ev := func(kind, more string) string { return `{"type":"` + kind + `",` + more + `}` }
	failed := func(code, message string) string {
		return stream(ev("response.failed", `"response":{"object":"response","status":"failed","error":{"code":"`+code+`","message":"`+message+`"},"output":[]}`))
	}
	text := ev("response.output_text.delta", `"output_index":0,"delta":"abc"`)
	for _, test := range []struct {
		name, body string
		said       string
		finish     memgpt.Finish
		code       memgpt.Code
		started    bool
	}{
		{name: "cut by length", body: stream(text, ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`)), said: "abc", finish: memgpt.FinishLength},
		{name: "filtered", body: stream(text, ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`)), said: "abc", finish: memgpt.FinishFilter},
		{name: "incomplete, nobody says why", body: stream(text, ev("response.incomplete", `"response":{"status":"incomplete"}`)), said: "abc", finish: memgpt.FinishLength},
		{name: "text in the last event alone", body: stream(ev("response.completed", `"response":{"status":"completed","output":[`+messageItem+`]}`)), said: "好 well 🍷", finish: memgpt.FinishStop},
		{name: "refusal", body: stream(ev("response.refusal.delta", `"output_index":0,"delta":"no"`), ev("response.completed", `"response":{"status":"completed"}`)), said: "no", finish: memgpt.FinishStop},
		{name: "events without places", body: stream(ev("response.output_item.added", `"item":{"type":"message","id":"a"}`), ev("response.output_text.delta", `"item_id":"a","delta":"one"`), ev("response.completed", `"response":{"status":"completed","output":[{"type":"message","id":"a","content":[{"text":"one"}]}]}`)), said: "one", finish: memgpt.FinishStop},
		{name: "arguments before their call", body: stream(ev("response.function_call_arguments.delta", `"output_index":0,"delta":"{\"message\":"`), ev("response.output_item.added", `"output_index":0,"item":`+strings.Replace(callItem, `{\"message\": \"你好 🍷\"}`, "", 1)),
			ev("response.function_call_arguments.delta", `"output_index":0,"delta":"\"hi\"}"`), ev("response.completed", `"response":{"status":"completed"}`)), said: "hi", finish: memgpt.FinishCalls},
		{name: "server error", body: failed("server_error", "oops"), code: memgpt.CodeModelDown},
		{name: "rate limit", body: failed("rate_limit_exceeded", "slow down"), code: memgpt.CodeModelLimit},
		{name: "bad prompt", body: failed("invalid_prompt", "no"), code: memgpt.CodeModelRequest},
		{name: "overflow", body: failed("context_length_exceeded", "too long"), code: memgpt.CodeModelOverflow},
		{name: "failed without words", body: stream(ev("response.failed", `"response":{"status":"failed"}`)), code: memgpt.CodeModelDown},
		{name: "error event", body: stream(text, ev("error", `"code":"server_error","message":"oops","param":null`)), code: memgpt.CodeModelDown, started: true},
		{name: "broke off", body: stream(text), code: memgpt.CodeModelDown, started: true},
		{name: "nothing", body: stream(ev("response.completed", `"response":{"status":"completed","output":[]}`)), code: memgpt.CodeModelEmpty},
		{name: "a chat's answer", body: `{"object":"chat.completion","choices":[{"message":{"content":"x"}}]}`, code: memgpt.CodeModelDown},
		{name: "error in one piece", body: `{"error":{"message":"oops","code":"server_error"}}`, code: memgpt.CodeModelDown},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", contentType(test.body))
				if strings.HasPrefix(test.body, "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				_, _ = io.WriteString(w, test.body)
			}), Config{API: APIResponses})
			var h heard
			resp, err := m.Generate(t.Context(), ask("hi"), h.add)
			if test.code != "" {
				e, ok := err.(*memgpt.Error)
				if !ok || e.Code != test.code || e.Started != test.started {
					t.Errorf("%+v, %v; want %s", resp, err, test.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			h.same(t, resp)
			if resp.Message.Said() != test.said || resp.Finish != test.finish {
				t.Errorf("said %q, finish %q", resp.Message.Said(), resp.Finish)
			}
		})
	}
}

// TestResponsesCutCall keeps what came of a call that the length cut off, and says that it did.
func TestResponsesCutCall(t *testing.T) {
	cut := `{"id":"fc_1","type":"function_call","status":"incomplete","call_id":"call_1","name":"send_message","arguments":"{\"message\": \"he"}`
	for _, plain := range []bool{false, true} {
		s := &responsesServer{output: func(map[string]any) []string { return []string{cut} }, status: "incomplete", details: "max_output_tokens", plain: plain}
		m := serve(t, s, Config{API: APIResponses})
		resp, err := m.Generate(t.Context(), worked(), nil)
		if err != nil || resp.Finish != memgpt.FinishLength || len(resp.Message.Calls()) != 1 || resp.Message.Calls()[0].Arguments != `{"message": "he` {
			t.Errorf("plain %v: %+v, %v", plain, resp, err)
		}
	}
}

// TestResponsesLearns has refusals that teach the API itself and its fields.
func TestResponsesLearns(t *testing.T) {
	s := &responsesServer{output: allItems}
	both := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, oai("This model is only supported in v1/responses and not in v1/chat/completions."))
			return
		}
		s.ServeHTTP(w, r)
	}
	for api, posts := range map[string]int{"": 2, APIChat: 0} {
		s.bodies = nil
		m := serve(t, http.HandlerFunc(both), Config{Model: "new-pro", API: api})
		for range 2 {
			if _, err := m.Generate(t.Context(), worked(), nil); (err == nil) != (api == "") {
				t.Errorf("API %q: %v", api, err)
			}
		}
		if len(s.bodies) != posts {
			t.Errorf("API %q: %d requests to the other API", api, len(s.bodies))
		}
	}
	for name, test := range map[string]struct {
		refusal string
		bad     func(string) bool
	}{
		"encrypted": {oai("Encrypted content is not supported with this model."), contains(`"include"`)},
		"seal":      {`{"error":{"message":"The encrypted content gAAAA could not be verified.","code":"invalid_encrypted_content"}}`, contains(`gAAAA`)},
		"bound":     {oai("Unsupported parameter: 'max_output_tokens'"), contains(`max_output_tokens`)},
	} {
		any := &responsesServer{output: allItems}
		h := refusing(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, any.whole([]string{messageItem}))
		}), 400, test.refusal, test.bad)
		m := serve(t, h, Config{API: APIResponses})
		for range 2 {
			req := worked()
			req.Messages[2].Parts = append(memgpt.Parts{memgpt.Reasoning{Provider: "openai", Data: jsonRaw(sealedItem)}}, req.Messages[2].Parts...)
			if _, err := m.Generate(t.Context(), req, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if h.posts.Load() != 3 {
			t.Errorf("%s: %d requests for two calls, want 3", name, h.posts.Load())
		}
	}
}

// TestResponsesByModel has the profile choose the API.
func TestResponsesByModel(t *testing.T) {
	m, err := New(Config{BaseURL: "https://api.openai.com/v1"})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]bool{"gpt-5-pro": true, "gpt-5.1-codex-max": true, "o3-pro-2025-06-10": true, "gpt-5": false, "gpt-4.1-mini": false} {
		if got := m.shape(model).responses; got != want {
			t.Errorf("%s: Responses API %v", model, got)
		}
	}
}

func FuzzResponses(f *testing.F) {
	s := &responsesServer{output: allItems}
	for _, items := range [][]string{{messageItem}, {sealedItem, messageItem, callItem, secondItem}} {
		rec := httptest.NewRecorder()
		s.output = func(map[string]any) []string { return items }
		s.stream(rec, nil, nil)
		f.Add(rec.Body.Bytes(), true)
		f.Add([]byte(s.whole(items)), false)
	}
	f.Add([]byte(stream(`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}`, `{"type":"response.completed","response":{}}`)), true)
	m, err := New(Config{BaseURL: "http://x", NewID: ids(), API: APIResponses})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, sse bool) {
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}
		if sse {
			resp.Header.Set("Content-Type", "text/event-stream")
		}
		w := wire.NewWatch(t.Context(), wire.Limits{First: soon, Idle: soon, Whole: soon, Filler: filler})
		defer w.Stop()
		var h heard
		r := newReply(h.add, m.cfg.NewID, "m", 0)
		r.items = &responseItems{}
		got, fault := m.read(w, resp, r)
		if fault != nil {
			if fault.err.Code == "" || fault.err.Error() != memgpt.CleanText(fault.err.Error()) {
				t.Errorf("error %#v", fault.err)
			}
			return
		}
		text, thinking := textAndThinking(got)
		if len(h.text) != len(text) || len(h.reasoning) != len(thinking) || !slices.Equal(h.calls, got.Message.Calls()) {
			t.Errorf("streamed %+v\nresponse %+v", h, got)
		}
		if text != memgpt.CleanText(text) || thinking != memgpt.CleanText(thinking) {
			t.Errorf("unclean text %q %q", text, thinking)
		}
		encodeResponses(&memgpt.Request{Messages: []memgpt.Message{got.Message}}, "m", &m.cfg, shape{responses: true})
	})
}
