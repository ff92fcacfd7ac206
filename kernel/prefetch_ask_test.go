package kernel

import (
	"os"
	"strings"
	"testing"
)

// askedLines reads a list of messages, one a line, as two halves: the first was looked at when the words were chosen, the
// second is held back.
func askedLines(t *testing.T, name string) (halves [2][]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		halves[i%2] = append(halves[i%2], line)
	}
	return halves
}

// TestPrefetchTellsSmallTalkFromQuestions holds what share of two lists is told apart: at least 95 % of greetings, thanks
// and commands are silent, and at least 90 % of what leans on memory is looked up, in each half.
func TestPrefetchTellsSmallTalkFromQuestions(t *testing.T) {
	for _, list := range []struct {
		file   string
		silent bool
		least  float64
		lines  int
	}{{"prefetch_silent.txt", true, .95, 200}, {"prefetch_look.txt", false, .90, 100}} {
		for half, lines := range askedLines(t, list.file) {
			right := 0
			for _, line := range lines {
				if got := prefetchSilence(line) != ""; got == list.silent {
					right++
				} else if half == 0 || testing.Verbose() && os.Getenv("HELD") != "" {
					t.Logf("%s: %q is taken for %q", list.file, line, prefetchSilence(line))
				}
			}
			share := float64(right) / float64(len(lines))
			t.Logf("%s, half %d: %.1f %% of %d", list.file, half, 100*share, len(lines))
			if share < list.least || len(lines) != list.lines/2 {
				t.Errorf("%s, half %d: %.1f %% of %d are right, want %.0f %% of %d", list.file, half, 100*share, len(lines), 100*list.least, list.lines/2)
			}
		}
	}
}
