// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tableRow is a row of a table in Markdown, by the headings of its columns.
type tableRow struct {
	line  int
	cells map[string]string
}

// tableRows returns the rows of all tables in a file that have the column.
func tableRows(t *testing.T, file, column string) []tableRow {
	t.Helper()
	rows, head := []tableRow{}, []string(nil)
	line := 0
	for l := range strings.Lines(readFile(t, file)) {
		line++
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "|") {
			head = nil
			continue
		}
		cells := strings.Split(strings.Trim(l, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case head == nil:
			head = cells
		case strings.HasPrefix(cells[0], "---"):
		case len(cells) != len(head):
			t.Errorf("%s:%d: %d cells below %d headings", file, line, len(cells), len(head))
		default:
			row := tableRow{line: line, cells: map[string]string{}}
			for i := range head {
				row.cells[head[i]] = cells[i]
			}
			if _, ok := row.cells[column]; ok {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

var (
	identifier = regexp.MustCompile("`([a-z]+[.][A-Z]\\w*(?:[.]\\w+)?)(?:\\[[^`]*)?`")
	advice     = regexp.MustCompile(`^(warning|note|recommended RBAC)`) // advice needs no test
	link       = regexp.MustCompile(`\[([^\]]+)\]\(([^)#]*)(#[^)]*)?\)`)
)

func TestParity(t *testing.T) {
	exists := exported(t)
	documents := map[string]int{}
	for _, row := range tableRows(t, "parity.md", "promised") {
		for _, letter := range strings.Fields(row.cells["in"]) {
			documents[letter]++
		}
		here := row.cells["here"]
		if !identifier.MatchString(here) && !link.MatchString(here) && here != "none yet" {
			t.Errorf("parity.md:%d: the cell contains no name: %s", row.line, here)
		}
		for part := range strings.SplitSeq(here, ";") {
			planned := strings.Contains(part, "not yet")
			for _, name := range identifier.FindAllStringSubmatch(part, -1) {
				switch {
				case planned && exists[name[1]]:
					t.Errorf("parity.md:%d: %s exists, but the row says not yet", row.line, name[1])
				case !planned && !exists[name[1]]:
					t.Errorf("parity.md:%d: %s does not exist", row.line, name[1])
				}
			}
		}
		tests := link.FindAllStringSubmatch(row.cells["test"], -1)
		if len(tests) == 0 && identifier.MatchString(here) && !strings.Contains(here, "not yet") &&
			!advice.MatchString(row.cells["promised"]) {
			t.Errorf("parity.md:%d: no test", row.line)
		}
		for _, test := range tests {
			if source, err := os.ReadFile(test[2]); err != nil || !strings.Contains(string(source), "func "+test[1]+"(") {
				t.Errorf("parity.md:%d: %s has no %s (%v)", row.line, test[2], test[1], err)
			}
		}
	}
	// The number of rows for each document. A removed row fails here.
	for letter, want := range map[string]int{"A": 79, "B": 119, "C": 149, "D": 161, "E": 19} {
		if documents[letter] != want {
			t.Errorf("got %d rows for document %s, want %d", documents[letter], letter, want)
		}
	}
}

// The new names in the tables of the migration guides exist.
func TestMigrationNamesExist(t *testing.T) {
	exists, ours := exported(t), map[string]bool{}
	for name := range exists {
		ours[strings.SplitN(name, ".", 2)[0]] = true
	}
	checked := 0
	for _, guide := range glob(t, "migration/*.md") {
		for _, row := range tableRows(t, guide, "new") {
			if strings.Contains(row.cells["new"], "not yet") {
				continue
			}
			for _, name := range identifier.FindAllStringSubmatch(row.cells["new"], -1) {
				if !ours[strings.SplitN(name[1], ".", 2)[0]] {
					continue
				}
				checked++
				if !exists[name[1]] {
					t.Errorf("%s:%d: %s does not exist", guide, row.line, name[1])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d names were checked", checked)
	}
}

// The targets of links between guides, and to files, exist.
func TestLinks(t *testing.T) {
	checked := 0
	for _, guide := range glob(t, "*.md", "migration/*.md", "converge/*.md", "../README.md") {
		for _, l := range link.FindAllStringSubmatch(withoutCode(readFile(t, guide)), -1) {
			path, anchor := l[2], strings.TrimPrefix(l[3], "#")
			if strings.Contains(path, "://") {
				continue
			}
			checked++
			target := guide
			if path != "" {
				target = filepath.Join(filepath.Dir(guide), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", guide, err)
				continue
			}
			if anchor != "" && !headings(t, target)[anchor] {
				t.Errorf("%s: %s has no section %q", guide, target, anchor)
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d links were checked", checked)
	}
}

// withoutCode returns the text of a guide without its blocks of code.
func withoutCode(text string) string {
	prose := []string{}
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			prose = append(prose, part)
		}
	}
	return strings.Join(prose, "")
}

// headings returns the anchors of the headings of a guide, as common renderers generate them.
func headings(t *testing.T, file string) map[string]bool {
	t.Helper()
	anchors := map[string]bool{}
	for l := range strings.Lines(readFile(t, file)) {
		title, ok := strings.CutPrefix(strings.TrimLeft(l, "#"), " ")
		if !ok || !strings.HasPrefix(l, "#") {
			continue
		}
		anchors[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			default:
				return -1
			}
		}, strings.ToLower(strings.TrimSpace(title)))] = true
	}
	return anchors
}

// exported returns the exported names of the packages that users import: pkg.Name, pkg.Type.Method and pkg.Type.Field.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range glob(t, "../*/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range source.Decls {
			for _, name := range declared(decl) {
				names[source.Name.Name+"."+name] = true
			}
		}
	}
	return names
}

func declared(decl ast.Decl) []string {
	names := []string{}
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv == nil {
			return []string{f.Name.Name}
		}
		return []string{lastName(f.Recv.List[0].Type) + "." + f.Name.Name}
	}
	d, ok := decl.(*ast.GenDecl)
	if !ok {
		return nil
	}
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				names = append(names, name.Name)
			}
		case *ast.TypeSpec:
			names = append(names, spec.Name.Name)
			for _, member := range members(spec.Type) {
				names = append(names, spec.Name.Name+"."+member)
			}
		}
	}
	return names
}

// members returns the fields of a struct, and the methods of an interface.
func members(of ast.Expr) []string {
	var fields *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		fields = of.Fields
	case *ast.InterfaceType:
		fields = of.Methods
	default:
		return nil
	}
	names := []string{}
	for _, field := range fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
		if len(field.Names) == 0 {
			names = append(names, lastName(field.Type))
		}
	}
	return names
}

// lastName returns the name of a type without its package, its type parameters and its pointer.
func lastName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.StarExpr:
		return lastName(of.X)
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.IndexExpr:
		return lastName(of.X)
	case *ast.IndexListExpr:
		return lastName(of.X)
	default:
		return ""
	}
}
