package behaviour

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/script"
)

// TestNoLanguageIsAdded has the same conversation in French and in Chinese, with summaries in its language. What the system
// adds of its own is the same in both, whatever is said: fixed marks, and nothing in another language that was not asked for.
func TestNoLanguageIsAdded(t *testing.T) {
	t.Parallel()
	french := skeletonOf(t, "Bonjour, je parle français et j'aime le thé à la menthe", "D'accord, c'est noté", "Nous avons parlé du thé à la menthe")
	chinese := skeletonOf(t, "你好，我说中文，我喜欢喝薄荷茶，也喜欢慢慢地散步", "好的，我记住了你说的话", "我们谈过薄荷茶")
	if d := cmp.Diff(french, chinese); d != "" {
		t.Errorf("what the system says depends on the language (-French +Chinese):\n%s", d)
	}
}

var (
	digits = regexp.MustCompile(`\d[\d.,:T+Z-]*`)
	// searchFor is the one line that the system adds to a summary that has none: a fixed mark, and words that were said.
	searchFor = regexp.MustCompile(`\\nSearch for: ([^"]*)`)
)

// skeletonOf talks until a summary was written, and returns what a request then has beside the texts of user and model, with
// numbers and dates taken out. It wants what was said and the summary in the request as they are.
func skeletonOf(t *testing.T, asks, says, summary string) (lines []string) {
	t.Helper()
	m := script.New(script.Config{
		Func:    func(int, *memgpt.Request) script.Reply { return script.Say(says) },
		Summary: func(*memgpt.Request) script.Reply { return script.Text(summary) }})
	a := newHome(t, 8192).newAgent(t, m, "")
	folded := false
	a.emit = func(u memgpt.Update) {
		f, ok := u.(memgpt.Flushed)
		folded = folded || ok && f.Failed == ""
	}
	const repeats = 60
	long := strings.Repeat(asks+" ", repeats)
	for n := 0; n < 100 && !folded; n++ {
		turn := a.say(long)
		if got := a.effects(&turn, a.log()); len(got.Said) != n+1 || got.Said[n] != says {
			t.Fatalf("turn %d: %q", n, got.Said)
		}
	}
	a.say(asks)
	list := m.Last().Messages
	whole := ""
	seen := map[string]bool{}
	for i := range list[1:] { // the first is the system's instructions
		m := &list[1+i]
		text := m.Said() + m.Thoughts()
		if r, ok := m.Result(); ok {
			text = r.Text
		}
		whole += text
		for _, line := range searchFor.FindAllStringSubmatch(text, -1) {
			for _, word := range strings.Split(line[1], ", ") {
				if !strings.Contains(asks+says, word) {
					t.Errorf("the summary names %q, which nobody said", word)
				}
			}
		}
		text = searchFor.ReplaceAllString(text, "")
		for _, said := range []string{asks, says, summary} {
			text = strings.ReplaceAll(text, said, "%")
		}
		text = strings.TrimSpace(digits.ReplaceAllString(strings.ReplaceAll(text, "% ", ""), "#"))
		if !seen[text] { // how many messages are left depends on their length
			lines = append(lines, fmt.Sprintf("%s: %s", m.Role, text))
			seen[text] = true
		}
	}
	if !folded || !strings.Contains(whole, summary) || !strings.Contains(whole, asks) {
		t.Fatalf("folded %v; the summary or what was said is not in the request: %.500s", folded, whole)
	}
	return lines
}
