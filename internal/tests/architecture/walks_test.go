// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architectureGuide = "docs/architecture.md"

// declarations are the names that packages declare: functions and types as Name, methods as Type.Method.
type declarations map[string]map[string]bool

// declared returns what the package in a directory declares, except in tests.
func (d declarations) declared(t *testing.T, directory string) map[string]bool {
	t.Helper()
	if names, ok := d[directory]; ok {
		return names
	}
	names := map[string]bool{}
	entries, err := fs.ReadDir(os.DirFS("../../.."), directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if path.Ext(entry.Name()) != ".go" || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(
			token.NewFileSet(), "../../../"+directory+"/"+entry.Name(), nil, parser.SkipObjectResolution,
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				names[receiverOf(declaration)+declaration.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range declaration.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						names[spec.Name.Name] = true
					}
				}
			}
		}
	}
	d[directory] = names
	return names
}

// receiverOf returns the type of a method with a dot, or nothing for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	receiver := f.Recv.List[0].Type
	for {
		switch of := receiver.(type) {
		case *ast.StarExpr:
			receiver = of.X
		case *ast.IndexExpr:
			receiver = of.X
		case *ast.IndexListExpr:
			receiver = of.X
		default:
			return receiver.(*ast.Ident).Name + "."
		}
	}
}

// has reports whether a package or, for a package of users, one of its internal packages declares a name.
func (d declarations) has(t *testing.T, directory, name string) bool {
	t.Helper()
	if d.declared(t, directory)[name] {
		return true
	}
	found := false
	_ = fs.WalkDir(os.DirFS("../../.."), directory+"/internal", func(below string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipAll // there are none
		}
		found = found || entry.IsDir() && d.declared(t, below)[name]
		return nil
	})
	return found
}

var (
	codeOf = regexp.MustCompile("`([^`]+)`")
	// ofPackage matches a declaration with the path of its package.
	ofPackage = regexp.MustCompile(`^([a-z]\w*(?:/[a-z]\w*)*)\.(\w+(?:\.\w+)?)$`)
)

// TestArchitectureNamesWhatExists checks that each code span of the guide for contributors is a package, a declaration
// with its package, or, in the last column of a walk, declarations of the package beside it.
func TestArchitectureNamesWhatExists(t *testing.T) {
	all, functions, fenced := declarations{}, 0, false
	for number, line := range strings.Split(read(t, architectureGuide), "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "```") {
			continue
		}
		check := func(directory, name string) {
			t.Helper()
			if functions++; !all.has(t, directory, name) {
				t.Errorf("%s:%d: package %s does not declare %s", architectureGuide, number+1, directory, name)
			}
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if strings.HasPrefix(line, "|") && len(cells) == 3 && strings.Contains(cells[1], "`") {
			directory := strings.Trim(cells[1], " `")
			for _, span := range codeOf.FindAllStringSubmatch(cells[2], -1) {
				check(directory, span[1])
			}
			line = cells[0] + cells[1]
		}
		for _, span := range codeOf.FindAllStringSubmatch(line, -1) {
			if declaration := ofPackage.FindStringSubmatch(span[1]); declaration != nil {
				check(declaration[1], declaration[2])
			} else if info, err := os.Stat("../../../" + span[1]); err != nil || !info.IsDir() {
				t.Errorf("%s:%d: `%s` is neither a directory nor a declaration with its package",
					architectureGuide, number+1, span[1])
			}
		}
	}
	if functions < 60 {
		t.Errorf("%s names only %d functions and types", architectureGuide, functions)
	}
}

// TestEachFloorIsDescribed checks that the guide for contributors names each directory of each layer, and each folder
// of internal.
func TestEachFloorIsDescribed(t *testing.T) {
	_, text, _ := strings.Cut(read(t, architectureGuide), "\n### ")
	directories := slices.DeleteFunc(slices.Concat(layers...), func(d string) bool { return d == "internal" })
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		directories = append(directories, "internal/"+entry.Name())
	}
	for _, directory := range directories {
		if !strings.Contains(text, "`"+directory+"`") {
			t.Errorf("%s does not say what %s is for", architectureGuide, directory)
		}
	}
}
