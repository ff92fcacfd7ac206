package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memgpt"
	"memgpt/host"
	"memgpt/ingest"
	"memgpt/kernel"
	"memgpt/store"
)

// loadBatch is how many passages one commit holds: enough to make commits cheap, few enough to hold others up for
// milliseconds only.
const loadBatch = 100

// loadFlags are the options of load.
type loadFlags struct{ encoding, source string }

func (a *app) loadCommand() *cobra.Command {
	var flags loadFlags
	cmd := &cobra.Command{
		Use: "load FILE|DIR|-", Short: "store documents in archival memory", Args: cobra.ExactArgs(1),
		Long: "load cuts plain text in any common encoding, Markdown and lines of JSON ({\"text\",\"time\"?,\"tags\"?,\"source\"?,\"heading\"?})\n" +
			"into passages of the agent's archive. What is stored already is left out: a load that was interrupted is simply run\n" +
			"again. The agent is told of each document that came. - reads standard input. With --archive they go to a shared archive,\n" +
			"which is made if there is none, and which any number of agents can read (memgpt agents set NAME archives=...).",
		RunE: func(cmd *cobra.Command, args []string) error {
			defer a.close()
			return a.load(cmd.Context(), args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.encoding, "encoding", "", "encoding of the documents, as gb18030; it is found out otherwise")
	cmd.Flags().StringVar(&flags.source, "source", "", "name under which the passages of a single document are kept")
	a.threadFlag(cmd)
	a.archiveFlag(cmd)
	return cmd
}

// loader loads documents for one agent, or into a shared archive.
type loader struct {
	*app
	agent  memgpt.Agent
	thread memgpt.Thread
	cutter *ingest.Cutter
	failed int
	shared *store.Archive // nil for the agent's own
	behind bool           // somebody else lets the agent run on what it is told
}

func (a *app) load(ctx context.Context, path string, flags loadFlags) error {
	cutter, err := ingest.New(ingest.Config{Encoding: flags.encoding})
	if err != nil {
		return err
	}
	l := &loader{app: a, cutter: cutter}
	if a.archiveName != "" {
		return l.loadShared(ctx, path, flags)
	}
	if err := a.start(ctx); err != nil {
		return err
	}
	if l.agent, l.thread, err = a.agent(ctx); err != nil {
		return err
	}
	return l.load(ctx, path, flags)
}

// loadShared loads into a shared archive, for which no agent and no model is needed.
func (l *loader) loadShared(ctx context.Context, path string, flags loadFlags) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil && path != "-" {
		return err // before an archive is made for it
	}
	archive, err := l.madeArchive(ctx, l.archiveName)
	if err != nil {
		return err
	}
	if l.kernel, err = l.kernelWithoutModel(); err != nil {
		return err
	}
	l.shared = &archive
	err = l.load(ctx, path, flags)
	l.embedOwn(ctx, l.standIn(archive))
	return err
}

func (l *loader) load(ctx context.Context, path string, flags loadFlags) error {
	if path == "-" {
		return l.document(ctx, nameOr(flags.source, "standard input"), stoppable(ctx, l.in), 0)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() && flags.source != "":
		return errors.New("--source names a single document, and this is a directory")
	case info.IsDir():
		return l.directory(ctx, path)
	}
	f, info, err := openInput(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return l.document(ctx, nameOr(flags.source, filepath.Base(path)), f, info.Size())
}

func nameOr(name, other string) string {
	if name != "" {
		return name
	}
	return other
}

// directory loads what can be read of a directory and says what can't.
func (l *loader) directory(ctx context.Context, path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files, skips, err := ingest.Walk(ctx, root.FS())
	if err != nil {
		return err
	}
	for _, s := range skips {
		l.say("left out %s: %s", s.Path, s.Reason)
	}
	for _, file := range files {
		f, err := root.Open(filepath.FromSlash(file.Path))
		if err == nil {
			err = l.document(ctx, file.Path, f, file.Size)
			_ = f.Close()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			l.failed++
			l.say("%v", err)
		}
	}
	if l.failed > 0 {
		return fmt.Errorf("%d of %d documents could not be loaded", l.failed, len(files))
	}
	if len(files) == 0 {
		return fmt.Errorf("%s holds nothing that can be loaded", path)
	}
	return nil
}

// begin begins to load a document.
func (l *loader) begin(ctx context.Context, name string) (*kernel.Loading, error) {
	if l.shared != nil {
		return l.kernel.BeginSharedLoad(ctx, *l.shared, name)
	}
	return l.kernel.BeginLoad(ctx, l.agent, name)
}

// end stores the last passages of a document, and of an agent's what it is told.
func (l *loader) end(ctx context.Context, loading *kernel.Loading, last []memgpt.Passage, loaded host.Message) error {
	if l.shared != nil {
		return loading.End(ctx, last, nil)
	}
	event, err := l.host.Event(loaded)
	if err != nil {
		return err
	}
	return loading.End(ctx, last, &event)
}

// document loads one document and tells the agent of it.
func (l *loader) document(ctx context.Context, name string, r io.Reader, size int64) error {
	loading, err := l.begin(ctx, name)
	if err != nil {
		return fmt.Errorf("load %s: %w", name, err)
	}
	bar := l.progress(name, size)
	in := &counting{r: r, told: bar.at}
	var batch []memgpt.Passage
	report, err := l.cutter.Cut(ctx, name, in, func(c ingest.Chunk) error {
		if len(batch) == loadBatch { // the last batch is kept for the commit that tells the agent
			if err := loading.Add(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
		batch = append(batch, memgpt.Passage{Text: c.Text, Tags: c.Tags, Source: c.Source, Heading: c.Heading, Position: c.Start, Time: c.Time})
		return nil
	})
	loaded := l.loaded(name, report.Chunks)
	if err == nil {
		err = l.end(ctx, loading, batch, loaded)
	}
	bar.end()
	switch in := loading.Added + loading.Before; {
	case err != nil && in > 0:
		return fmt.Errorf("load %s: %w; %d passages are in, run it again to go on", name, err, in)
	case err != nil:
		return fmt.Errorf("load %s: %w", name, err)
	}
	l.tellReport(name, report, loading)
	if !loading.Told || l.behind || l.shared != nil {
		return nil
	}
	return l.raise(ctx, name, loaded)
}

func (l *loader) tellReport(name string, r ingest.Report, loading *kernel.Loading) {
	if r.Chunks+r.Skipped == 0 {
		l.say("%s holds no text", name)
		return
	}
	known := r.Chunks - loading.Added
	there := fmt.Sprintf("%d were there already", known)
	if n := min(loading.Before, known); n > 0 {
		there += fmt.Sprintf(", %d of them from a load that was interrupted", n)
	}
	l.say("%s: %d passages stored, %s (%s, %s)", name, loading.Added, there, r.Format, r.Encoding)
	if r.Invalid > 0 {
		l.say("  %d places are not valid %s and read as U+FFFD; name another with --encoding if that is wrong", r.Invalid, r.Encoding)
	}
	for _, p := range r.Problems {
		l.say("  line %d: %s", p.Line, p.Text)
	}
}

// loaded is what the agent is told of a document. Its event is committed with the last passages, so that nothing gets
// between them.
func (l *loader) loaded(name string, passages int) host.Message {
	text := fmt.Sprintf("The document %q was loaded into archival storage: %d passages. Find them with archival_memory_search; "+
		"memory_read(id, around) reads on from a hit.", name, passages)
	return host.Message{Agent: l.agent.ID, Thread: l.thread.ID, Type: memgpt.EventDocument, Key: newID("load"),
		Message: memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, text)}
}

// raise lets the agent run on the event of a document, which enters the inbox unless it is there already.
func (l *loader) raise(ctx context.Context, name string, m host.Message) error {
	turn, err := l.host.Send(ctx, m)
	if err != nil {
		return err
	}
	record, err := l.follow(ctx, turn, false)
	if err != nil {
		return fmt.Errorf("%s is stored; the agent is told with the next run: %w", name, err)
	}
	return l.verdict(record)
}

// counting tells how much of a document was read.
type counting struct {
	r    io.Reader
	n    int64
	told func(int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.told(c.n)
	return n, err
}

// bar is a line at the terminal that says how far a document is.
type bar struct {
	out   io.Writer // nil shows nothing
	name  string
	size  int64 // bytes; 0 when unknown
	begun time.Time
	shown time.Time
}

const (
	barAfter = 500 * time.Millisecond // nothing is shown of what is done before that
	barEvery = 100 * time.Millisecond
	barWidth = 30
)

func (a *app) progress(name string, size int64) *bar {
	b := &bar{name: name, size: size, begun: time.Now()}
	if f, ok := a.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.out = f
	}
	return b
}

func (b *bar) at(n int64) {
	now := time.Now()
	if b.out == nil || now.Sub(b.begun) < barAfter || now.Sub(b.shown) < barEvery {
		return
	}
	b.shown = now
	rate := float64(n) / now.Sub(b.begun).Seconds() / (1 << 20)
	if b.size <= 0 {
		_, _ = fmt.Fprintf(b.out, "\r\x1b[K%s  %.1f MiB  %.1f MiB/s", b.name, float64(n)/(1<<20), rate)
		return
	}
	done := int(min(n, b.size) * barWidth / b.size)
	_, _ = fmt.Fprintf(b.out, "\r\x1b[K%s  [%s%s] %3d %%  %.1f MiB/s", b.name, strings.Repeat("#", done),
		strings.Repeat(".", barWidth-done), min(n, b.size)*100/b.size, rate)
}

func (b *bar) end() {
	if !b.shown.IsZero() {
		_, _ = fmt.Fprint(b.out, "\r\x1b[K")
	}
}
