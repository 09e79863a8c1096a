// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// constantsIn returns the constants of some types in a directory: their values, by type and name.
func constantsIn(t *testing.T, directory string, types ...string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(directory, files, err)
	}
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				constant := spec.(*ast.ValueSpec)
				typ, ok := constant.Type.(*ast.Ident)
				for _, name := range types {
					if ok && typ.Name == name {
						found[name+" "+strings.TrimPrefix(constant.Names[0].Name, name)] = constant.Values[0].(*ast.BasicLit).Value
					}
				}
			}
		}
	}
	return found
}

// TestVocabulary compares the constants that users see with the constants of the internal packages.
func TestVocabulary(t *testing.T) {
	for directory, types := range map[string][]string{
		"internal/inject": {"Fault"}, "internal/finding": {"Oracle", "Cause"},
	} {
		want, got := constantsIn(t, ".", types...), constantsIn(t, directory, types...)
		delete(got, "Oracle Scenario") // is not an oracle
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 10 {
			t.Errorf("constants of %s, of %d (-package converge +internal):\n%s", directory, len(want), diff)
		}
	}
}
