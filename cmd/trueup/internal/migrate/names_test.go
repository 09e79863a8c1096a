// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write names.txt and the golden files")

// names.txt lists what trueup has: what is not in it is left by hand.
func TestNamesAreThoseOfTrueup(t *testing.T) {
	var lines []string
	for _, pkg := range []string{
		"apis", "app", "duck", "informer", "logging", "operator", "reconcilers", "resource", "simple", "stash", "testing",
		"time", "tracker", "validation",
	} {
		lines = append(lines, exportedNames(t, pkg)...)
	}
	slices.Sort(lines)
	requireGolden(t, "names.txt", strings.Join(slices.Compact(lines), "\n")+"\n")
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; use -update to accept (-want +got):\n%s", name, diff)
	}
}

func exportedNames(t *testing.T, pkg string) (lines []string) {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join("../../../..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range matches {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		add := func(ident *ast.Ident, fields ...string) {
			if ident.IsExported() {
				lines = append(lines, strings.Join(append([]string{pkg + "." + ident.Name}, fields...), " "))
			}
		}
		for _, decl := range parsed.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					add(decl.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, ident := range spec.Names {
							add(ident)
						}
					case *ast.TypeSpec:
						add(spec.Name, fieldsOf(spec.Type)...)
					}
				}
			}
		}
	}
	return lines
}

func fieldsOf(typ ast.Expr) (names []string) {
	fields, ok := typ.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range fields.Fields.List {
		for _, ident := range field.Names {
			if ident.IsExported() {
				names = append(names, ident.Name)
			}
		}
		if len(field.Names) == 0 {
			embedded := field.Type
			if star, ok := embedded.(*ast.StarExpr); ok {
				embedded = star.X
			}
			switch embedded := unindexed(embedded).(type) {
			case *ast.Ident:
				names = append(names, embedded.Name)
			case *ast.SelectorExpr:
				names = append(names, embedded.Sel.Name)
			}
		}
	}
	return names
}
