package wire

import (
	"fmt"
	"strings"

	"memgpt"
)

// PartText returns a text, or the words that stand for a part which is not shown; unseen says why an image is not. "" is
// for those with a place of their own on the wire.
func PartText(p memgpt.Part, unseen string) string {
	switch p := p.(type) {
	case memgpt.Text:
		return p.Text
	case memgpt.Image:
		return fmt.Sprintf("[image %s: not shown, %s]", describe("", p.MIME, p.URL, len(p.Data)), unseen)
	case memgpt.File:
		return fmt.Sprintf("[file %s: its contents are not shown]", describe(p.Name, p.MIME, p.URL, len(p.Data)))
	case memgpt.Unknown:
		return fmt.Sprintf("[a part of kind %q: not shown]", p.Kind)
	}
	return ""
}

func describe(name, mime, url string, size int) string {
	var words []string
	for _, w := range []string{name, mime} {
		if w != "" {
			words = append(words, w)
		}
	}
	if url != "" && !strings.HasPrefix(url, "data:") {
		words = append(words, url)
	}
	if size > 0 {
		words = append(words, fmt.Sprintf("%d bytes", size))
	}
	return strings.Join(words, ", ")
}
