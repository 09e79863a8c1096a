// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"trueup.dev/converge"
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

// TestConvergePages checks that each oracle and each fault has a page that names it, and that no other pages exist.
func TestConvergePages(t *testing.T) {
	for _, c := range []struct {
		file, typ, index string
		atLeast          int
	}{
		{"../converge/oracle.go", "Oracle", "converge/oracles.md", 10},
		{"../converge/fault.go", "Fault", "converge/faults.md", 20},
	} {
		named := constants(t, c.file, c.typ)
		if len(named) < c.atLeast {
			t.Errorf("%s: found only %d constants of type %s", c.file, len(named), c.typ)
		}
		folder := strings.TrimSuffix(c.index, ".md")
		index := readFile(t, c.index)
		var pages []string
		for value, name := range named {
			page := filepath.Join(folder, strings.ReplaceAll(strings.ToLower(value), " ", "-")+".md")
			pages = append(pages, page)
			text := readFile(t, page)
			for _, want := range []string{"# " + value, "`converge." + name + "`", "`" + value + "`"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s does not say %q", page, want)
				}
			}
			if lines := strings.Count(text, "\n"); lines > 35 {
				t.Errorf("%s has %d lines, which is more than 35", page, lines)
			}
			if link := "(" + filepath.Base(folder) + "/" + filepath.Base(page) + ")"; !strings.Contains(index, link) {
				t.Errorf("%s has no link %s", c.index, link)
			}
		}
		for _, page := range glob(t, folder+"/*.md") {
			if !slices.Contains(pages, page) {
				t.Errorf("%s describes no fault and no oracle", page)
			}
		}
	}
}

// TestConvergeLessons_all checks that each fault and each oracle has a lesson.
func TestConvergeLessons_all(t *testing.T) {
	for value := range constants(t, "../converge/fault.go", "Fault") {
		if _, ok := faultLessons[converge.Fault(value)]; !ok {
			t.Errorf("no lesson for %s", value)
		}
	}
	for value := range constants(t, "../converge/oracle.go", "Oracle") {
		if _, ok := oracleLessons[converge.Oracle(value)]; !ok {
			t.Errorf("no lesson for %s", value)
		}
	}
}

var relativeLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// TestConvergeLinks checks that the links of the pages work.
func TestConvergeLinks(t *testing.T) {
	links := 0
	for _, page := range glob(t, "converge.md", "converge/*.md", "converge/*/*.md") {
		for _, match := range relativeLink.FindAllStringSubmatch(readFile(t, page), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s: the target of the link %s does not exist", page, match[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("found only %d links", links)
	}
}
