package kernel

import "strings"

// prefetchSilence returns why nothing is looked up for a message of a user; "" where it may lean on what is stored.
func prefetchSilence(text string) string {
	if strings.TrimSpace(text) == "" {
		return "no words"
	}
	return ""
}
