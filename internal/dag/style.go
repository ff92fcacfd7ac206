package dag

import (
	"cmp"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The limits of DESIGN section 6, in lines.
const (
	MaxFunction    = 100  // no function is longer
	LongFunction   = 50   // 95 % of functions are shorter
	MedianFunction = 15   // half of the functions are no longer (DESIGN says about 10)
	MaxFile        = 800  // every file is shorter
	MaxRoot        = 1000 // the root package's files together, tests aside
)

// CheckStyle reports what breaks the rules for size, names and comments. Generated files are excepted.
func CheckStyle(t *Tree) []string {
	return slices.Concat(checkFunctions(t), checkFiles(t), checkRoot(t), checkDocs(t), checkNames(t), checkInit(t), checkSleep(t))
}

func (t *Tree) written(tests bool) []*File {
	return slices.DeleteFunc(slices.Clone(t.Files), func(f *File) bool { return f.Generated || f.Test && !tests })
}

type function struct {
	lines int
	where string
}

// functionsIn measures declared functions, and literals outside of them, from func to the closing brace. A literal inside
// of a function is part of it.
func (t *Tree) functionsIn(f *File) []function {
	var fns []function
	ast.Inspect(f.AST, func(n ast.Node) bool {
		name := "a function literal"
		switch n := n.(type) {
		case *ast.FuncDecl:
			name = n.Name.Name
		case *ast.FuncLit:
		default:
			return true
		}
		start, end := t.Fset.Position(n.Pos()), t.Fset.Position(n.End())
		lines := end.Line - start.Line + 1
		fns = append(fns, function{lines, t.at(n.Pos(), "%s has %d lines", name, lines)})
		return false
	})
	return fns
}

// checkFunctions holds tests to the hard limit only: a table may be long.
func checkFunctions(t *Tree) []string {
	var fns []function
	var problems []string
	for _, f := range t.written(true) {
		for _, fn := range t.functionsIn(f) {
			if fn.lines > MaxFunction {
				problems = append(problems, fmt.Sprintf("%s, and %d is the most: split it by its phases", fn.where, MaxFunction))
			}
			if !f.Test {
				fns = append(fns, fn)
			}
		}
	}
	return append(problems, checkSpread(fns)...)
}

func checkSpread(fns []function) []string {
	var problems []string
	if len(fns) == 0 {
		return nil
	}
	slices.SortFunc(fns, func(a, b function) int { return cmp.Compare(b.lines, a.lines) })
	if m := fns[len(fns)/2].lines; m > MedianFunction {
		problems = append(problems, fmt.Sprintf("the median function has %d lines, and %d is the most: split the longer ones", m, MedianFunction))
	}
	long := slices.IndexFunc(fns, func(fn function) bool { return fn.lines < LongFunction })
	if long < 0 {
		long = len(fns)
	}
	if long*20 > len(fns) {
		problems = append(problems, fmt.Sprintf("%d of %d functions have %d lines or more, and 5 %% is the most: split some of\n\t%s",
			long, len(fns), LongFunction, wheres(fns[:long])))
	}
	return problems
}

func wheres(fns []function) string {
	var s []string
	for _, fn := range fns {
		s = append(s, fn.where)
	}
	return strings.Join(s, "\n\t")
}

func checkFiles(t *Tree) []string {
	var problems []string
	for _, f := range t.written(true) {
		if f.Lines >= MaxFile {
			problems = append(problems, fmt.Sprintf("%s:1: file has %d lines, and must stay under %d: split it by topic", f.Path, f.Lines, MaxFile))
		}
	}
	return problems
}

func checkRoot(t *Tree) []string {
	lines := 0
	for _, f := range t.written(false) {
		if t.Package(f) == t.Module {
			lines += f.Lines
		}
	}
	if lines <= MaxRoot {
		return nil
	}
	return []string{fmt.Sprintf("the root package has %d lines, and %d is the most: move contracts out to the packages that own them, and shrink no comment", lines, MaxRoot)}
}

// noNouns are package names that say nothing (DESIGN section 6).
var noNouns = regexp.MustCompile(`^(util|common|helper|manager|service|type)s?$`)

func checkNames(t *Tree) []string {
	var problems []string
	for _, f := range t.Files {
		for _, name := range append(strings.Split(path.Dir(f.Path), "/"), f.AST.Name.Name) {
			if noNouns.MatchString(name) {
				problems = append(problems, t.at(f.AST.Name.Pos(), "package name %s says nothing: name it with a noun for what it owns", name))
				break
			}
		}
	}
	return problems
}

func checkInit(t *Tree) []string {
	var problems []string
	for _, f := range t.written(true) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				problems = append(problems, t.at(fn.Pos(), "init function: do it in a constructor that the caller calls"))
			}
		}
	}
	return problems
}

var realTime = regexp.MustCompile(`^// real time: \S`)

// checkSleep is a heuristic: it takes any file that imports testing/synctest at its word. Packages of tests for
// others to run (storetest, modeltest) count as tests.
func checkSleep(t *Tree) []string {
	var problems []string
	for _, f := range t.written(true) {
		test := f.Test || strings.HasSuffix(path.Dir(f.Path), "test")
		clock := importName(f.AST, "time")
		if !test || clock == "" || importName(f.AST, "testing/synctest") != "" {
			continue
		}
		excused := t.linesWith(f, realTime)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && isSleep(sel, clock) && !excused[t.Fset.Position(n.Pos()).Line] {
				problems = append(problems, t.at(n.Pos(),
					"time.Sleep in a test: run it in a testing/synctest bubble, wait for an event, or end the line with \"// real time: \" and the reason"))
			}
			return true
		})
	}
	return problems
}

func isSleep(sel *ast.SelectorExpr, clock string) bool {
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == clock && sel.Sel.Name == "Sleep"
}

// importName is the name by which a file knows a package, or "" if it doesn't import it.
func importName(f *ast.File, imp string) string {
	for _, spec := range f.Imports {
		if spec.Path.Value != strconv.Quote(imp) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imp)
	}
	return ""
}

func (t *Tree) linesWith(f *File, re *regexp.Regexp) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			if re.MatchString(c.Text) {
				lines[t.Fset.Position(c.Pos()).Line] = true
			}
		}
	}
	return lines
}
