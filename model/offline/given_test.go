package offline

import (
	"strings"
	"testing"

	"memgpt"
)

// fromPrompt asks for an answer from a prompt that has its material in its system text, and no functions.
func fromPrompt(t *testing.T, system, question string) string {
	t.Helper()
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Generate(t.Context(), &memgpt.Request{Choice: memgpt.ChoiceNone, Messages: []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, system), memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, question)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Message.Said()
}

func TestAnswersFromThePromptItself(t *testing.T) {
	const system = "Answer from the material.\n<context>\n[2023-05-08] Ana: I planted a plum tree behind the shed.\n[undated] user: My boat is called Wagtail.\n" +
		"[2023-06-01] 小林: 我把钥匙放在红色的盒子里。\nk1a9-0001: k1a9-0002\nk1a9-0002: k1a9-0003\n</context>\nIt is now 2024-01-01."
	for question, want := range map[string]string{
		"What did Ana plant behind the shed?":          "On 2023-05-08 Ana said: “I planted a plum tree",
		"What is my boat called?":                      "Wagtail",
		"小林把钥匙放在哪里？":                                   "红色的盒子",
		"What is the final value of the key k1a9-0001": "k1a9-0003",
		"Who mended the gramophone?":                   nothingEnglish,
	} {
		if got := fromPrompt(t, system, question); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", question, got, want)
		}
	}
	blocks := system + "\n<memory_blocks>\n<block label=\"human\" chars=\"0/2000\">\n</block>\n</memory_blocks>"
	if got := fromPrompt(t, blocks, "What did Ana plant behind the shed?"); !strings.Contains(got, nothingEnglish) {
		t.Errorf("a prompt with working context was read as material: %q", got)
	}
}
