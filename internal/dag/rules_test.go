package dag

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// files is a module's source, by path.
type files map[string]string

func (f files) fs() fstest.MapFS {
	m := fstest.MapFS{}
	for name, src := range f {
		m[name] = &fstest.MapFile{Data: []byte(src)}
	}
	return m
}

// check holds got against wanted substrings, one for each problem, in order.
func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("problem %d is %q, want %q in it", i, got[i], want[i])
		}
	}
}

func importing(paths ...string) string {
	src := "package x\n"
	for _, p := range paths {
		src += fmt.Sprintf("import _ %q\n", p)
	}
	return src
}

const testPolicy = `
# a comment
memgpt: -
schema: - + example.com/js
kernel: memgpt schema # why
model/a: memgpt
model/b: memgpt
cmd/memgpt: * + *
`

func TestCheckImports(t *testing.T) {
	p, err := ParsePolicy(testPolicy)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		src  files
		want []string
	}{
		{"allowed", files{"kernel/k.go": importing("memgpt", "memgpt/schema", "fmt", "net/url", "io/fs")}, nil},
		{"allowed third party and below", files{"schema/s.go": importing("example.com/js", "example.com/js/sub")}, nil},
		{"adapters do I/O", files{"model/a/a.go": importing("memgpt", "net/http", "os", "log/slog")}, nil},
		{"cmd imports all", files{"cmd/memgpt/m.go": importing("memgpt/model/a", "memgpt/model/b", "example.org/y", "os")}, nil},
		{"tests are free", files{"kernel/k_test.go": importing("os", "memgpt/model/a", "example.org/y")}, nil},
		{"a folder of tests needs no line", files{"test/e2e/x_test.go": importing("os")}, nil},
		{"generators are free", files{"kernel/gen.go": "//go:build ignore\n\n" + importing("os", "example.org/y")}, nil},
		{"testdata, hidden, other module", files{"a/testdata/x.go": importing("a.b/c"), ".x/x.go": "broken", "_x/x.go": "broken",
			"o/go.mod": "module o", "o/x.go": importing("a.b/c"), "_x.go": "broken"}, nil},
		{"not listed, said once", files{"extra/a.go": "package extra", "extra/b.go": "package extra"},
			[]string{"extra/a.go:1: package extra is not listed: add a line"}},
		{"below a listed one is not listed", files{"kernel/queue/q.go": "package queue"}, []string{"package kernel/queue is not listed"}},
		{"edge not allowed", files{"kernel/k.go": importing("memgpt", "memgpt/model/a")},
			[]string{"kernel/k.go:3: kernel may import [memgpt schema] of the module, not model/a"}},
		{"root imports nothing", files{"x.go": importing("memgpt/schema")}, []string{"memgpt may import [] of the module, not schema"}},
		{"schema not the root", files{"schema/s.go": importing("memgpt")}, []string{"schema may import [] of the module, not memgpt"}},
		{"other build tags too", files{"x.go": "//go:build windows && !ignore\n\n" + importing("memgpt/schema")}, []string{"memgpt may import []"}},
		{"root is std only", files{"x.go": importing("example.com/js")}, []string{"memgpt may import third party [], not example.com/js"}},
		{"third party elsewhere", files{"kernel/k.go": importing("example.com/js")}, []string{"kernel may import third party []"}},
		{"a module with a longer name", files{"schema/s.go": importing("example.com/json")}, []string{"not example.com/json"}},
		{"sibling", files{"model/a/a.go": importing("memgpt/model/b")}, []string{"model/a imports its sibling model/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, CheckImports(load(t, tt.src.fs(), 0), p), tt.want...) })
	}
}

func TestPurePackages(t *testing.T) {
	p, err := ParsePolicy("memgpt: -\nschema: -\ntoken: -\nmemtool: -\nkernel: -")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "schema/", "token/", "memtool/", "kernel/"} {
		for _, imp := range []string{"os", "net", "net/http", "database/sql", "os/exec", "log", "log/slog", "net/http/httptrace"} {
			check(t, CheckImports(load(t, files{dir + "x.go": importing(imp)}.fs(), 0), p), "imports "+imp+": take")
		}
	}
}

func TestParsePolicy(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no colon", "a b", "line 1: \"a b\": write"},
		{"no imports", "\na:", "line 2"},
		{"no third party after plus", "a: - +", "line 1"},
		{"space in the name", "a b: -", "line 1"},
		{"twice", "a: -\na: -", "line 2: package a has a line already"},
		{"no such package", "a: b", "a may import b, which has no line"},
		{"sibling", "m/a: m/b\nm/b: -", "may not import its sibling m/b"},
		{"circle", "a: b\nb: c\nc: a", "closes a circle"},
		{"itself", "a: a", "closes a circle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParsePolicy(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// lines is a function of n lines.
func lines(name string, n int) string {
	return "func " + name + "() {\n" + strings.Repeat("\n", n-2) + "}\n"
}

// many is a package p of n functions of a given length each, after extra ones.
func many(n, length int, extra ...string) string {
	src := "// Package p is.\npackage p\n" + strings.Join(extra, "")
	for i := range n {
		src += lines(fmt.Sprint("f", i), length)
	}
	return src
}

const generated = "// Code generated by x. DO NOT EDIT.\n\n"

func TestCheckStyleSize(t *testing.T) {
	fill := func(n int) string { return "// Package p is.\npackage p\n" + strings.Repeat("\n", n-2) }
	for _, tt := range []struct {
		name string
		src  files
		want []string
	}{
		{"good", files{"p/p.go": many(19, 15, lines("a", 100))}, nil},
		{"over 100", files{"p/p.go": many(19, 5, lines("a", 101))}, []string{"p/p.go:3: a has 101 lines, and 100 is the most"}},
		{"over 100 in a test", files{"p/p_test.go": many(0, 0, lines("a", 101))}, []string{"a has 101 lines"}},
		{"over 100 as a literal", files{"p/p.go": many(19, 5, "var a = "+lines("", 101))}, []string{"a function literal has 101 lines"}},
		{"literal inside counts once", files{"p/p.go": many(19, 5, "func a() {\nfunc() {\n"+strings.Repeat("\n", 97)+"}()\n}\n")},
			[]string{"a has 101 lines"}},
		{"6 % of 50 or more", files{"p/p.go": many(18, 5, lines("a", 50))}, []string{"1 of 19 functions have 50 lines or more"}},
		{"49 is short", files{"p/p.go": many(1, 5, lines("a", 49))}, nil},
		{"median", files{"p/p.go": many(3, 16, lines("a", 1+1), lines("b", 2))}, []string{"the median function has 16 lines"}},
		{"spread is not for tests", files{"p/p_test.go": many(3, 60)}, nil},
		{"generated is free", files{"p/p.go": many(0, 0), "p/g.go": generated + many(20, 110)}, nil},
		{"file of 799", files{"p/p.go": fill(799)}, nil},
		{"file of 800", files{"p/p.go": fill(800)}, []string{"p/p.go:1: file has 800 lines"}},
		{"test file of 800", files{"p/p_test.go": fill(800)}, []string{"file has 800 lines"}},
		{"generated file of 800", files{"p/p.go": fill(3), "p/g.go": generated + fill(900)}, nil},
		{"root of 1000", files{"a.go": fill(500), "b.go": fill(500), "c_test.go": fill(700), "p/p.go": fill(700)}, nil},
		{"root of 1001", files{"a.go": fill(500), "b.go": fill(501)}, []string{"the root package has 1001 lines"}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, CheckStyle(load(t, tt.src.fs(), 0)), tt.want...) })
	}
}

func TestCheckStyleDocs(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      []string
	}{
		{"all said", `
			// F is.
			func F() {}
			// T is.
			type T struct{ X int }
			// M does.
			func (T) M() {}
			// Kinds.
			const ( A = 1; B = 2 )
			var (
				C int // is
				// D is.
				D int
			)
			// I is.
			type I interface {
				// M does.
				M()
				N()
			}`, nil},
		{"not exported", "func f() {}\ntype t struct{}\nfunc (t) M() {}\nconst a = 1\nfunc (*g[T]) M() {}", nil},
		{"function", "func F() {}", []string{"p/p.go:3: exported F has no doc comment"}},
		{"directive only", "//go:noinline\nfunc F() {}", []string{"exported F"}},
		{"method", "// T is.\ntype T[A any] int\nfunc (*T[A]) M() {}", []string{"exported M"}},
		{"type", "type T int", []string{"exported T"}},
		{"type in a group", "// Types.\ntype ( T int )", []string{"exported T"}},
		{"constant", "const A, b = 1, 2", []string{"exported A"}},
		{"variable in a group", "var ( A int; b int )", []string{"exported A"}},
		{"interface", "type I interface{ M() }", []string{"exported I"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := files{"p/p.go": "// Package p is.\npackage p\n" + tt.src, "p/p_test.go": "package p\nfunc T() {}"}
			check(t, CheckStyle(load(t, src.fs(), 0)), tt.want...)
			src["p/p.go"] = generated + src["p/p.go"]
			check(t, CheckStyle(load(t, src.fs(), 0)))
		})
	}
	check(t, CheckStyle(load(t, files{"p/a.go": "package p", "p/b.go": "package p"}.fs(), 0)), "p/a.go:1: package p has no package comment")
	check(t, CheckStyle(load(t, files{"p/a.go": "package p", "p/b.go": "// Package p is.\npackage p"}.fs(), 0)))
}

func TestCheckStyleNames(t *testing.T) {
	for _, name := range []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "service", "services", "type", "types"} {
		if name != "type" {
			check(t, CheckStyle(load(t, files{"p/p.go": "// Package p is.\npackage " + name}.fs(), 0)), "package name "+name+" says nothing")
		}
		check(t, CheckStyle(load(t, files{name + "/x/p.go": "// Package p is.\npackage p"}.fs(), 0)), "package name "+name+" says nothing")
	}
	for _, name := range []string{"typeset", "commons2", "p"} {
		check(t, CheckStyle(load(t, files{name + "/p.go": "// Package p is.\npackage " + name}.fs(), 0)))
	}
}

func TestCheckStyleInit(t *testing.T) {
	const src = "// Package p is.\npackage p\n"
	for _, tt := range []struct {
		name string
		src  files
		want []string
	}{
		{"method", files{"p/p.go": src + "type t int\nfunc (t) init() {}"}, nil},
		{"init", files{"p/p.go": src + "func init() {}"}, []string{"p/p.go:3: init function"}},
		{"init in a test", files{"p/p_test.go": src + "func init() {}"}, []string{"init function"}},
		{"generated", files{"p/p.go": generated + src + "func init() {}"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, CheckStyle(load(t, tt.src.fs(), 0)), tt.want...) })
	}
}

func TestCheckStyleSleep(t *testing.T) {
	const head, sleep = "// Package p is.\npackage p\nimport \"time\"\n", "func f() {\n\ttime.Sleep(1)%s\n}\n"
	plain := fmt.Sprintf(sleep, "")
	for _, tt := range []struct {
		name string
		src  files
		want []string
	}{
		{"real code", files{"p/p.go": head + plain}, nil},
		{"bubble", files{"p/p_test.go": head + "import _ \"testing/synctest\"\n" + plain}, nil},
		{"reason", files{"p/p_test.go": head + fmt.Sprintf(sleep, " // real time: the process must start")}, nil},
		{"other package's Sleep", files{"p/p_test.go": "package p\nimport time \"x/y\"\n" + plain}, nil},
		{"test", files{"p/p_test.go": head + plain}, []string{"p/p_test.go:5: time.Sleep in a test"}},
		{"suite", files{"store/storetest/p.go": head + plain}, []string{"time.Sleep in a test"}},
		{"comment without a reason", files{"p/p_test.go": head + fmt.Sprintf(sleep, " // real time: ")}, []string{"time.Sleep"}},
		{"reason on another line", files{"p/p_test.go": head + fmt.Sprintf(sleep, "\n// real time: because")}, []string{"time.Sleep"}},
		{"renamed", files{"p/p_test.go": "package p\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }"}, []string{"time.Sleep"}},
		{"as a value", files{"p/p_test.go": head + "var s = time.Sleep"}, []string{"time.Sleep"}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, CheckStyle(load(t, tt.src.fs(), 0)), tt.want...) })
	}
}

func TestCheckText(t *testing.T) {
	const w, r, tmp = "/wo" + "rk/main", "/ro" + "ot/.cache", "/t" + "mp/x"
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"clean", "a.md", "see ../shared, home" + w + ", https://example.com" + r + ", mktemp, /tmp/$x, ./a" + tmp, nil},
		{"work", "a.md", "one\nsee " + w + ".", []string{"a.md:2: " + w}},
		{"at the start", "a.md", w, []string{w}},
		{"root", "a.go", `"` + r + `"`, []string{r}},
		{"tmp", "a.sh", "x=" + tmp, []string{tmp}},
		{"file URL", "a", "file://" + w, []string{w}},
		{"binary", "a.bin", "\x00" + w, nil},
		{"proxy", "Dockerfile", "GOPROXY=https://proxy.go" + "lang.org", []string{"is a package registry"}},
		{"pypi", "x.py", "pypi" + ".org/simple", []string{"is a package registry"}},
		{"npm lock", "package-lock.json", "https://registry.npm" + "js.org/a", []string{"is a package registry"}},
		{"go.sum may", "go.sum", "sum.go" + "lang.org", nil},
		{"go.sum may not hold paths", "go.sum", w, []string{w}},
		{"no host", "a.md", "pypi-org, mypypixorg, crates", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := CheckText(files{tt.file: tt.text}.fs(), []string{tt.file})
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, tt.want...)
		})
	}
	if _, err := CheckText(files{}.fs(), []string{"gone"}); err == nil {
		t.Error("a file that can't be read passed")
	}
}

func TestLoadFails(t *testing.T) {
	if _, err := Load(files{"x.go": "broken"}.fs(), module, 0); err == nil || !strings.Contains(err.Error(), "x.go:1") {
		t.Errorf("error %v, want the place of the syntax error", err)
	}
}
