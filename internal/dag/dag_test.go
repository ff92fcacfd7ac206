package dag

import (
	"go/parser"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module = "memgpt"
	root   = "../.."
)

// The tests of this file run the rules on the module itself. A failure says what to do; rules_test.go holds the rules.

func TestImports(t *testing.T) {
	text, err := os.ReadFile("policy.txt")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePolicy(string(text))
	if err != nil {
		t.Fatal(err)
	}
	report(t, CheckImports(load(t, os.DirFS(root), parser.ImportsOnly), p))
}

func TestStyle(t *testing.T) {
	report(t, CheckStyle(load(t, os.DirFS(root), 0)))
}

func TestText(t *testing.T) {
	problems, err := CheckText(os.DirFS(root), textFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
}

func load(t *testing.T, fsys fs.FS, mode parser.Mode) *Tree {
	t.Helper()
	tree, err := Load(fsys, module, mode)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// textFiles are the files that git tracks or would add. Without git, or outside of a repository, they are
// all files. The walk is there for the go command too, which reruns a cached test when a walked folder changes.
func textFiles(t *testing.T) []string {
	t.Helper()
	known := gitFiles(t)
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return fs.SkipDir
		case d.Type().IsRegular() && (known == nil || known[name]):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func gitFiles(t *testing.T) map[string]bool {
	t.Helper()
	// A clone in a container often belongs to another user, which git refuses to read without this.
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Logf("git ls-files: %v; looking at all files", err)
		return nil
	}
	known := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		known[filepath.ToSlash(name)] = true
	}
	return known
}
