package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"

	"memgpt"
)

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wants reports which of the texts are missing.
func wants(t *testing.T, what, in string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(in, text) {
			t.Errorf("%s: no %q in %q", what, text, in)
		}
	}
}

// TestLoad loads a directory of documents twice and looks at what came of it.
func TestLoad(t *testing.T) {
	home, docs := t.TempDir(), t.TempDir()
	writeFile(t, docs, "bridge.md", "# Otters\n\nOtters live under the old bridge.\n\n## Food\n\nThey eat roach and eel.\n")
	gbk, err := simplifiedchinese.GB18030.NewEncoder().String(strings.Repeat("我家的猫叫咪咪，今年三岁。它喜欢在窗台上晒太阳，也喜欢吃鱼。", 8))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, docs, "sub/cat.txt", gbk)
	writeFile(t, docs, "picture.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	first := good(t, home, "", "load", docs)
	wants(t, "first load", first.err, "bridge.md: ", "sub/cat.txt: ", "gb18030", "left out picture.png")
	again := good(t, home, "", "load", docs)
	wants(t, "second load", again.err, "bridge.md: 0 passages stored")
	list := lines[passageLine](t, good(t, home, "", "archive", "list", "--json").out)
	var heading string
	for _, p := range list {
		if strings.Contains(p.Text, "roach") {
			heading = p.Heading
		}
	}
	if len(list) < 2 || heading != "Otters > Food" {
		t.Errorf("%d passages, heading %q", len(list), heading)
	}
	wants(t, "sources", good(t, home, "", "archive", "sources").out, "bridge.md", "sub/cat.txt")
	wants(t, "an answer", good(t, home, "", "run", "-m", "what do otters eat?").out, "roach")
	var events int
	for _, e := range lines[struct{ Type memgpt.EventType }](t, good(t, home, "", "log", "--json").out) {
		if e.Type == memgpt.EventDocument {
			events++
		}
	}
	if events != 2 {
		t.Errorf("%d events of documents for two loaded twice", events)
	}
	gone := good(t, home, "", "archive", "delete", "--source", "bridge.md")
	wants(t, "deleted", gone.err, "taken out of results")
	if hits := good(t, home, "", "search", "--json", "roach").out; strings.Contains(hits, `"passage"`) {
		t.Errorf("a deleted passage is found: %s", hits)
	}
	wants(t, "deleted list", good(t, home, "", "archive", "list", "--all").out, "(deleted)")
}

// TestLoadRefusesWhatItCantRead says what is wrong and stores nothing.
func TestLoadRefusesWhatItCantRead(t *testing.T) {
	home, docs := t.TempDir(), t.TempDir()
	good(t, home, "", "run", "-m", "hi") // makes the agent, so that refusals are about the rest
	pdf := writeFile(t, docs, "paper.pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n")
	for want, args := range map[string][]string{
		"PDF":                  {"load", pdf},
		"nothing that can be":  {"load", docs},
		"no such file":         {"load", filepath.Join(docs, "absent")},
		"encoding":             {"load", "--encoding", "klingon", pdf},
		"this is a directory":  {"load", "--source", "x", docs},
		"has no passage":       {"archive", "show", "passage-1"},
		"name passages by the": {"archive", "delete"},
	} {
		r := command(t, home, "", nil, args...)
		if r.code == 0 || !strings.Contains(r.err, want) || r.out != "" || strings.Contains(r.err, "run it again") {
			t.Errorf("%v: status %d, %q, want %s", args, r.code, r.err, want)
		}
	}
}

// TestLoadOfNoText says that there was nothing to store, and tells the agent nothing.
func TestLoadOfNoText(t *testing.T) {
	home, docs := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"empty.txt": "", "blank.md": " \n\t\r\n　\n", "mark.txt": "\ufeff", "lines.jsonl": "\n\n"} {
		wants(t, name, good(t, home, "", "load", writeFile(t, docs, name, text)).err, name+" holds no text")
	}
	if list := documentEvents(t, home); len(list) > 0 {
		t.Errorf("told %q", list)
	}
}

// TestLoadFromStandardInput loads lines of JSON, of which one is broken, and proposes what could be merged.
func TestLoadFromStandardInput(t *testing.T) {
	home := t.TempDir()
	var in strings.Builder
	for _, text := range []string{"The meeting is at 3pm.", "Meeting is at 3 pm!", "The meeting is at 4pm."} {
		fmt.Fprintf(&in, "{\"text\":%q,\"source\":\"notes\"}\n", text)
	}
	r := good(t, home, in.String()+"broken\n", "load", "-")
	wants(t, "load", r.err, "3 passages stored", "line 4")
	piles := good(t, home, "", "archive", "dedup")
	wants(t, "piles", piles.out, "2 passages say the same", "these differ (number", "memgpt archive delete passage-")
	if i, j := strings.LastIndex(piles.out, "4pm."), strings.LastIndex(piles.out, "3pm."); i > j {
		t.Errorf("the older stands first: %s", piles.out)
	}
	if n := strings.Count(good(t, home, "", "archive", "list", "--json").out, "\n"); n != 3 {
		t.Errorf("%d passages: dedup changed something", n)
	}
}

// TestLongDocument asks for facts at the beginning, in the middle and at the end of a document of 50 windows.
func TestLongDocument(t *testing.T) {
	const windows, window = 50, 4096
	home := t.TempDir()
	facts := map[int]string{3: "The key of the north gate hangs behind the blue clock.", 400: "北门的密码是七三九一，每年春天更换一次。",
		790: "Captain Ulmer hid the ledger under the third barrel."}
	names := []string{"harbour", "miller", "orchard", "lantern", "river", "council", "winter", "letter", "garden", "bridge", "market", "soldier"}
	var doc strings.Builder
	for i := range 800 {
		fmt.Fprintf(&doc, "## Chapter %d\n\n", i)
		for j := range 14 {
			fmt.Fprintf(&doc, "In the year %d the %s of the %s spoke about the %s near the old %s for %d days. ", 1200+i, names[(i+j)%12],
				names[(i*j+3)%12], names[(i+2*j)%12], names[(3*i+j)%12], 1+i%9+j)
		}
		doc.WriteString(facts[i] + "\n\n")
	}
	if tokens := doc.Len() / 4; tokens < windows*window {
		t.Fatalf("the document has about %d tokens", tokens)
	}
	path := writeFile(t, t.TempDir(), "chronicle.md", doc.String())
	good(t, home, "", "load", path)
	for question, want := range map[string]string{
		"Where does the key of the north gate hang?": "blue clock", "北门的密码是什么？": "七三九一", "Where did Captain Ulmer hide the ledger?": "third barrel",
	} {
		r := command(t, home, "", []string{fmt.Sprint("MEMGPT_WINDOW=", window)}, "run", "--thread", question, "-m", question)
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%s: status %d, %q, %s", question, r.code, r.out, r.err)
		}
	}
}

// documentEvents returns what an agent was told of documents.
func documentEvents(t *testing.T, home string) (list []string) {
	t.Helper()
	type entry struct {
		Type memgpt.EventType
		Text string
	}
	for _, e := range lines[entry](t, good(t, home, "", "log", "--json").out) {
		if e.Type == memgpt.EventDocument {
			list = append(list, e.Text)
		}
	}
	return list
}

// TestLoadKilledBeforeTheAgentIsTold has a load end right after its last passages, as a kill may do: the agent is told
// with the next run, and once.
func TestLoadKilledBeforeTheAgentIsTold(t *testing.T) {
	home := t.TempDir()
	var doc strings.Builder
	for i := range 2 * loadBatch { // a number of passages at which no batch is left over
		fmt.Fprintf(&doc, "{\"text\":\"passage number %d of the book\"}\n", i)
	}
	path := writeFile(t, t.TempDir(), "book.jsonl", doc.String())
	child := exec.Command(os.Args[0], "load", path)
	child.Env = append(os.Environ(), childEnv+"=stored", "MEMGPT_HOME="+home, "MEMGPT_MODEL=offline")
	if out, err := child.CombinedOutput(); child.ProcessState.ExitCode() != killedStatus {
		t.Fatalf("%v: %s", err, out)
	}
	wants(t, "load again", good(t, home, "", "load", path).err, "0 passages stored, 200 were there")
	good(t, home, "", "run", "-m", "hello")
	if list := documentEvents(t, home); len(list) != 1 || !strings.Contains(list[0], "200 passages") {
		t.Errorf("told %q", list)
	}
}

// TestLoadKilledBeforeRepeats kills a load when passages are in, and runs it again with nothing left to store: the second
// run says what the first one did, and the agent is told, once.
func TestLoadKilledBeforeRepeats(t *testing.T) {
	home := t.TempDir()
	line := func(i int) string {
		return fmt.Sprintf("{\"text\":\"entry %d of the ledger%s\"}\n", i, strings.Repeat(" and more", 40))
	}
	killed := child(t, "main", home, "load", "-")
	in, err := killed.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for i := 0; stored == 0; i++ { // the pipe stays open: the document goes on
		if _, err := io.WriteString(in, line(i)); err != nil {
			t.Fatal(err)
		}
		if i%500 == 499 {
			if r := command(t, home, "", nil, "archive", "list", "--json"); r.code == 0 {
				stored = strings.Count(r.out, "\n")
			}
		}
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	stored = strings.Count(good(t, home, "", "archive", "list", "--json").out, "\n")
	var doc strings.Builder
	for i := range stored {
		doc.WriteString(line(i))
	}
	again := good(t, home, doc.String()+line(0), "load", "-")
	wants(t, "the second load", again.err, fmt.Sprintf("0 passages stored, %d were there already, %d of them from a load that was interrupted", stored+1, stored))
	good(t, home, doc.String(), "load", "-")
	if list := documentEvents(t, home); len(list) != 1 || !strings.Contains(list[0], "standard input") {
		t.Errorf("told %q", list)
	}
}

// TestSlipsInNamesOfDocuments names a document that isn't there, near to one that is.
func TestSlipsInNamesOfDocuments(t *testing.T) {
	home, docs := t.TempDir(), t.TempDir()
	writeFile(t, docs, "garden/bees.md", "Bees sleep at night.")
	writeFile(t, docs, "岛屿日记.txt", "岛上有一棵老树。")
	good(t, home, "", "load", docs)
	for typo, near := range map[string]string{"garden/bee.md": "garden/bees.md", "bees.md": "garden/bees.md", "岛屿日志.txt": "岛屿日记.txt", "tax 2019": ""} {
		for _, args := range [][]string{{"archive", "delete"}, {"archive", "list"}, {"forget", "passage", "--yes"}} {
			r := command(t, home, "", nil, append(args, "--source", typo)...)
			if r.code != 1 || !strings.Contains(r.err, "no passages of the document") || near != "" && !strings.Contains(r.err, "near to it: "+strconv.Quote(near)) ||
				near == "" && strings.Contains(r.err, "near to it") {
				t.Errorf("%v %s: %+v", args, typo, r)
			}
		}
	}
	if n := strings.Count(good(t, home, "", "archive", "list", "--json").out, "\n"); n != 2 {
		t.Errorf("%d passages are left", n)
	}
}

// TestLoadAgainAfterDeletion tells the agent of a document that comes back.
func TestLoadAgainAfterDeletion(t *testing.T) {
	home := t.TempDir()
	path := writeFile(t, t.TempDir(), "note.txt", "The spare key lies under the blue pot.")
	good(t, home, "", "load", path)
	good(t, home, "", "archive", "delete", "--source", "note.txt")
	good(t, home, "", "load", path)
	if list := documentEvents(t, home); len(list) != 2 {
		t.Errorf("told %q", list)
	}
}

// TestDeleteCounts names a passage twice: it is counted once.
func TestDeleteCounts(t *testing.T) {
	home := t.TempDir()
	good(t, home, "One passage.", "load", "-")
	id := lines[passageLine](t, good(t, home, "", "archive", "list", "--json").out)[0].ID
	wants(t, "deleted", good(t, home, "", "archive", "delete", id, id).err, "1 passages were taken out")
}
