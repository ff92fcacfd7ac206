package memgpt_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/offline"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store/sqlite"
	"memgpt/token"
	"memgpt/tool"
)

// An agent embedded in a program. Errors are left out here: each of these calls returns one that says what to do.
func Example() {
	ctx, dir := context.Background(), tempDir()
	defer func() { _ = os.RemoveAll(dir) }()

	newID := kernel.NewIDs(rand.Reader, time.Now)
	st, _ := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "memgpt.db")})
	search, _ := retrieve.New(retrieve.Config{Index: st, Store: st})
	count, _ := token.New(token.Config{})
	model, _ := offline.New(offline.Config{}) // or openai.New(openai.Config{BaseURL: …})
	k, _ := kernel.New(kernel.Config{
		Store: st, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count, System: memtool.System, NewID: newID,
		Model: func(memgpt.Agent) (memgpt.Model, error) { return model, nil },
	})
	h, _ := host.New(host.Config{Store: st, Kernel: k, NewID: newID})
	agent, _ := h.Agent(ctx, "", "default", host.AgentTemplate{})
	thread, _ := h.Thread(ctx, agent, host.MainThread)
	for _, text := range []string{"My name is Ada.", "What is my name?"} {
		turn, _ := h.Send(ctx, host.Message{Agent: agent.ID, Thread: thread.ID, Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
		_, _ = turn.Wait(ctx)
		fmt.Println(turn.Said()[0])
	}
	_ = h.Close(ctx)
	_ = st.Close()
	// Output:
	// Got it, I'll remember: your name is Ada.
	// Your name is Ada.
}

// A Go function as a tool: its arguments are a struct, and the model sees their schema.
func Example_tool() {
	dir := tempDir()
	defer func() { _ = os.RemoveAll(dir) }()

	type query struct {
		City string `json:"city" jsonschema:"name of the city"`
	}
	weather, err := memtool.New("weather", "tells the weather of a city", memgpt.EffectRead,
		func(_ context.Context, q query) (string, error) { return "sunny in " + q.City, nil })
	if err != nil {
		log.Fatal(err)
	}
	model := script.Of(
		script.Call("weather", "city", "Lima", "request_heartbeat", true),
		script.Say("It is sunny in Lima."))
	fmt.Println(ask(dir, model, weather, "How is the weather in Lima?"))
	// Output:
	// It is sunny in Lima.
}

// ask runs one message through a new agent.
func ask(dir string, model memgpt.Model, t tool.Tool, text string) string {
	ctx := context.Background()
	newID := kernel.NewIDs(rand.Reader, time.Now)
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "memgpt.db")})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	search, _ := retrieve.New(retrieve.Config{Index: st, Store: st})
	count, _ := token.New(token.Config{})
	k, err := kernel.New(kernel.Config{Store: st, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count,
		Model:  func(memgpt.Agent) (memgpt.Model, error) { return model, nil },
		System: memtool.System, Tools: []tool.Tool{t}, NewID: newID})
	if err != nil {
		log.Fatal(err)
	}
	h, _ := host.New(host.Config{Store: st, Kernel: k, NewID: newID})
	defer func() { _ = h.Close(ctx) }()
	agent, _ := h.Agent(ctx, "", "default", host.AgentTemplate{})
	thread, _ := h.Thread(ctx, agent, host.MainThread)
	turn, _ := h.Send(ctx, host.Message{Agent: agent.ID, Thread: thread.ID,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
	_, _ = turn.Wait(ctx)
	return turn.Said()[0]
}

func tempDir() string {
	dir, err := os.MkdirTemp("", "memgpt")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}
