package modeltest_test

import (
	"testing"

	"memgpt"
	"memgpt/model/modeltest"
	"memgpt/model/script"
)

func TestScript(t *testing.T) {
	modeltest.Run(t, func(*testing.T) modeltest.Subject {
		return modeltest.Subject{
			Model: script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
				if len(req.Tools) == 0 {
					return script.Text("只有文字 🍷")
				}
				return script.Calls(script.Think("想"), script.Text("好"), script.Say("你好🍷"), script.Call("f"))
			}}),
			Stuck: script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply {
				return script.Text("x").Held(script.NewGate())
			}}),
		}
	})
}
