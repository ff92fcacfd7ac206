package dag

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// checkDocs wants a comment on each package, each exported function, type, constant and variable, and each exported method of
// an exported type. A group's comment stands for the constants and variables in it, and a type's for its fields or, in an
// interface, its methods.
func checkDocs(t *Tree) []string {
	var problems []string
	commented, first := map[string]bool{}, map[string]token.Pos{}
	for _, f := range t.written(false) {
		if !f.Program {
			name := t.Package(f)
			commented[name] = commented[name] || said(f.AST.Doc)
			if _, ok := first[name]; !ok {
				first[name] = f.AST.Package
			}
		}
		for _, id := range bare(f.AST) {
			problems = append(problems, t.at(id.Pos(), "exported %s has no doc comment: say what it is, with units, shape and errors", id.Name))
		}
	}
	for name, pos := range first {
		if !commented[name] {
			problems = append(problems, t.at(pos, "package %s has no package comment: say what it owns and what it does not do", name))
		}
	}
	slices.Sort(problems)
	return problems
}

// said is whether a comment has text, directives such as go:embed aside.
func said(docs ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(docs, func(g *ast.CommentGroup) bool { return g != nil && g.Text() != "" })
}

// bare are the exported names of a file that nothing is said about.
func bare(f *ast.File) []*ast.Ident {
	var ids []*ast.Ident
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d.Recv) && !said(d.Doc) {
				ids = append(ids, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				ids = append(ids, bareSpec(d, spec)...)
			}
		}
	}
	return ids
}

func bareSpec(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		if said(d.Doc, s.Doc, s.Comment) {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(s.Names), func(id *ast.Ident) bool { return !id.IsExported() })
	case *ast.TypeSpec:
		if !s.Name.IsExported() || said(s.Doc, s.Comment) || !d.Lparen.IsValid() && said(d.Doc) {
			return nil
		}
		return []*ast.Ident{s.Name}
	}
	return nil
}

func receiverExported(recv *ast.FieldList) bool {
	if recv == nil {
		return true
	}
	x := recv.List[0].Type
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			panic(fmt.Sprintf("dag: receiver of type %T, which Go does not allow", x))
		}
	}
}
