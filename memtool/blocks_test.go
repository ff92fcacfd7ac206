package memtool

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"memgpt"
)

func TestAppend(t *testing.T) {
	f := newFake()
	if got, want := f.ok(t, "core_memory_append", `{"label":"human","content":"Age: 30"}`), `Block "human" updated: 41/2,000 characters.`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.holds(t, "human", "Name: Lin\nCity: Hangzhou\nPet: cat\nAge: 30")
	f.ok(t, "core_memory_append", `{"name":"persona","text":"I am 小林."}`)
	f.holds(t, "persona", "I am 小林.")
	f.fails(t, "core_memory_append", `{"label":"human","content":" \n "}`, "content is empty")
	f.fails(t, "core_memory_append", `{"label":"user","content":"x"}`, "human", "persona", "rules")
	f.fails(t, "core_memory_append", `{"label":"rules","content":"x"}`, "read-only", "archival_memory_insert")
	f.setErr = errors.New("someone else changed it")
	f.fails(t, "core_memory_append", `{"label":"human","content":"x"}`, "someone else changed it")
}

func TestReplaceAll(t *testing.T) {
	f := newFake()
	f.blocks[0].Value = "a cat and a cat"
	f.ok(t, "core_memory_replace", `{"label":"human","old_content":"cat","new_content":"dog","request_heartbeat":true}`)
	f.holds(t, "human", "a dog and a dog")
	f.ok(t, "core_memory_replace", `{"section":"human","old_str":" and a dog","new_str":""}`)
	f.holds(t, "human", "a dog")
	f.fails(t, "core_memory_replace", `{"label":"human","old_content":"","new_content":"Z"}`, "old_content is empty", "core_memory_append")
	f.fails(t, "core_memory_replace", `{"label":"human","old_content":"x"}`, "new_content")
	f.fails(t, "core_memory_replace", `{"label":"persona","old_content":"x","new_content":"y"}`, "is empty", "core_memory_append")
	f.blocks[0].Value = "Name: Lin\nCity: Hang\"zhou\nPet: cat"
	f.fails(t, "core_memory_replace", `{"label":"human","old_content":"city hangzou","new_content":"y"}`, `line is "City: Hang\"zhou"`, "copy", "exactly")
	f.blocks[0].Value = "abc xy\nRED CAR"
	f.fails(t, "core_memory_replace", `{"label":"human","old_content":"red car x","new_content":"y"}`, `line is "RED CAR"`)
	f.blocks[0].Value = strings.Repeat("长", 1000)
	f.fails(t, "core_memory_replace", `{"label":"human","old_content":"短","new_content":"y"}`, strings.Repeat("长", 200)+`…"`)
	if got := f.ok(t, "core_memory_replace", `{"label":"human","old_content":"长","new_content":"长"}`); !strings.Contains(got, "unchanged") {
		t.Error(got)
	}
}

func TestReplaceOnce(t *testing.T) {
	f := newFake()
	f.ok(t, "memory_replace", `{"label":"human","old_string":"cat","new_string":"dog"}`)
	f.holds(t, "human", "Name: Lin\nCity: Hangzhou\nPet: dog")
	f.fails(t, "memory_replace", `{"label":"human","old_string":"","new_string":"x"}`, "old_string is empty")
	f.fails(t, "memory_replace", `{"label":"human","old_string":"Pet: cow","new_string":"x"}`, `"Pet: dog"`, "exactly")
	f.fails(t, "memory_replace", `{"label":"human","old_string":": ","new_string":"x"}`, "3 times", "lines 0, 1, 2", "core_memory_replace")
	f.fails(t, "memory_replace", `{"label":"human","old_string":"\n","new_string":"x"}`, "2 times", "lines 0, 1 ")
	f.blocks[0].Value = "aaa"
	f.fails(t, "memory_replace", `{"label":"human","old_string":"aa","new_string":"x"}`, "2 times", "lines 0, 0")
	f.blocks[0].Value = strings.Repeat("x\n", 50)
	f.fails(t, "memory_replace", `{"label":"human","old_string":"x","new_string":"y"}`, "50 times", "8, 9, …")
	f.blocks[0].Value = "1 < 2"
	f.ok(t, "memory_replace", `{"label":"human","old_string":"1 < 2","new_string":"&lt;"}`)
	f.holds(t, "human", "&lt;") // written as it is where nothing had to be unescaped
}

// Tags inside of a block are shown with &lt; and the model copies that.
func TestUnescape(t *testing.T) {
	for _, fn := range []string{"core_memory_replace", "memory_replace"} {
		f := newFake()
		f.blocks[0].Value = "see </block> here"
		f.ok(t, fn, `{"label":"human","old_content":"see &lt;/block>","new_content":"saw &lt;/block>"}`)
		f.holds(t, "human", "saw </block> here")
		f.blocks[0].Value = "literal &lt; and <"
		f.ok(t, fn, `{"label":"human","old_content":"&lt;","new_content":"!"}`)
		f.holds(t, "human", "literal ! and <")
	}
}

func TestInsertLine(t *testing.T) {
	for _, tt := range []struct{ before, args, after string }{
		{"a\nb", `"insert_line":0`, "NEW\na\nb"},
		{"a\nb", `"insert_line":1`, "a\nNEW\nb"},
		{"a\nb", `"insert_line":2`, "a\nb\nNEW"},
		{"a\nb", `"insert_line":-1`, "a\nb\nNEW"},
		{"a\nb", `"insert_line":"1"`, "a\nNEW\nb"},
		{"a\nb", `"request_heartbeat":false`, "a\nb\nNEW"},
		{"", `"insert_line":0`, "NEW"},
		{"", `"insert_line":-1`, "NEW"},
	} {
		f := newFake()
		f.blocks[0].Value = tt.before
		f.ok(t, "memory_insert", `{"label":"human","new_string":"NEW",`+tt.args+`}`)
		f.holds(t, "human", tt.after)
	}
	f := newFake()
	f.fails(t, "memory_insert", `{"label":"human","new_string":"x","insert_line":4}`, "is 4", "3 lines", "to 3", "-1")
	f.fails(t, "memory_insert", `{"label":"human","new_string":"x","insert_line":-2}`, "is -2", "-1 for the end")
	f.fails(t, "memory_insert", `{"label":"human","new_string":""}`, "new_string is empty")
}

func TestRethink(t *testing.T) {
	f := newFake()
	f.ok(t, "memory_rethink", `{"label":"human","new_memory":"all new"}`)
	f.holds(t, "human", "all new")
	if got := f.ok(t, "memory_rethink", `{"label":"human","new_memory":""}`); !strings.Contains(got, "0/2,000") {
		t.Error(got)
	}
	f.fails(t, "memory_rethink", `{"label":"human"}`, "new_memory")
}

// Limits count characters, whatever their bytes.
func TestLimit(t *testing.T) {
	f := newFake()
	f.blocks[1].Limit = 10
	if got := f.ok(t, "memory_rethink", `{"label":"persona","new_memory":"你好世界你好世界你好"}`); !strings.Contains(got, "10/10") {
		t.Error(got)
	}
	f.fails(t, "core_memory_append", `{"label":"persona","content":"x"}`, "12 characters", "limit is 10", "has 10 now",
		"core_memory_replace", "archival_memory_insert")
	f.blocks[0].Value, f.blocks[0].Limit = strings.Repeat("a", 3000)+"b", 2000
	if got := f.ok(t, "core_memory_replace", `{"label":"human","old_content":"b","new_content":""}`); !strings.Contains(got, "3,000/2,000") {
		t.Error(got)
	}
	f.fails(t, "memory_rethink", argsJSON(t, map[string]any{"label": "human", "new_memory": strings.Repeat("c", 3000)}), "3,000 characters", "limit is 2,000")
	f.blocks[0].Value = strings.Repeat("a", 2500)
	if got := f.ok(t, "core_memory_replace", `{"label":"human","old_content":"a","new_content":"a"}`); !strings.Contains(got, "unchanged: 2,500/2,000") {
		t.Error(got)
	}
}

// Random edits give what a naive model of the functions gives, and a failed one changes nothing.
func TestRandomEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	word := func() string {
		words := []string{"", "a", "b", "ab", "你", "a\nb", "\n", "<x>", "&lt;x>", " ", "aa"}
		return words[r.IntN(len(words))]
	}
	f := newFake()
	f.blocks[0].Limit = 30
	done, failed := 0, 0
	for range 5_000 {
		if r.IntN(20) == 0 {
			f.blocks[0].Limit = 5 + r.IntN(40)
		}
		before, limit := f.blocks[0].Value, f.blocks[0].Limit
		name, x, y, line := blockNames[r.IntN(len(blockNames))], word(), word(), r.IntN(8)-2
		want, fits := naive(name, before, x, y, line)
		if n := memgpt.Runes(want); n > limit && n >= memgpt.Runes(before) && want != before {
			fits = false
		}
		args := argsJSON(t, map[string]any{"label": "human", "content": x, "old_content": x, "new_content": y, "old_string": x,
			"new_string": y, "insert_line": line, "new_memory": x + y})
		_, err := f.run(t, Form{Compact: true}, name, args)
		if !fits {
			want = before
			failed++
		} else {
			done++
		}
		if (err == nil) != fits || f.blocks[0].Value != want {
			t.Fatalf("%s(%s) on %q gave %q, %v; want %q", name, args, before, f.blocks[0].Value, err, want)
		}
	}
	if done < 500 || failed < 500 {
		t.Errorf("%d edits, %d failures: the test says little", done, failed)
	}
}

var blockNames = []string{"core_memory_append", "core_memory_replace", "memory_insert", "memory_replace", "memory_rethink"}

// naive says what a block should hold after an edit, written as plainly as can be.
func naive(name, value, x, y string, line int) (string, bool) {
	old, repl := x, y
	if !strings.Contains(value, x) && strings.Contains(value, strings.ReplaceAll(x, "&lt;", "<")) {
		old, repl = strings.ReplaceAll(x, "&lt;", "<"), strings.ReplaceAll(y, "&lt;", "<")
	}
	switch name {
	case "core_memory_append":
		return strings.TrimPrefix(value+"\n"+x, strings.Repeat("\n", min(1, max(0, 1-len(value))))), strings.TrimSpace(x) != ""
	case "core_memory_replace":
		return strings.Join(strings.Split(value, old), repl), old != "" && strings.Contains(value, old)
	case "memory_replace":
		n := 0
		for i := range value {
			if strings.HasPrefix(value[i:], old) {
				n++
			}
		}
		return strings.Replace(value, old, repl, 1), old != "" && n == 1
	case "memory_rethink":
		return x + y, true
	}
	lines := strings.Split(value, "\n")
	if value == "" {
		lines = nil
	}
	if line == -1 {
		line = len(lines)
	}
	if line < 0 || line > len(lines) || y == "" {
		return value, false
	}
	out := append([]string{}, lines[:line]...)
	return strings.Join(append(append(out, y), lines[line:]...), "\n"), true
}
