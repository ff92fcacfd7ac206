package eval

import (
	"fmt"
	"slices"

	"memgpt"
	"memgpt/kernel"
)

// set is one file that is measured.
type set struct {
	file  string
	pools []*pool
	talk  bool // the docs have speakers
}

// pool is what one store holds, and the questions that are asked of it.
type pool struct {
	name      string
	lines     []kernel.Line
	texts     map[string]string // of lines, by id
	queries   []unifiedQuery
	questions []Question // queries with their evidence looked up
}

// readSets reads the files with the questions, and that with their docs if it is another.
func readSets(files []string, docs string, pooled bool) ([]*set, error) {
	var others []*pool
	if docs != "" {
		var err error
		if others, err = readPools(docs, true); err != nil {
			return nil, err
		}
	}
	sets := make([]*set, 0, len(files))
	for _, file := range files {
		s, err := readSet(file, others, pooled)
		if err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	return sets, nil
}

// readSet reads one file. Docs are its own where others is nil.
func readSet(file string, others []*pool, pooled bool) (*set, error) {
	pools, err := readPools(file, others == nil)
	if err != nil {
		return nil, err
	}
	if others != nil {
		if pools, err = move(pools, others); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	n := 0
	for _, p := range pools {
		p.lookUp()
		n += len(p.questions)
	}
	if n == 0 {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "%s: there are no questions in it", file)
	}
	if pooled {
		one, err := join(pools)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		pools = []*pool{one}
	}
	s := &set{file: file, pools: slices.DeleteFunc(pools, func(p *pool) bool { return len(p.questions) == 0 })}
	for _, p := range s.pools {
		s.talk = s.talk || slices.ContainsFunc(p.lines, func(l kernel.Line) bool { return l.Speaker != "" })
	}
	return s, nil
}

// lookUp makes questions of the queries. One without a time is asked when the store was filled, whatever day it is today.
func (p *pool) lookUp() {
	filled := afterLast(p.lines)
	for _, raw := range p.queries {
		q := raw.question(p.texts)
		if q.Time.IsZero() {
			q.Time = filled
		}
		p.questions = append(p.questions, q)
	}
}

// readPools reads what a file holds, in the unified or a published form. With docs each must have some, else there are none in
// the result.
func readPools(file string, docs bool) (pools []*pool, err error) {
	err = readUnified(file, func(in *unified) (err error) {
		p := &pool{name: memgpt.CleanText(in.Conv), queries: in.Queries}
		if p.name == "" {
			p.name = fmt.Sprintf("store %d", len(pools)+1)
		}
		if docs && len(in.Docs) == 0 {
			return errNoDocs
		}
		if docs {
			p.lines, p.texts, err = in.lines()
		}
		pools = append(pools, p)
		return err
	})
	if err == nil && len(pools) == 0 {
		err = memgpt.Errorf(memgpt.CodeInvalid, "%s: it is empty", file)
	}
	return pools, err
}

// move returns new pools with the docs of others and the queries of pools: those of equal name go together, and where
// there is only one other, it serves all.
func move(pools, others []*pool) ([]*pool, error) {
	out, named := make([]*pool, 0, len(others)), make(map[string]*pool, len(others))
	for _, o := range others {
		if named[o.name] != nil {
			return nil, fmt.Errorf("the file with the docs has two stores with the name %q", o.name)
		}
		named[o.name] = &pool{name: o.name, lines: o.lines, texts: o.texts}
		out = append(out, named[o.name])
	}
	for _, p := range pools {
		to := named[p.name]
		if len(out) == 1 {
			to = out[0]
		}
		if to == nil {
			return nil, fmt.Errorf("the file with the docs has no store with the name %q", p.name)
		}
		to.queries = append(to.queries, p.queries...)
	}
	return out, nil
}

// join makes one pool of all. A doc that stands in two pools of one name is stored once.
func join(pools []*pool) (*pool, error) {
	all := &pool{name: "all", texts: map[string]string{}}
	for _, p := range pools {
		of := func(id string) string { return p.name + "\x1f" + id }
		for _, l := range p.lines {
			l.ID = of(l.ID)
			if text, ok := all.texts[l.ID]; ok && text == l.Text {
				continue
			} else if ok {
				return nil, fmt.Errorf("two stores have the name %q and different docs with the same id", p.name)
			}
			all.texts[l.ID] = l.Text
			if l.Session != "" {
				l.Session = of(l.Session)
			}
			all.lines = append(all.lines, l)
		}
		for _, q := range p.questions {
			q.Gold = slices.Clone(q.Gold)
			for i := range q.Gold {
				q.Gold[i].ID = of(q.Gold[i].ID)
			}
			all.questions = append(all.questions, q)
		}
	}
	return all, nil
}
