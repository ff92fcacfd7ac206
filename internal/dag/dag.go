// Package dag holds the rules that the module's source keeps to: which package may import which
// (policy.txt), the limits of DESIGN's style section, and what no tracked file may contain. It only
// reads source and reports; its tests run the rules on the module, and each rule on source that breaks it.
// It does not build, type-check or format anything: that is the work of the go command and staticcheck.
package dag

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// Tree is the Go source of one module.
type Tree struct {
	Module string         // the module's path, which is also the policy's name of the root package
	Fset   *token.FileSet // positions of all files
	Files  []*File        // in the order of their paths
}

// File is one parsed Go file of a [Tree].
type File struct {
	Path      string // slash separated, from the module's root
	Lines     int    // newlines in it
	Test      bool   // its name ends in _test.go
	Program   bool   // "//go:build ignore": a generator or the like, no part of its package
	Generated bool   // carries the standard "Code generated … DO NOT EDIT." line
	AST       *ast.File
}

// Load parses every Go file of the module at the root of fsys, whatever its build constraints. It passes over
// what the go command passes over: testdata, vendor, names that start with a dot or underscore, other modules.
func Load(fsys fs.FS, module string, mode parser.Mode) (*Tree, error) {
	t := &Tree{Module: module, Fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && skipped(fsys, name, d):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.ContainsAny(path.Base(name)[:1], "._"):
			return nil
		}
		return t.add(fsys, name, mode)
	})
	return t, err
}

func skipped(fsys fs.FS, name string, d fs.DirEntry) bool {
	if !d.IsDir() {
		return false
	}
	base := path.Base(name)
	if base == "testdata" || base == "vendor" || strings.ContainsAny(base[:1], "._") {
		return true
	}
	_, err := fs.Stat(fsys, name+"/go.mod")
	return err == nil
}

func (t *Tree) add(fsys fs.FS, name string, mode parser.Mode) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(t.Fset, name, src, mode|parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	t.Files = append(t.Files, &File{
		Path:      name,
		Lines:     bytes.Count(src, []byte("\n")),
		Test:      strings.HasSuffix(name, "_test.go"),
		Program:   isProgram(f),
		Generated: ast.IsGenerated(f),
		AST:       f,
	})
	return nil
}

func isProgram(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Pos() > f.Package {
				return false
			}
			if x, err := constraint.Parse(c.Text); err == nil && x.String() == "ignore" {
				return true
			}
		}
	}
	return false
}

// Package is the name of f's package in the policy: its folder, or the module's path for the root.
func (t *Tree) Package(f *File) string {
	if dir := path.Dir(f.Path); dir != "." {
		return dir
	}
	return t.Module
}

// at prints a problem with its place, as compilers do.
func (t *Tree) at(pos token.Pos, format string, args ...any) string {
	p := t.Fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}
