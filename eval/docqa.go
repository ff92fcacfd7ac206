package eval

// docsPersona tells an agent what its archive is about.
const docsPersona = "I answer questions from documents. They are not in front of me: they are kept in my archival storage, so I search" +
	" it before I answer, and again in other words where the first hits don't say it. What stands there counts, not what I suppose."

// DocKs are the numbers of documents that the paper's figure 5 gives its baselines.
func DocKs() []int { return []int{1, 5, 10, 20, 50, 100, 200} }

// DocQA reads questions about documents from a file of the unified format, see [Talks]. The docs are archival passages, each
// whole; the baseline of one search takes its first K, however weak, shortened so that they fit.
//
// Other than in the paper, the documents are shortened to fit in tokens and the longest first (its script cut each at a number
// of characters where it had counted tokens, about a quarter of what fits), the questions are drawn evenly from the
// file and not its first 50, and an answer needs no quotation of its document.
func DocQA(path string, pooled bool) (*Suite, error) {
	set, err := readSet(path, nil, pooled)
	if err != nil {
		return nil, err
	}
	s := &Suite{Name: SuiteDocQA, Contained: true, Weak: true}
	for _, p := range set.pools {
		c := Case{Name: p.name, Persona: docsPersona, Now: afterLast(p.lines), Questions: p.questions}
		for _, l := range p.lines {
			c.Passages = append(c.Passages, Passage{l.ID, l.Text})
		}
		s.Cases = append(s.Cases, c)
	}
	return s, nil
}
