// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The programs below testdata are modules as their authors wrote them for older generations, after the documents of
// these versions. Most files of three of them are in internal/tests/generations, which moves them by hand. The file
// want.txt has what is printed about a program.

// program is a program of a generation.
type program struct {
	// name is the name of its directory below testdata. Defaults to the generation.
	name       string
	generation Generation
	module     string
	// before is at least the number of errors of the compiler after the import paths alone were changed.
	before int
	// after is the number of errors of the compiler that trueup migrate leaves.
	after int
	// hand are the changes by hand that make the program compile and its tests pass.
	hand []handEdit
}

type handEdit struct{ file, from, to string }

var programs = []program{
	{generation: V01, before: 60, module: "example.com/streaming"},
	{
		generation: V06, before: 30, module: "example.com/functions",
		hand: []handEdit{
			{"function_reconciler_test.go", "; f.Finalizers = nil }", " }"},
		},
	},
	{
		generation: V12, before: 8, module: "example.com/site",
		hand: []handEdit{
			{"site.go", "fmt.Fprintf(w, text)", `fmt.Fprintf(w, "%s", text)`},
			{
				"site_test.go", "GivenObjects: []client.Object{paused},",
				"GivenObjects: []client.Object{paused},\nExpectedResult: reconcilers.Result{Requeue: true},",
			},
		},
	},
	{generation: Runtime, before: 1, module: "example.com/plain"},
	{name: "grafana-app-sdk-issues", generation: Grafana, before: 5, module: "example.com/issues"},
	// An app with generated code.
	{
		generation: Grafana, before: 15, module: "example.com/links",
		hand: []handEdit{
			{"pkg/app/app.go", "KubeConfig: cfg.KubeConfig,", "KubeConfig: cfg.KubeConfig,\nClients: clients,"},
		},
	},
}

// Of the errors that the compiler reports after the import paths have changed, at most 5 % are left.
func TestFewErrorsAreLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles what the programs import, unless the build cache has it")
	}
	t.Parallel()
	for _, p := range programs {
		t.Run(p.folder(), func(t *testing.T) {
			dir := oldProgram(t, p)
			sources := sourcesOf(t, dir)
			for name, content := range sources {
				for _, old := range oldModules {
					content = strings.ReplaceAll(content, `"`+old+`/`, `"`+trueupModule+`/`)
				}
				sources[name] = content
			}
			before := typeErrors(t, p.module, sources)
			if err := Run(t.Context(), io.Discard, Options{Dir: dir, Force: true}); err != nil && !errors.Is(err, ErrLeft) {
				t.Fatal(err)
			}
			after := typeErrors(t, p.module, sourcesOf(t, dir))
			t.Logf("%d errors after the import paths have changed, %d after trueup migrate", len(before), len(after))
			if len(before) < p.before || len(after) != p.after {
				t.Errorf("errors before and after: %d and %d, want at least %d and %d; left:\n%s",
					len(before), len(after), p.before, p.after, strings.Join(after, "\n"))
			}
			if 20*len(after) > len(before) {
				t.Errorf("%d of %d errors are left", len(after), len(before))
			}
		})
	}
}

// The guides say how many errors are left in the programs.
func TestGuidesHaveTheNumberOfErrors(t *testing.T) {
	for _, p := range programs {
		if p.name != "" { // the guide names one program
			continue
		}
		guide := "docs/migration/" + string(p.generation) + ".md"
		want := fmt.Sprintf("at least %d after the import paths have changed, %d after `trueup migrate`", p.before, p.after)
		if !strings.Contains(readFile(t, "../../../../"+guide), want) {
			t.Errorf("%s does not say: %s", guide, want)
		}
	}
}

// What is printed, and what is changed.
func TestOutput(t *testing.T) {
	for _, p := range programs {
		t.Run(p.folder(), func(t *testing.T) {
			t.Parallel()
			dir := oldProgram(t, p)
			var out bytes.Buffer
			if err := Run(t.Context(), &out, Options{Dir: dir, Diff: true}); err != nil && !errors.Is(err, ErrLeft) {
				t.Fatal(err)
			}
			requireGolden(t, filepath.Join("testdata", p.folder(), "want.txt"), out.String())
		})
	}
}

// With the changes by hand, the programs compile, go vet reports nothing, and their tests pass.
func TestProgramsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles and links the programs")
	}
	t.Parallel()
	// One module with all programs needs one go command.
	root := t.TempDir()
	repository, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	goMod := strings.Replace(readFile(t, filepath.Join(repository, "go.mod")), "module "+trueupModule+"\n",
		"module example.com\n", 1)
	goMod += "\nrequire " + trueupModule + " v0.0.0\n\nreplace " + trueupModule + " => " + repository + "\n"
	writeFile(t, filepath.Join(root, "go.mod"), goMod)
	writeFile(t, filepath.Join(root, "go.sum"), readFile(t, filepath.Join(repository, "go.sum")))
	for _, p := range programs {
		dir := oldProgram(t, p)
		if err := Run(t.Context(), io.Discard, Options{Dir: dir, Force: true}); err != nil && !errors.Is(err, ErrLeft) {
			t.Fatal(err)
		}
		for _, e := range p.hand {
			content := readFile(t, filepath.Join(dir, e.file))
			if !strings.Contains(content, e.from) {
				t.Errorf("%s does not contain %q:\n%s", e.file, e.from, content)
			}
			writeFile(t, filepath.Join(dir, e.file), strings.ReplaceAll(content, e.from, e.to))
		}
		for name, content := range sourcesOf(t, dir) {
			writeFile(t, filepath.Join(root, path.Base(p.module), name), content)
		}
		more, err := filepath.Glob(filepath.Join("testdata", p.folder(), "*_test.go.txt")) // for the program after the move
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range more {
			moved := strings.TrimSuffix(filepath.Base(name), ".txt")
			writeFile(t, filepath.Join(root, path.Base(p.module), moved), readFile(t, name))
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-ldflags=-w", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", cmd, err, out)
	}
}

// oldProgram returns a copy of a program below testdata.
func oldProgram(t *testing.T, p program) string {
	t.Helper()
	dir, from := t.TempDir(), filepath.Join("testdata", p.folder())
	writeFile(t, filepath.Join(dir, "go.mod"), readFile(t, filepath.Join(from, "go.mod.txt")))
	for _, from := range p.folders() {
		for name, content := range sourcesOf(t, from) {
			writeFile(t, filepath.Join(dir, name), content)
		}
	}
	return dir
}

func (p program) folder() string { return cmp.Or(p.name, string(p.generation)) }

// folders are the directories with the files of a program.
func (p program) folders() []string {
	folders := []string{filepath.Join("testdata", p.folder())}
	shared := filepath.Join("../../../../internal/tests/generations/testdata/moved", p.folder(), "before")
	if _, err := os.Stat(shared); err == nil {
		folders = append(folders, shared)
	}
	return folders
}

// sourcesOf returns the Go files below a directory.
func sourcesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sources := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".go") {
			relative, _ := filepath.Rel(dir, name)
			sources[filepath.ToSlash(relative)] = readFile(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// exports returns the files with the types of the packages that programs may import.
var exports = sync.OnceValues(func() (map[string]string, error) {
	imported := map[string]bool{}
	var folders []string
	for _, p := range programs {
		folders = append(folders, p.folders()...)
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range parsed.Imports {
				known, _ := strconv.Unquote(spec.Path.Value)
				if below, ok := belowOldModule(known); ok {
					known = trueupModule + "/" + below
				}
				if !strings.HasPrefix(known, "example.com/") {
					imported[known] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, name := range []string{
		"context", "errors", "fmt", "strings", "time", "k8s.io/api/apps/v1", "k8s.io/apimachinery/pkg/util/errors",
		"k8s.io/apimachinery/pkg/util/validation/field", "github.com/go-logr/logr/testr", controllerRuntime,
		controllerRuntime + "/pkg/client/apiutil", trueupModule + "/informer", trueupModule + "/simple",
	} {
		imported[name] = true
	}
	args := []string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for name := range imported {
		args = append(args, name)
	}
	slices.Sort(args[6:])
	cmd := exec.Command("go", args...)
	cmd.Dir = "../../../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) == 2 {
			files[words[0]] = words[1]
		}
	}
	return files, nil
})

// checker type-checks a program with the types of the packages that it imports.
type checker struct {
	module  string
	fset    *token.FileSet
	files   map[string][]*ast.File // by directory
	checked map[string]*types.Package
	gc      types.Importer
	exports map[string]string
	errs    []string
}

func typeErrors(t *testing.T, module string, sources map[string]string) []string {
	t.Helper()
	files, err := exports()
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{
		module: module, fset: token.NewFileSet(), files: map[string][]*ast.File{}, checked: map[string]*types.Package{},
		exports: files,
	}
	c.gc = importer.ForCompiler(c.fset, "gc", func(name string) (io.ReadCloser, error) { return os.Open(files[name]) })
	for name, content := range sources {
		parsed, err := parser.ParseFile(c.fset, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c.files[path.Dir(name)] = append(c.files[path.Dir(name)], parsed)
	}
	for dir, files := range c.files {
		var internal, external []*ast.File
		for _, f := range files {
			if strings.HasSuffix(f.Name.Name, "_test") {
				external = append(external, f)
			} else {
				internal = append(internal, f)
			}
		}
		c.check(path.Join(module, dir), internal, true)
		c.check(path.Join(module, dir)+"_test", external, true)
	}
	slices.Sort(c.errs)
	return slices.Compact(c.errs)
}

func (c *checker) check(name string, files []*ast.File, report bool) *types.Package {
	config := types.Config{Importer: c, Error: func(err error) {
		if report {
			c.errs = append(c.errs, err.Error())
		}
	}}
	checked, _ := config.Check(name, c.fset, files, nil)
	return checked
}

// Import implements [types.Importer]. A package that does not exist is empty: each use of it is an error.
func (c *checker) Import(imported string) (*types.Package, error) {
	if known := c.checked[imported]; known != nil {
		return known, nil
	}
	if c.exports[imported] != "" {
		return c.gc.Import(imported)
	}
	empty := types.NewPackage(imported, packageName(imported))
	empty.MarkComplete()
	c.checked[imported] = empty
	below, ok := strings.CutPrefix(imported+"/", c.module+"/")
	if files := c.files[path.Clean(below)]; ok && len(files) > 0 {
		var exported []*ast.File
		for _, f := range files {
			if !strings.HasSuffix(c.fset.Position(f.Pos()).Filename, "_test.go") {
				exported = append(exported, f)
			}
		}
		c.checked[imported] = c.check(imported, exported, false)
	}
	return c.checked[imported], nil
}
