package schema

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// maxProblems bounds what a model is told at once.
const maxProblems = 5

// check says what is wrong with v, each problem with the path of the value it
// is about. Nothing means that v meets the schema.
func (w *walk) check(n *node, v value, path string) []string {
	if !w.spend() {
		return []string{"the arguments are too ambiguous to be checked; write fewer or simpler ones"}
	}
	if maskOf(v)&n.types == 0 || n.enum != nil && !oneOf(n.enum, v) {
		return w.mismatch(path, n.phrase, v, n.enum)
	}
	problems := n.limits.check(v, path)
	if w.quiet && problems != nil {
		return problems
	}
	switch v.kind {
	case array:
		problems = append(problems, w.checkItems(n, v, path)...)
	case object:
		problems = append(problems, w.checkFields(n, v, path)...)
	}
	problems = append(problems, w.checkParts(n, v, path)...)
	return problems[:min(len(problems), maxProblems)]
}

// meets reports whether v meets n.
func (w *walk) meets(n *node, v value) bool {
	before := w.quiet
	w.quiet = true
	problems := w.check(n, v, "")
	w.quiet = before
	return len(problems) == 0
}

// mismatch says that v is not what was wanted.
func (w *walk) mismatch(path string, wanted func() string, v value, enum []value) []string {
	if w.quiet {
		return []string{"mismatch"}
	}
	w.fuel -= complaintCost
	return []string{fmt.Sprintf("%s must be %s, but is %s%s", subject(path), wanted(), brief(v), meant(enum, v))}
}

// subject names the value at a path in a sentence.
func subject(path string) string {
	if path == "" {
		return "the arguments"
	}
	return fmt.Sprintf("%q", path)
}

func oneOf(enum []value, v value) bool {
	for _, e := range enum {
		if same(e, v) {
			return true
		}
	}
	return false
}

// meant suggests the value of an enum that is nearest to v.
func meant(enum []value, v value) string {
	words := make([]string, len(enum))
	for i, e := range enum {
		words[i] = e.str
	}
	near := Closest(v.str, words)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

func (w *walk) checkItems(n *node, v value, path string) []string {
	var problems []string
	for i, item := range v.items {
		part := n.items
		if i < len(n.prefix) {
			part = n.prefix[i]
		}
		if part != nil && len(problems) < maxProblems {
			problems = append(problems, w.check(part, item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return problems
}

func (w *walk) checkFields(n *node, v value, path string) []string {
	var problems []string
	for _, name := range n.required {
		if !v.has(name) {
			problems = append(problems, fmt.Sprintf("%q is missing", join(path, name)))
		}
	}
	for _, f := range v.fields {
		if len(problems) < maxProblems {
			problems = append(problems, w.checkField(n, f, join(path, f.name))...)
		}
	}
	return problems
}

func (w *walk) checkField(n *node, f field, path string) []string {
	var problems []string
	part := n.property(f.name)
	if part != nil {
		problems = w.check(part, f.value, path)
	}
	for _, p := range n.patterns {
		if p.pattern != nil && p.pattern.MatchString(f.name) {
			problems = append(problems, w.check(p.node, f.value, path)...)
		}
	}
	switch {
	case part != nil || n.matches(f.name):
		return problems
	case n.closed:
		return append(problems, fmt.Sprintf("%q is unknown", path))
	case n.rest != nil:
		return append(problems, w.check(n.rest, f.value, path)...)
	}
	return problems
}

// checkParts checks v against the schemas that apply in place.
func (w *walk) checkParts(n *node, v value, path string) []string {
	var problems []string
	if n.ref != nil {
		problems = w.check(n.ref, v, path)
	}
	for _, part := range n.all {
		problems = append(problems, w.check(part, v, path)...)
	}
	problems = append(problems, w.checkChoice(n.any, v, path, false)...)
	problems = append(problems, w.checkChoice(n.one, v, path, true)...)
	if n.not != nil && w.meets(n.not, v) {
		problems = append(problems, fmt.Sprintf("%s must not be %s", subject(path), brief(v)))
	}
	if n.cond == nil {
		return problems
	}
	then := n.then
	if !w.meets(n.cond, v) {
		then = n.alt
	}
	if then != nil {
		problems = append(problems, w.check(then, v, path)...)
	}
	return problems
}

// checkChoice checks v against alternatives. If a single one takes the type of
// v, that is the one whose problems are worth telling.
func (w *walk) checkChoice(choice []*node, v value, path string, exactly bool) []string {
	if choice == nil {
		return nil
	}
	met := 0
	var typed []*node
	for _, part := range choice {
		switch {
		case w.meets(part, v):
			met++
		case part.mask&maskOf(v) != 0:
			typed = append(typed, part)
		}
	}
	all := func() string { return alternatives(choice) }
	switch {
	case met == 1, met > 1 && !exactly:
		return nil
	case met > 1:
		return w.mismatch(path, func() string { return "only one of " + all() }, v, nil)
	case len(typed) == 1 && !w.quiet:
		return w.check(typed[0], v, path)
	default:
		return w.mismatch(path, all, v, nil)
	}
}

// check compares v with the limits for its type.
func (l *limits) check(v value, path string) []string {
	var problems []string
	complain := func(format string, args ...any) {
		problems = append(problems, subject(path)+" "+fmt.Sprintf(format, args...))
	}
	switch v.kind {
	case number:
		l.checkNumber(float(v.str), v.str, complain)
	case text:
		between(float64(utf8.RuneCountInString(v.str)), l.shortest, l.longest, "characters", complain)
		if l.pattern != nil && !l.pattern.MatchString(v.str) {
			complain("must match the pattern %s, but is %s", l.pattern, brief(v))
		}
	case array:
		between(float64(len(v.items)), l.fewest, l.most, "items", complain)
		if l.unique && repeats(v.items) {
			complain("must not hold the same item twice")
		}
	case object:
		between(float64(len(v.fields)), l.fewestFields, l.mostFields, "fields", complain)
	}
	return problems
}

func (l *limits) checkNumber(f float64, s string, complain func(string, ...any)) {
	switch {
	case l.min != nil && f < *l.min:
		complain("must be at least %v, but is %s", *l.min, s)
	case l.max != nil && f > *l.max:
		complain("must be at most %v, but is %s", *l.max, s)
	case l.above != nil && f <= *l.above:
		complain("must be more than %v, but is %s", *l.above, s)
	case l.below != nil && f >= *l.below:
		complain("must be less than %v, but is %s", *l.below, s)
	}
	if l.multiple != nil && *l.multiple > 0 {
		// Decimal steps such as 0.01 have no exact float.
		q := f / *l.multiple
		if math.Abs(q-math.Round(q)) > 1e-9*max(1, math.Abs(q)) {
			complain("must be a multiple of %v, but is %s", *l.multiple, s)
		}
	}
}

func between(n float64, low, high *float64, what string, complain func(string, ...any)) {
	if low != nil && n < *low {
		complain("must have at least %v %s, but has %v", *low, what, n)
	}
	if high != nil && n > *high {
		complain("must have at most %v %s, but has %v", *high, what, n)
	}
}

func repeats(items []value) bool {
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		s := item.String()
		if seen[s] {
			return true
		}
		seen[s] = true
	}
	return false
}

// phrase says in a few words what n wants, as in "must be integer".
func (n *node) phrase() string { return n.describe(2) }

func alternatives(choice []*node) string {
	var words []string
	for _, n := range choice {
		words = append(words, n.describe(1))
	}
	return enumerate(words)
}

// enumerate joins words, each once, in a form that stays short.
func enumerate(words []string) string {
	const most = 12
	var list []string
	seen := map[string]bool{}
	for _, s := range words {
		if !seen[s] {
			list = append(list, s)
		}
		seen[s] = true
	}
	if len(list) > most {
		list = append(list[:most], "…")
	}
	return strings.Join(list, " or ")
}
