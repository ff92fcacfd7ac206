package openai

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"memgpt"
	"memgpt/model/modeltest"
	"memgpt/model/script"
)

// TestContract runs the contract against servers of all manners.
func TestContract(t *testing.T) {
	for name, cfg := range map[string]script.ServerConfig{
		"stream":    {},
		"plain":     {Plain: true},
		"strict":    {Strict: true},
		"no stream": {Strict: true, Refuse: []string{"stream"}},
		"bytewise":  {Bytewise: true, Keepalive: true},
		"llama":     {Style: script.StyleLlama},
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.Run(t, func(t *testing.T) modeltest.Subject { return subject(t, cfg) })
		})
	}
}

func subject(t *testing.T, cfg script.ServerConfig) modeltest.Subject {
	cfg.Func = func(_ int, req *memgpt.Request) script.Reply {
		if len(req.Tools) == 0 {
			return script.Text("只有文字 🍷")
		}
		return script.Calls(script.Think("想"), script.Text("好"), script.Say("你好🍷"), script.Call("f"))
	}
	var opened atomic.Int64
	count := func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	at := func(c script.ServerConfig) *Model {
		srv := httptest.NewUnstartedServer(script.NewServer(c))
		srv.Config.ConnState = count
		srv.Start()
		t.Cleanup(srv.Close)
		m, err := New(Config{BaseURL: srv.URL, Model: "m", APIKey: "k", Images: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	stuck := cfg
	stuck.Func = func(int, *memgpt.Request) script.Reply { return script.Text("x").Held(script.NewGate()) }
	return modeltest.Subject{Model: at(cfg), Stuck: at(stuck), Connections: func() int { return int(opened.Load()) }}
}
