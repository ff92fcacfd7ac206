package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// ResultName names the results of a run: suite, mode, model and window, whatever else is not as by default, and a hash of all
// that decides the figures, the data included. It is a safe name of a file without its ending. The configuration need not be
// settled. Shown are further settings that a reader should see, hidden those that only the hash tells apart.
func ResultName(cfg Config, s *Suite, shown []string, hidden ...string) (string, error) {
	if err := cfg.settle(); err != nil {
		return "", err
	}
	parts := []string{s.Name, string(cfg.Mode), cfg.Model.Capabilities().Name, fmt.Sprint(cfg.Window)}
	add := func(is bool, format string, v any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	ks := strings.ReplaceAll(strings.Trim(fmt.Sprint(cfg.Ks), "[]"), " ", ".")
	add(cfg.Mode == ModeRAG, "k%s", ks)
	add(cfg.Budget > 0, "prefetch%d", cfg.Budget)
	add(cfg.SummaryWords > 0, "words%d", cfg.SummaryWords)
	add(cfg.Limit > 0, "limit%d", cfg.Limit)
	add(cfg.Seed > 0, "seed%d", cfg.Seed)
	add(len(cfg.WrongGold) > 0, "%s", "wronggold")
	note := cfg.policyNote()
	add(note != "", "%s", note)
	if cfg.Judge != nil {
		parts = append(parts, "judge_"+cfg.Judge.Capabilities().Name)
	}
	parts = append(parts, shown...)
	h := sha256.New()
	enc := json.NewEncoder(h)
	judge := ""
	if cfg.Judge != nil {
		judge = JudgeVersion()
	}
	if err := errors.Join(enc.Encode([]any{parts, hidden, cfg.WrongGold, judge}), enc.Encode(s)); err != nil {
		return "", fmt.Errorf("name the results: %w", err)
	}
	for i, p := range parts {
		parts[i] = safeName(p)
	}
	return strings.Join(parts, "-") + "-" + hex.EncodeToString(h.Sum(nil)[:4]), nil
}

// safeName is a text as a part of a file's name: letters and digits of ASCII, and few signs, 40 at most.
func safeName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._+", r)) {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 40)]
}

// SaveResults writes NAME.jsonl with the records and NAME.json with the report into a directory, which is made if missing. Each
// file is replaced as a whole. A partial report never takes the place of a whole one: then saved is false.
func SaveResults(dir, name string, rep *Report) (saved bool, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return false, fmt.Errorf("write the results: %w", err)
	}
	path := filepath.Join(dir, name)
	if rep.Partial {
		var old struct{ Partial bool }
		text, err := os.ReadFile(path + ".json")
		if err == nil && json.Unmarshal(text, &old) == nil && !old.Partial {
			return false, nil
		}
	}
	err = replaceFile(path+".jsonl", func(w io.Writer) error { return WriteRecords(w, rep.Records) })
	if err == nil {
		err = replaceFile(path+".json", rep.WriteJSON)
	}
	if err != nil {
		return false, fmt.Errorf("write the results: %w", err)
	}
	return true, nil
}

// replaceFile writes a file beside its place and then moves it there.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err = errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
