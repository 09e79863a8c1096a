// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each row "old → new" of a migration guide is tried by the tests that rowTests lists for it: their code, or the code
// they compile below testdata, uses every name of the new side.
func TestGuideRowsAreTried(t *testing.T) {
	sources := testSources(t)
	for guide, tests := range rowTests {
		rows := guideRows(t, guide)
		for _, old := range slices.Sorted(maps.Keys(rows)) {
			if len(tests[old]) == 0 {
				t.Errorf("%s: no test for the row %s", guide, old)
				continue
			}
			used := map[string]bool{}
			for _, test := range tests[old] {
				if !sources.declared(test) {
					t.Errorf("%s: row %s: no test %s", guide, old, test)
				}
				maps.Copy(used, sources.names(t, test))
			}
			for _, name := range newNames(rows[old]) {
				if !used[name] {
					t.Errorf("%s: row %s: %s uses no %s", guide, old, strings.Join(tests[old], ", "), name)
				}
			}
		}
		for old := range tests {
			if _, ok := rows[old]; !ok {
				t.Errorf("%s: there is a test for a row that does not exist: %s", guide, old)
			}
		}
		if len(rows) < 5 {
			t.Errorf("%s: only %d rows", guide, len(rows))
		}
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// guideRows returns the cells "new" of a guide by their cells "old".
func guideRows(t *testing.T, guide string) map[string]string {
	t.Helper()
	rows, inTable := map[string]string{}, false
	for line := range strings.Lines(read(t, filepath.Join("../../../docs/migration", guide))) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasPrefix(line, "| old | new |"):
			inTable = true
		case inTable && !strings.HasPrefix(line, "|---"):
			rows[strings.TrimSpace(cells[0])] = strings.TrimSpace(cells[1])
		}
	}
	return rows
}

var (
	ours = regexp.MustCompile(
		`^(?:apis|duck|logging|reconcilers|stash|testing|time|tracker|validation)\.(?:\w+\.)?([A-Z]\w+)`,
	)
	ofDependency = regexp.MustCompile(`^(?:bldr|client|field|logr|testr|metav1|path)\.([A-Z]\w+)`)
)

// newNames returns the last parts of the Go names in a cell: "SetupWithManager" of `reconcilers.ChildReconciler.SetupWithManager`.
func newNames(cell string) []string {
	var names []string
	for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
		for _, pattern := range []*regexp.Regexp{ours, ofDependency} {
			if match := pattern.FindStringSubmatch(span[1]); match != nil {
				names = append(names, match[1])
			}
		}
	}
	return names
}

// sourceTree holds the declarations of the test files of this package by their names.
type sourceTree map[string][]ast.Node

func testSources(t *testing.T) sourceTree {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tree := sourceTree{}
	for _, file := range files {
		for _, decl := range parse(t, file).Decls {
			for _, name := range declaredNames(decl) {
				tree[name] = append(tree[name], decl)
			}
		}
	}
	return tree
}

func (s sourceTree) declared(name string) bool { return len(s[name]) > 0 }

// names returns all identifiers in a declaration, in the declarations of this package that it uses, and in the Go files
// below the folders of testdata that it names.
func (s sourceTree) names(t *testing.T, declaration string) map[string]bool {
	t.Helper()
	used, pending := map[string]bool{}, []string{declaration}
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if !used[n.Name] {
				used[n.Name] = true
				pending = append(pending, n.Name)
			}
		case *ast.BasicLit:
			if folder, err := strconv.Unquote(n.Value); err == nil && strings.HasPrefix(folder, "testdata/") {
				for _, file := range goFilesBelow(t, folder) {
					ast.Inspect(parse(t, file), func(n ast.Node) bool {
						if name, ok := n.(*ast.Ident); ok {
							used[name.Name] = true
						}
						return true
					})
				}
			}
		}
		return true
	}
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		if name == "rowTests" {
			continue
		}
		for _, decl := range s[name] {
			ast.Inspect(decl, visit)
		}
	}
	return used
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func declaredNames(decl ast.Decl) []string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		return []string{decl.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			}
		}
		return names
	}
	return nil
}

func goFilesBelow(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".go" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
