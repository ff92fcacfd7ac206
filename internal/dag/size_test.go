package dag

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxBinary is the most that a stripped static binary of cmd/memgpt may weigh, in bytes. The picks of DEPENDENCIES.md
// together weigh 44 MB, and the weights of the built-in encoder 45 MB; raise this with a reason.
const maxBinary = 105 << 20

// TestSize builds the binary, which is slow, so it runs where DAG_SIZE=1 asks for it, as .ci/run does.
func TestSize(t *testing.T) {
	if os.Getenv("DAG_SIZE") == "" {
		t.Skip("set DAG_SIZE=1 to build cmd/memgpt and weigh it")
	}
	if _, err := os.Stat(root + "/cmd/memgpt"); err != nil {
		t.Skip("cmd/memgpt doesn't exist yet")
	}
	bin := filepath.Join(t.TempDir(), module)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "./cmd/memgpt")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := checkSize(bin, maxBinary); err != nil {
		t.Error(err)
	}
}

func checkSize(file string, limit int64) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() > limit {
		return fmt.Errorf("%s weighs %.1f MiB, and %.1f is the most: look for the dependency that did it (go version -m, go tool nm -size), or raise maxBinary in internal/dag/size_test.go with a reason",
			filepath.Base(file), float64(info.Size())/(1<<20), float64(limit)/(1<<20))
	}
	return nil
}

func TestCheckSize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(file, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkSize(file, 100); err != nil {
		t.Error(err)
	}
	if err := checkSize(file, 99); err == nil {
		t.Error("a file over the limit passed")
	}
}
