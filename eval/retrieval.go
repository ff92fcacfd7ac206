package eval

import (
	"context"
	"fmt"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// RetrievalConfig says how search is measured. Open alone is needed.
type RetrievalConfig struct {
	// Open makes a new, empty store and returns how to dispose of it. It is called once for each store of the data.
	Open func(ctx context.Context) (s store.Store, dispose func() error, err error)
	// Docs is a file of the unified format whose docs stand in place of those of the files with the questions; evidence is
	// looked up there by id. Stores go together by name; where Docs has only one, it serves all. "" is none.
	Docs string
	// Pooled puts all stores of a file into one, where an id is the store's name and the id.
	Pooled bool

	// Embedder makes the vectors of the questions before the first search, so that searches find them where it is a
	// [VectorCache]; nil is none.
	Embedder tool.Embedder
	// Index is called when a store is loaded, to add the vectors of its texts; nil adds none.
	Index func(ctx context.Context, s store.Store) error

	// Search makes the search that is measured: the agent's own, without the floor under which hits are not shown.
	// nil is by words.
	Search NewSearch
	// Shown makes the search as the agent has it, with the floor; nil says that Search has none.
	Shown NewSearch
	// Variants are measured beside it on the same stores.
	Variants []Variant

	Now      func() time.Time // clock that searches are timed with; nil is time.Now
	Progress func(done, total int)
}

// NewSearch makes a search over a loaded store.
type NewSearch func(s store.Store) (tool.Searcher, error)

// Variant is the search with a part switched off, or changed.
type Variant struct {
	Name   string
	Search NewSearch
}

// depths are the k of R@k; the last is the size of the page that is asked for.
var depths = [4]int{1, 5, 10, 20}

const reach = 20

// Retrieval measures search on files of the unified format (see [Locomo]). Docs with speakers are stored as messages of an
// imported conversation, those of a file without any speaker as passages. A question is asked at its
// time, or on the day after the newest doc of its store where it has none. All files are read before the first is measured;
// errors name file and line.
func Retrieval(ctx context.Context, cfg RetrievalConfig, files []string) (*RetrievalReport, error) {
	if cfg.Open == nil || len(files) == 0 {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "measure retrieval: it needs a store and a file")
	}
	sets, err := readSets(files, cfg.Docs, cfg.Pooled)
	if err != nil {
		return nil, fmt.Errorf("measure retrieval: %w", err)
	}
	m := newMeter(cfg, sets)
	if err := m.embedQuestions(ctx, sets); err != nil {
		return nil, fmt.Errorf("measure retrieval: embed the questions: %w", err)
	}
	rep := new(RetrievalReport)
	for _, s := range sets {
		file, err := m.measure(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("measure retrieval: %s: %w", s.file, err)
		}
		rep.Files = append(rep.Files, file)
	}
	return rep, nil
}

// meter measures searches.
type meter struct {
	cfg         RetrievalConfig
	analyzer    *retrieve.Analyzer
	done, total int
}

func newMeter(cfg RetrievalConfig, sets []*set) *meter {
	m := &meter{cfg: cfg, analyzer: new(retrieve.Analyzer)}
	if m.cfg.Search == nil {
		m.cfg.Search = func(s store.Store) (tool.Searcher, error) {
			return retrieve.New(retrieve.Config{Index: s, Store: s, Analyzer: m.analyzer})
		}
	}
	if m.cfg.Now == nil {
		m.cfg.Now = time.Now
	}
	for _, s := range sets {
		for _, p := range s.pools {
			m.total += len(p.questions) * (1 + len(cfg.Variants))
		}
	}
	return m
}

// embedQuestions has all questions embedded at once, which is faster than one by one.
func (m *meter) embedQuestions(ctx context.Context, sets []*set) error {
	if m.cfg.Embedder == nil {
		return nil
	}
	var texts []string
	for _, s := range sets {
		for _, p := range s.pools {
			for i := range p.questions {
				texts = append(texts, p.questions[i].Text)
			}
		}
	}
	_, err := m.cfg.Embedder.Embed(ctx, texts, true)
	return err
}

// answered is what was found for one question.
type answered struct {
	group  string
	gold   int   // pieces of evidence
	faults int   // and those that the data doesn't have
	ranks  []int // of evidence among the first hits, from 1, ascending
	took   time.Duration
	shown  bool // something was, above the floor
	hidden bool // evidence among the first hits was not shown
}

// measure measures one file.
func (m *meter) measure(ctx context.Context, s *set) (FileReport, error) {
	var list []answered
	varied := make([][]answered, len(m.cfg.Variants))
	for _, p := range s.pools {
		own, others, err := m.measurePool(ctx, p, s.talk)
		if err != nil {
			return FileReport{}, fmt.Errorf("store %q: %w", p.name, err)
		}
		list = append(list, own...)
		for i := range others {
			varied[i] = append(varied[i], others[i]...)
		}
	}
	rep := fileReport(s, list)
	for i, v := range m.cfg.Variants {
		rep.Ablation = append(rep.Ablation, Ablated{Name: v.Name, Recall: rank(varied[i]).Recall})
	}
	return rep, nil
}

// measurePool loads one store and asks its questions of the search, and then of the variants.
func (m *meter) measurePool(ctx context.Context, p *pool, talk bool) (own []answered, others [][]answered, err error) {
	s, dispose, err := m.cfg.Open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("make a store: %w", err)
	}
	defer func() {
		if bad := dispose(); err == nil && bad != nil {
			err = fmt.Errorf("dispose of the store: %w", bad)
		}
	}()
	if err := m.fill(ctx, s, p, talk); err != nil {
		return nil, nil, err
	}
	if own, err = m.askAll(ctx, s, p, m.cfg.Search, m.cfg.Shown); err != nil {
		return nil, nil, err
	}
	for _, v := range m.cfg.Variants {
		list, err := m.askAll(ctx, s, p, v.Search, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("variant %s: %w", v.Name, err)
		}
		others = append(others, list)
	}
	return own, others, nil
}

// fill loads a store with texts and vectors.
func (m *meter) fill(ctx context.Context, s store.Store, p *pool, talk bool) error {
	var err error
	if talk {
		err = p.storeMessages(ctx, s, m.analyzer)
	} else {
		err = p.storePassages(ctx, s, m.analyzer)
	}
	if err != nil {
		return fmt.Errorf("load it: %w", err)
	}
	if m.cfg.Index == nil {
		return nil
	}
	if err := m.cfg.Index(ctx, s); err != nil {
		return fmt.Errorf("add vectors: %w", err)
	}
	return nil
}

// askAll asks the questions of a store of one search.
func (m *meter) askAll(ctx context.Context, s store.Store, p *pool, search, shown NewSearch) ([]answered, error) {
	ranking, err := search(s)
	if err != nil {
		return nil, err
	}
	var floored tool.Searcher
	if shown != nil {
		if floored, err = shown(s); err != nil {
			return nil, err
		}
	}
	out := make([]answered, len(p.questions))
	for i := range p.questions {
		if out[i], err = m.ask(ctx, &p.questions[i], ranking, floored); err != nil {
			return nil, fmt.Errorf("question %q: %w", p.questions[i].ID, err)
		}
		m.done++
		if m.cfg.Progress != nil {
			m.cfg.Progress(m.done, m.total)
		}
	}
	return out, nil
}

// ask asks one question of the ranking, which is timed, and of the search with the floor, where there is one.
func (m *meter) ask(ctx context.Context, q *Question, ranking, floored tool.Searcher) (answered, error) {
	query := tool.Query{Owner: poolOwner, Text: q.Text, Size: reach, Zone: time.UTC, Now: q.Time}
	start := m.cfg.Now()
	hits, err := ranking.Search(ctx, query)
	a := answered{group: q.Group, gold: len(q.Gold), faults: q.Faults, took: m.cfg.Now().Sub(start)}
	if err != nil {
		return a, err
	}
	a.ranks, a.shown = q.ranks(hits), len(hits.List) > 0
	if floored == nil {
		return a, nil
	}
	if hits, err = floored.Search(ctx, query); err != nil {
		return a, err
	}
	a.shown, a.hidden = len(hits.List) > 0, len(q.ranks(hits)) < len(a.ranks)
	return a, nil
}

// ranks returns where a question's evidence stands among the first hits.
func (q *Question) ranks(hits tool.Hits) (ranks []int) {
	gold := make(map[string]bool, len(q.Gold))
	for _, g := range q.Gold {
		gold[g.ID] = true
	}
	for i, h := range hits.List[:min(reach, len(hits.List))] {
		if gold[h.ID] {
			ranks = append(ranks, i+1)
			delete(gold, h.ID) // a hit that came twice counts once
		}
	}
	return ranks
}
