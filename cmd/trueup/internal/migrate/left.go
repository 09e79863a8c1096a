// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

//go:embed names.txt
var namesFile string

// trueupNames has the exported names of trueup after their packages, with the fields of structs. A test writes it.
var trueupNames = func() map[string]map[string]bool {
	names := map[string]map[string]bool{}
	for line := range strings.Lines(namesFile) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		names[words[0]] = nil
		if len(words) > 1 {
			names[words[0]] = map[string]bool{}
			for _, field := range words[1:] {
				names[words[0]][field] = true
			}
		}
		pkg, _, _ := strings.Cut(words[0], ".")
		names[pkg] = nil
	}
	return names
}()

// oldNames returns the names of old modules that the file selects.
func (f *file) oldNames() map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if name := f.old(n); name != "" {
				names[name] = true
			}
		case *ast.IndexExpr:
			if strings.HasPrefix(f.old(n.X), "reconcilers.") {
				names["reconcilers.generic"] = true
			}
		}
		return true
	})
	return names
}

// Left is something to do by hand, or to review.
type Left struct {
	File string // relative to the root of the module
	Line int
	Text string
	Page Generation // the guide
	Row  string     // what the left column of the row contains; empty if there is no row
}

// left returns what the new content of a file uses that trueup does not have.
func left(name string, content []byte, generation Generation) []Left {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	packages := map[string]string{}
	for _, spec := range parsed.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		below, ok := strings.CutPrefix(imported, trueupModule+"/")
		if !ok {
			continue
		}
		name := packageName(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = below
	}
	selected := func(expr ast.Expr) string {
		if sel, ok := unindexed(expr).(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && packages[x.Name] != "" {
				return packages[x.Name] + "." + sel.Sel.Name
			}
		}
		return ""
	}
	var found []Left
	report := func(n ast.Node, key, text string) {
		at := rows[key]
		if at.old == "" {
			at.page = generation
		}
		found = append(found, Left{name, fset.Position(n.Pos()).Line, text, at.page, at.old})
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if key := selected(n); key != "" {
				if _, exists := trueupNames[key]; !exists {
					report(n, key, key+" does not exist")
				}
			}
		case *ast.CompositeLit:
			if n.Type == nil {
				break
			}
			known := trueupNames[selected(n.Type)]
			for _, element := range n.Elts {
				kv, ok := element.(*ast.KeyValueExpr)
				if !ok || known == nil {
					break
				}
				if field, ok := kv.Key.(*ast.Ident); ok && !known[field.Name] {
					report(kv, field.Name, selected(n.Type)+" has no field "+field.Name)
				}
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				if selected(sel) == "tracker.New" && len(n.Args) == 1 {
					report(n, "tracker.New", "tracker.New takes the scheme and the lease")
				}
				if text := leftMethods[sel.Sel.Name]; text.text != "" && len(n.Args) == text.arguments && len(packages) > 0 {
					report(n, sel.Sel.Name, sel.Sel.Name+" "+text.text)
				}
			}
		}
		return true
	})
	return found
}

// leftMethods are methods that no longer exist, with the number of their arguments.
var leftMethods = map[string]struct {
	arguments int
	text      string
}{
	"Track":              {3, "of the tracker does not exist"},
	"TrackChild":         {4, "of the tracker does not exist"},
	"Lookup":             {2, "of the tracker does not exist"},
	"SetResourceManager": {1, "does not exist"},
}
