package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// Shown is what a server tells of a model that it has.
type Shown struct {
	Tools    bool // its template takes functions
	Thinking bool // it thinks before it answers
	Vision   bool // it sees images
	Window   int  // the longest context that it was made for, in tokens; 0 when unknown
	Template string
	// Whole says that the server's prompt_eval_count counts the whole prompt. Where it is false, only what was not cached
	// is counted, and the figure tells nothing of the prompt's size.
	Whole bool
}

// showReply is the answer of POST /api/show. Capabilities are told since version 0.6.4; before, the template shows them.
type showReply struct {
	Capabilities []string                   `json:"capabilities"`
	Template     string                     `json:"template"`
	ModelInfo    map[string]json.RawMessage `json:"model_info"`
	Projector    map[string]json.RawMessage `json:"projector_info"`
}

// Show asks the server about a model, once. A model that isn't there is CodeModelRequest, with the command that loads it.
func (m *Model) Show(ctx context.Context, model string) (*Shown, error) {
	m.mu.Lock()
	s := m.shown[model]
	m.mu.Unlock()
	if s != nil {
		return s, nil
	}
	var r showReply
	body, err := json.Marshal(map[string]string{"model": model})
	if err != nil {
		return nil, fmt.Errorf("show model %s: %w", model, err)
	}
	if err := m.ask(ctx, http.MethodPost, "/api/show", model, body, &r); err != nil {
		return nil, err
	}
	s = r.read()
	var v struct {
		Version string `json:"version"`
	}
	s.Whole = m.ask(ctx, http.MethodGet, "/api/version", "", nil, &v) != nil || wholeCounts(v.Version)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown[model] = s
	return s, nil
}

func (r *showReply) read() *Shown {
	has := func(name, field string) bool {
		if r.Capabilities == nil {
			return strings.Contains(r.Template, field)
		}
		return slices.Contains(r.Capabilities, name)
	}
	s := &Shown{Tools: has("tools", ".Tools"), Thinking: has("thinking", ".Thinking"), Template: r.Template}
	s.Vision = slices.Contains(r.Capabilities, "vision") || r.Capabilities == nil && len(r.Projector) > 0
	var arch string
	_ = json.Unmarshal(r.ModelInfo["general.architecture"], &arch)
	_ = json.Unmarshal(r.ModelInfo[arch+".context_length"], &s.Window)
	s.Window = max(s.Window, 0)
	return s
}

// wholeCounts reports whether a version's prompt_eval_count counts the whole prompt. Versions up to 0.1 count only what
// was not in the cache (pull request 5371, July 2024), and so do the first of 0.30 (16428, June 2026); both repairs say
// that the whole was always meant. Which release of 0.30 has the repair is not told, so none of them is relied on.
func wholeCounts(version string) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 3 || parts[0] != "0" {
		return true
	}
	minor, err := strconv.Atoi(parts[1])
	built := minor == 0 && strings.HasPrefix(parts[2], "0") // 0.0.0 is built from source
	return err != nil || built || minor >= 2 && minor != 30
}

// askTimeout bounds a question that takes the server no work.
const askTimeout = 30 * time.Second

// ask reads JSON from a path.
func (m *Model) ask(ctx context.Context, method, path, model string, body []byte, into any) error {
	w := wire.NewWatch(ctx, wire.Limits{First: askTimeout, Idle: askTimeout, Filler: filler})
	defer w.Stop()
	what := "ask for " + path
	u := *m.base
	u.Path += path
	req, err := http.NewRequestWithContext(w.Context(), method, u.String(), bytes.NewReader(body))
	if err != nil {
		return memgpt.Errorf(memgpt.CodeModelRequest, "%s: %w", what, err)
	}
	m.authorize(req)
	resp, err := m.client.Do(req)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if err != nil {
		return m.unreachable(w, err, false).err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return m.refused(resp, what, model).err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxLine))
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return memgpt.Errorf(memgpt.CodeModelDown, "%s: the answer can't be read (is it Ollama?): %w", what, err)
	}
	return nil
}

// Progress is how far a download is.
type Progress struct {
	Status    string `json:"status"` // e.g. "pulling manifest", "success"
	Digest    string `json:"digest"` // of the layer that is loaded
	Total     int64  `json:"total"`  // its bytes; 0 when unknown
	Completed int64  `json:"completed"`
}

// Pull lets the server load a model down, which may be many gigabytes: call it only where a person asked for it. progress
// is told of each step and may be nil. An interrupted download is gone on with by the next.
func (m *Model) Pull(ctx context.Context, model string, progress func(Progress)) error {
	what := "pull " + model
	body, err := json.Marshal(map[string]any{"model": model, "stream": true})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	w := wire.NewWatch(ctx, wire.Limits{First: m.cfg.First, Idle: m.cfg.First, Filler: filler})
	defer w.Stop()
	resp, f := m.send(w, "/api/pull", body)
	if f == nil {
		defer func() { _ = resp.Body.Close() }()
		f = m.pulled(w, resp, what, progress)
	}
	if f != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if f != nil {
		return f.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.shown, model)
	return nil
}

// pulled reads the progress of a download to its end.
func (m *Model) pulled(w *wire.Watch, resp *http.Response, what string, progress func(Progress)) *fault {
	if resp.StatusCode != http.StatusOK {
		return m.refused(resp, what, "")
	}
	done := false
	err := eachLine(&wire.Watched{ReadCloser: resp.Body, Watch: w, Long: true}, func(line []byte) *fault {
		w.Piece()
		var p struct {
			Progress
			Error string `json:"error"`
		}
		if err := json.Unmarshal(line, &p); err != nil {
			return down("%s: a line is not JSON: %w", what, err)
		}
		if p.Error != "" {
			e := judge(http.StatusInternalServerError, p.Error)
			e.Text = what + ": " + m.hide(p.Error)
			return &fault{err: e}
		}
		done = p.Status == "success"
		if progress != nil {
			progress(p.Progress)
		}
		return nil
	})
	switch {
	case err.fault != nil:
		return err.fault
	case w.Ended():
		return &fault{err: wire.TimedOut(w, what)}
	case !done:
		return down("%s: it broke off before its end; pull again to go on", what)
	}
	return nil
}
