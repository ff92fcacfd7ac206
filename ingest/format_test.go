package ingest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"a.txt", "text", ""},
		{"a.TXT", "RIFF begins a sound, PK an archive.", ""},
		{"id3", "ID3 is the tag of sounds.", ""},
		{"a.txt", "one\x00stray NUL", ""},
		{"colours.log", strings.Repeat("\x1b[31mred\x1b[0m\n", 20), ""},
		{"a.py", "print('<html>')", ""},
		{"a.xml", "<?xml version='1.0'?><a/>", ""},
		{"a.txt", "t\x00e\x00x\x00t\x00 \x00o\x00f\x00 \x00U\x00T\x00F\x00", ""},
		{"a.txt", "%PDF-1.4\nall text", "a PDF"},
		{"A.PDF", "no PDF", "a PDF"},
		{"a.docx", "PK\x03\x04\x14\x00\x00\x00", "a Word document"},
		{"a", "PK\x03\x04\x14\x00\x00\x00", aZip},
		{"a.html", "", anHTML},
		{"a.txt", "\ufeff \n<!DOCTYPE HTML>", anHTML},
		{"a.txt", `{\rtf1\ansi}`, "an RTF document"},
		{"a", "ID3\x04\x00\x00\x00\x00\x00\x23", "a sound or a film"},
		{"a.dat", strings.Repeat("\x01\x02\x03abc", 9), aBin},
	} {
		err := Check(c.name, []byte(c.head))
		want := c.name + " is " + c.want + "; this version reads plain text, Markdown and JSONL"
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || err.Error() != want || memgpt.CodeOf(err) != memgpt.CodeInvalid):
			t.Errorf("%s: %v, want %s", c.name, err, want)
		}
	}
	// Who names the format is believed, but for what can't be text.
	text, rep := cut(t, Config{Format: FormatText}, "a.html", strings.NewReader("<html>Hi."))
	if show(text) != " | <html>Hi.\n" || rep.Format != FormatText {
		t.Errorf("%s %+v", show(text), rep)
	}
	if _, err := must(t, Config{Format: FormatText}).Cut(t.Context(), "x", strings.NewReader(strings.Repeat("\x00\x01\x02", 99)), nil); err == nil {
		t.Error("a binary file is read as text")
	}
}

func TestFormatOf(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       Format
	}{
		{"a.md", "{\"text\":\"\"}", FormatMarkdown}, {"A.MARKDOWN", "", FormatMarkdown}, {"a.ndjson", "", FormatJSONL},
		{"a.txt", "{\"text\":\"x\"}", FormatText}, {"-", "\n{\"id\":1,\"text\":\"x\"}\n{", FormatJSONL}, {"-", "{\"text\":\"x\"", FormatText},
		{"-", "{\"no\":\"x\"}", FormatText}, {"README", "# x", FormatText},
	} {
		if got := formatOf(c.name, []byte(c.head)); got != c.want {
			t.Errorf("%s with %q is %s, want %s", c.name, c.head, got, c.want)
		}
	}
}

// TestDocumentFormats holds that every document of a format that is not read is refused by name, and by content alone too
// where that is whole.
func TestDocumentFormats(t *testing.T) {
	dir := documents(t)
	for folder, what := range map[string]string{"pdf": "a PDF", "docx": "a Word document", "epub": "an EPUB book", "html": anHTML,
		"odt": "an OpenDocument text", "rtf": "an RTF document", "xlsx": "a spreadsheet", "eml": "an e-mail message", "edge": aBin} {
		files, _ := filepath.Glob(filepath.Join(dir, folder, "*"))
		if len(files) == 0 {
			t.Errorf("no documents in %s", folder)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = must(t, Config{}).Cut(t.Context(), filepath.Base(file), bytes.NewReader(raw), nil)
			if err == nil || !strings.Contains(err.Error(), " is "+what+"; this version") {
				t.Errorf("%s: %v", file, err)
			}
			whole := len(raw) > 100 && folder != "eml" && folder != "html"
			if err := Check("unnamed", raw[:min(len(raw), windowBytes)]); whole && err == nil {
				t.Errorf("%s passes without its name", file)
			}
		}
	}
}

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.txt")
	for name, text := range map[string]string{"b.md": "# b", "a/z.txt": "z", "a/.hidden": "h", ".git/config": "c", "a.txt": "a", "empty.txt": "",
		"pic.png": "\x89PNG\r\n\x1a\n", "bin": "\x00\x01\x02\x03\x04", "save.txt~": "x", "a/latin.txt": "caf\xe9"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.WriteFile(outside, []byte("s"), 0o600), os.Symlink(outside, filepath.Join(dir, "out.txt")),
		os.Symlink(dir, filepath.Join(dir, "loop")))
	if err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	files, skips, err := Walk(t.Context(), root.FS())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]File{{"a/latin.txt", 4}, {"a/z.txt", 1}, {"a.txt", 1}, {"b.md", 3}}, files); diff != "" {
		t.Error(diff)
	}
	want := []Skip{{".git", "it is hidden"}, {"a/.hidden", "it is hidden"}, {"bin", "it is a binary file"}, {"empty.txt", "it is empty"},
		{"loop", "it is a symbolic link"}, {"out.txt", "it is a symbolic link"}, {"pic.png", "it is an image"}, {"save.txt~", "it is hidden"}}
	if diff := cmp.Diff(want, skips); diff != "" {
		t.Error(diff)
	}
}

func TestWalkFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Walk(ctx, fstest.MapFS{"a": {Data: []byte("x")}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := Walk(t.Context(), os.DirFS(filepath.Join(t.TempDir(), "none"))); err == nil {
		t.Error("a directory that is not there is walked")
	}
}
