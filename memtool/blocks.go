package memtool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"memgpt"
)

type appendArgs struct {
	Label   string `json:"label" jsonschema:"of the block"`
	Content string `json:"content"`
}

type replaceAllArgs struct {
	Label string `json:"label"`
	Old   string `json:"old_content" jsonschema:"exact text"`
	New   string `json:"new_content" jsonschema:"empty deletes"`
}

type insertArgs struct {
	Label string `json:"label"`
	New   string `json:"new_string"`
	Line  *int   `json:"insert_line,omitempty" jsonschema:"lines above it; 0 = top, -1 = end (default)"`
}

type replaceArgs struct {
	Label string `json:"label"`
	Old   string `json:"old_string" jsonschema:"exact text, found once"`
	New   string `json:"new_string"`
}

type rethinkArgs struct {
	Label string `json:"label"`
	New   string `json:"new_memory"`
}

func blockFunctions() []definition {
	return []definition{
		define(definition{
			name: "core_memory_append", effect: memgpt.EffectMemory,
			full:    "Add a line to a memory block.",
			aliases: aliases("content", "text", "value", "new_content", "new_string", "memory"),
		}, appendBlock),
		define(definition{
			name: "core_memory_replace", effect: memgpt.EffectMemory,
			full:    "Replace a text everywhere in a block.",
			aliases: both(aliases("old_content", oldNames...), aliases("new_content", newNames...)),
		}, replaceAll),
		define(definition{
			name: "memory_insert", effect: memgpt.EffectMemory,
			full:    "Insert lines in a block.",
			aliases: both(aliases("new_string", newNames...), aliases("insert_line", "line", "line_number", "insert_at")),
		}, insertLine),
		define(definition{
			name: "memory_replace", effect: memgpt.EffectMemory,
			full:    "Replace a text that a block holds once.",
			aliases: both(aliases("old_string", oldNames...), aliases("new_string", newNames...)),
		}, replaceOnce),
		define(definition{
			name: "memory_rethink", effect: memgpt.EffectMemory, rewrites: true,
			full:    "Rewrite a whole block.",
			aliases: aliases("new_memory", newNames...),
		}, rethink),
	}
}

// Spellings of the text to be replaced and of what replaces it, beside those of the schemas.
var (
	oldNames = []string{"old_content", "old_string", "old_str", "old_text", "old_memory", "old"}
	newNames = []string{"new_content", "new_string", "new_str", "new_text", "new_memory", "new", "content", "text", "value"}
)

// aliases maps other names of a block function's argument, and of the label, to those of its schema.
func aliases(argument string, names ...string) map[string]string {
	m := map[string]string{"name": "label", "block": "label", "block_label": "label", "section": "label"}
	for _, n := range names {
		if n != argument {
			m[n] = argument
		}
	}
	return m
}

func both(a, b map[string]string) map[string]string {
	for k, v := range b {
		a[k] = v
	}
	return a
}

func appendBlock(_ context.Context, c call, args appendArgs) (string, error) {
	if strings.TrimSpace(args.Content) == "" {
		return "", errors.New("content is empty: write the line that the block should get")
	}
	return edit(c, args.Label, func(b memgpt.Block) (string, error) {
		if b.Value == "" {
			return args.Content, nil
		}
		return b.Value + "\n" + args.Content, nil
	})
}

func replaceAll(_ context.Context, c call, args replaceAllArgs) (string, error) {
	if args.Old == "" {
		return "", emptyOld("old_content")
	}
	return edit(c, args.Label, func(b memgpt.Block) (string, error) {
		old, new := unquoted(b.Value, args.Old, args.New)
		if !strings.Contains(b.Value, old) {
			return "", absent("old_content", args.Old, b)
		}
		return strings.ReplaceAll(b.Value, old, new), nil
	})
}

func replaceOnce(_ context.Context, c call, args replaceArgs) (string, error) {
	if args.Old == "" {
		return "", emptyOld("old_string")
	}
	return edit(c, args.Label, func(b memgpt.Block) (string, error) {
		old, new := unquoted(b.Value, args.Old, args.New)
		lines := occurrences(b.Value, old)
		switch len(lines) {
		case 0:
			return "", absent("old_string", args.Old, b)
		case 1:
			return strings.Replace(b.Value, old, new, 1), nil
		}
		return "", fmt.Errorf("old_string occurs %d times in block %q, in lines %s (counted from 0): "+
			"copy more of the text around the one you mean, or change all with core_memory_replace",
			len(lines), b.Label, numbers(lines))
	})
}

func insertLine(_ context.Context, c call, args insertArgs) (string, error) {
	if args.New == "" {
		return "", errors.New("new_string is empty: write the lines that the block should get")
	}
	return edit(c, args.Label, func(b memgpt.Block) (string, error) {
		var lines []string
		if b.Value != "" {
			lines = strings.Split(b.Value, "\n")
		}
		at := len(lines)
		if args.Line != nil && *args.Line != -1 {
			at = *args.Line
		}
		if at < 0 || at > len(lines) {
			return "", fmt.Errorf("insert_line is %d, but block %q has %s: use 0 (before the first line) to %d (after the last), or -1 for the end",
				at, b.Label, count(len(lines), "line"), len(lines))
		}
		all := append(append(append([]string(nil), lines[:at]...), args.New), lines[at:]...)
		return strings.Join(all, "\n"), nil
	})
}

func rethink(_ context.Context, c call, args rethinkArgs) (string, error) {
	return edit(c, args.Label, func(memgpt.Block) (string, error) { return args.New, nil })
}

// edit changes a block and says how full it is. Nothing is set before everything is checked.
func edit(c call, label string, change func(b memgpt.Block) (string, error)) (string, error) {
	b, err := c.Block(label)
	if err != nil {
		return "", err
	}
	if b.ReadOnly {
		return "", fmt.Errorf("block %q is read-only and cannot be edited: use another block, or archival_memory_insert", b.Label)
	}
	value, err := change(b)
	if err != nil {
		return "", err
	}
	if value == b.Value {
		return fmt.Sprintf("Block %q is unchanged: %s characters.", b.Label, use(b)), nil
	}
	if err := fits(b, value); err != nil {
		return "", err
	}
	b, err = c.SetBlock(b.Label, value)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Block %q updated: %s characters.", b.Label, use(b)), nil
}

// fits allows every value within the limit, and over it those that make the block shorter: after a limit was lowered, a
// block must not be stuck.
func fits(b memgpt.Block, value string) error {
	used, now := memgpt.Runes(value), memgpt.Runes(b.Value)
	if b.Limit <= 0 || used <= b.Limit || used < now {
		return nil
	}
	return fmt.Errorf("block %q would have %s characters, and its limit is %s (it has %s now); nothing was changed: "+
		"shorten it with core_memory_replace or memory_rethink, or move what is less important to archival_memory_insert, then try again",
		b.Label, thousands(used), thousands(b.Limit), thousands(now))
}

func use(b memgpt.Block) string {
	return thousands(memgpt.Runes(b.Value)) + "/" + thousands(b.Limit)
}

func emptyOld(argument string) error {
	return fmt.Errorf("%s is empty: give the exact text to be replaced, or add text with core_memory_append", argument)
}

// absent says that a text isn't there, and what comes nearest.
func absent(argument, old string, b memgpt.Block) error {
	if b.Value == "" {
		return fmt.Errorf("%s is not in block %q, which is empty: add text with core_memory_append", argument, b.Label)
	}
	return fmt.Errorf("%s is not in block %q. The closest line is %s: copy the text to be replaced exactly from the block",
		argument, b.Label, quote(shorten(closestLine(b.Value, old), 200)))
}

// unquoted returns the texts as they are to be used on value. Where the old text is found only with &lt; read as <, the
// model copied it from the prompt, in which tags inside of blocks are written so; then both texts are read that way.
func unquoted(value, old, new string) (string, string) {
	plain := strings.ReplaceAll(old, "&lt;", "<")
	if strings.Contains(value, old) || !strings.Contains(value, plain) {
		return old, new
	}
	return plain, strings.ReplaceAll(new, "&lt;", "<")
}

// occurrences returns the line, from 0, of every occurrence of text in value, overlapping ones too.
func occurrences(value, text string) []int {
	var lines []int
	line, from := 0, 0
	for {
		i := strings.Index(value[from:], text)
		if i < 0 {
			return lines
		}
		line += strings.Count(value[from:from+i], "\n")
		lines = append(lines, line)
		if value[from+i] == '\n' {
			line++
		}
		from += i + 1
	}
}

// numbers lists the first ten of the numbers.
func numbers(list []int) string {
	var words []string
	for _, n := range list[:min(len(list), 10)] {
		words = append(words, strconv.Itoa(n))
	}
	if len(list) > 10 {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}
