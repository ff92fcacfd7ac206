package eval

import (
	_ "embed" // the notes
	"strings"
)

//go:embed prompts/notes.txt
var notesText string

// Notes returns what the figures of a suite don't say: where its procedure differs from the paper's, and why, and what its
// data can't show. nil where there is nothing to say.
func Notes(suite string) (list []string) {
	inside := false
	for line := range strings.Lines(notesText) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# "); ok {
			inside = name == suite
		} else if inside && line != "" {
			list = append(list, line)
		}
	}
	return list
}
