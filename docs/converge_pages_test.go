// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// constants returns the constants of a type in a file: what they are, by their names.
func constants(t *testing.T, file, typ string) map[string]ast.Expr {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]ast.Expr{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == typ {
			found[spec.Names[0].Name] = spec.Values[0]
		}
		return true
	})
	return found
}

// vocabulary returns the constants of package converge that have a type, by their values, which an internal package
// has.
func vocabulary(t *testing.T, typ, internal string) map[string]string {
	t.Helper()
	values, found := constants(t, "../converge/internal/"+internal, typ), map[string]string{}
	for name, is := range constants(t, "../converge/vocabulary.go", typ) {
		value, err := strconv.Unquote(values[is.(*ast.SelectorExpr).Sel.Name].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found[value] = name
	}
	return found
}

// goTest matches links to a test of converge.
var goTest = regexp.MustCompile(`\[(Test\w+)[^\]]*\]\((\.\./\.\./converge/\w+_test\.go)\)`)

// TestConvergePages checks that each oracle and each fault has a row and a section, which names the usual mistake and
// code that a test runs, and that no other sections exist. Tests of lab/corpus run the entries that sections name.
func TestConvergePages(t *testing.T) {
	for _, c := range []struct {
		typ, internal, page, heading string
		atLeast                      int
	}{
		{"Oracle", "finding/finding.go", "converge/oracles.md", "##", 10},
		{"Fault", "inject/inject.go", "converge/faults.md", "###", 20},
	} {
		named := vocabulary(t, c.typ, c.internal)
		if len(named) < c.atLeast {
			t.Errorf("found only %d constants of type %s", len(named), c.typ)
		}
		parts := strings.Split(readFile(t, c.page), "\n"+c.heading+" ")
		sections := map[string]string{}
		for _, part := range parts[1:] {
			title, content, _ := strings.Cut(part, "\n")
			if named[title] == "" {
				t.Errorf("%s: the section %q describes no fault and no oracle", c.page, title)
			}
			sections[title], _, _ = strings.Cut(content, "\n## ")
		}
		for value, name := range named {
			anchor := strings.ReplaceAll(strings.ToLower(value), " ", "-")
			if row := "| [" + value + "](#" + anchor + ") |"; !strings.Contains(readFile(t, c.page), row) {
				t.Errorf("%s has no row %s", c.page, row)
			}
			section := sections[value]
			for _, want := range []string{
				"`converge." + name + "`", "- **The usual mistake:** ", "- **When it is not your fault:** ", "- **As code:** [",
			} {
				if !strings.Contains(section, want) {
					t.Errorf("%s: the section %q does not say %q", c.page, value, want)
				}
			}
			if lines := strings.Count(section, "\n"); lines > 25 {
				t.Errorf("%s: the section %q has %d lines, which is more than 25", c.page, value, lines)
			}
			test := goTest.FindStringSubmatch(section)
			switch {
			case test == nil && !strings.Contains(section, "](../../lab/corpus/"):
				t.Errorf("%s: the section %q names no entry of lab/corpus, and no test", c.page, value)
			case test != nil && !strings.Contains(readFile(t, "converge/"+test[2]), "func "+test[1]+"("):
				t.Errorf("%s: the section %q names %s, which %s does not have", c.page, value, test[1], test[2])
			case test != nil && !strings.Contains(readFile(t, "converge/"+test[2]), name):
				t.Errorf("%s: the section %q names %s, which does not use %s", c.page, value, test[2], name)
			}
		}
	}
}
