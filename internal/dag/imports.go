package dag

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Policy says for each package of the module, by folder, what it may import.
type Policy map[string]Rule

// Rule is one line of a [Policy]. A list that holds "*" allows anything.
type Rule struct {
	Imports    []string // packages of the module, by folder
	ThirdParty []string // module paths; packages below them are meant too
}

// ParsePolicy reads a policy in the format that the head of policy.txt describes. A line that can't be read, is there
// twice, names a package without a line, allows a sibling, or closes a circle is an error.
func ParsePolicy(text string) (Policy, error) {
	p := Policy{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, rule, err := parseRule(line)
		if err == nil && hasKey(p, name) {
			err = fmt.Errorf("package %s has a line already", name)
		}
		if err != nil {
			return nil, fmt.Errorf("policy line %d: %w", i+1, err)
		}
		p[name] = rule
	}
	return p, p.validate()
}

func parseRule(line string) (string, Rule, error) {
	name, rest, ok := strings.Cut(line, ":")
	own, third, plus := strings.Cut(rest, "+")
	r := Rule{Imports: strings.Fields(own), ThirdParty: strings.Fields(third)}
	if !ok || strings.ContainsAny(name, " \t") || len(r.Imports) == 0 || plus && len(r.ThirdParty) == 0 {
		return "", r, fmt.Errorf("%q: write \"package: imports\" or \"package: imports + third party\", with - for no imports", line)
	}
	if slices.Equal(r.Imports, []string{"-"}) {
		r.Imports = nil
	}
	return name, r, nil
}

func hasKey(p Policy, name string) bool {
	_, ok := p[name]
	return ok
}

func (p Policy) validate() error {
	for name, rule := range p {
		for _, dep := range rule.Imports {
			switch {
			case dep == "*":
			case !hasKey(p, dep):
				return fmt.Errorf("policy: %s may import %s, which has no line: give it one, or correct the name", name, dep)
			case siblings(name, dep):
				return fmt.Errorf("policy: %s may not import its sibling %s: move what they share to a package both may import", name, dep)
			case p.reaches(dep, name):
				return fmt.Errorf("policy: the edge from %s to %s closes a circle: take one of its edges out", name, dep)
			}
		}
	}
	return nil
}

// reaches says whether following the edges from one package comes to another.
func (p Policy) reaches(from, to string) bool {
	seen := map[string]bool{}
	var walk func(string) bool
	walk = func(at string) bool {
		if at == to {
			return true
		}
		if seen[at] {
			return false
		}
		seen[at] = true
		return slices.ContainsFunc(p[at].Imports, walk)
	}
	return walk(from)
}

// siblings are different packages in one folder below the root, such as model/openai and model/ollama.
func siblings(a, b string) bool {
	return a != b && path.Dir(a) == path.Dir(b) && path.Dir(a) != "."
}

// Pure are the packages that do no I/O of their own (DESIGN section 3); "" is the root.
func Pure() []string { return []string{"", "schema", "token", "memtool", "kernel"} }

// impure says whether an import path of the standard library is kept from the pure packages. Of net only the
// package itself and net/http: net/url is text.
func impure(imp string) bool {
	below := func(root string) bool { return imp == root || strings.HasPrefix(imp, root+"/") }
	return imp == "net" || slices.ContainsFunc([]string{"os", "net/http", "database/sql", "log"}, below)
}

// CheckImports reports each package that the policy doesn't list and each import that it doesn't allow.
func CheckImports(t *Tree, p Policy) []string {
	var problems []string
	unlisted := map[string]bool{}
	for _, f := range t.Files {
		if f.Test || f.Program {
			continue
		}
		name := t.Package(f)
		if !hasKey(p, name) && !unlisted[name] {
			unlisted[name] = true
			problems = append(problems, t.at(f.AST.Package,
				"package %s is not listed: add a line for it to internal/dag/policy.txt, with what it may import", name))
		}
		for _, spec := range f.AST.Imports {
			if fault := t.checkImport(p, name, spec); fault != "" {
				problems = append(problems, t.at(spec.Pos(), "%s", fault))
			}
		}
	}
	return problems
}

func (t *Tree) checkImport(p Policy, name string, spec *ast.ImportSpec) string {
	imp, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return err.Error()
	}
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case first == t.Module:
		return t.checkOwn(p, name, imp)
	case strings.Contains(first, "."):
		return checkThirdParty(p, name, imp)
	case t.isPure(name) && impure(imp):
		return fmt.Sprintf("the pure package %s imports %s: take what it needs through an interface, and do the I/O in an adapter", name, imp)
	}
	return ""
}

func (t *Tree) isPure(name string) bool {
	return name == t.Module || slices.Contains(Pure(), name)
}

func (t *Tree) checkOwn(p Policy, name, imp string) string {
	dep := imp
	if imp != t.Module {
		dep = strings.TrimPrefix(imp, t.Module+"/")
	}
	rule := p[name]
	if siblings(name, dep) {
		return fmt.Sprintf("%s imports its sibling %s: move what they share to a package both may import, or wire them in cmd/memgpt", name, dep)
	}
	if slices.Contains(rule.Imports, "*") || slices.Contains(rule.Imports, dep) {
		return ""
	}
	return fmt.Sprintf("%s may import [%s] of the module, not %s: declare a small interface of its own and wire it in cmd/memgpt, or add the edge to internal/dag/policy.txt and say why",
		name, strings.Join(rule.Imports, " "), dep)
}

func checkThirdParty(p Policy, name, imp string) string {
	ok := slices.ContainsFunc(p[name].ThirdParty, func(mod string) bool {
		return mod == "*" || imp == mod || strings.HasPrefix(imp, mod+"/")
	})
	if ok {
		return ""
	}
	return fmt.Sprintf("%s may import third party [%s], not %s: do it with the standard library, or add the module after a + to its line in internal/dag/policy.txt",
		name, strings.Join(p[name].ThirdParty, " "), imp)
}
