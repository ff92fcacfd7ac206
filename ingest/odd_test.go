package ingest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestWrongKindOfJSON names what is wrong in words of JSON.
func TestWrongKindOfJSON(t *testing.T) {
	for _, line := range []string{`[1]`, `{"text":5}`, `7`, `"x"`} {
		_, err := parsePassage([]byte(line))
		if err == nil || strings.Contains(err.Error(), "struct") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestNameThatIsNotUTF8 says why such a file is left out of its directory.
func TestNameThatIsNotUTF8(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bad\xff.txt"), []byte("text"), 0o600); err != nil {
		t.Skipf("%s takes no such name: %v", runtime.GOOS, err)
	}
	files, skips, err := Walk(t.Context(), os.DirFS(dir))
	if err != nil || len(files) != 0 || len(skips) != 1 || !strings.Contains(skips[0].Reason, "UTF-8") {
		t.Errorf("files %v, left out %v, %v", files, skips, err)
	}
}
