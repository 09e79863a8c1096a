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

// constants returns the constants of package converge that have a type, by their values.
func constants(t *testing.T, file, typ string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != typ {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found[value] = spec.Names[0].Name
		return true
	})
	return found
}

// goTest matches links to a test of converge.
var goTest = regexp.MustCompile(`\[(Test\w+)[^\]]*\]\((\.\./\.\./converge/\w+_test\.go)\)`)

// TestConvergePages checks that each oracle and each fault has a row and a section, which names the usual mistake and
// code that a test runs, and that no other sections exist. Tests of lab/corpus run the entries that sections name.
func TestConvergePages(t *testing.T) {
	for _, c := range []struct {
		file, typ, page, heading string
		atLeast                  int
	}{
		{"../converge/vocabulary.go", "Oracle", "converge/oracles.md", "##", 10},
		{"../converge/vocabulary.go", "Fault", "converge/faults.md", "###", 20},
	} {
		named := constants(t, c.file, c.typ)
		if len(named) < c.atLeast {
			t.Errorf("%s: found only %d constants of type %s", c.file, len(named), c.typ)
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
