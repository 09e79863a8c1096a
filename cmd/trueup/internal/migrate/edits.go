// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

func (f *file) replace(from, to token.Pos, text string) {
	f.edits = append(f.edits, edit{f.offset(from), f.offset(to), text})
}

func (f *file) insert(at token.Pos, text string) { f.replace(at, at, text) }

// wrap writes before and after around an expression, which other edits may change.
func (f *file) wrap(n ast.Node, before, after string) {
	f.insert(n.Pos(), before)
	f.insert(n.End(), after)
}

// only removes what surrounds a part of n.
func (f *file) only(n, part ast.Node) {
	f.replace(n.Pos(), part.Pos(), "")
	f.replace(part.End(), n.End(), "")
}

// removeElement removes an element of a composite literal with its comma, and its lines if nothing else is on them.
func (f *file) removeElement(element ast.Expr) {
	start, end := f.offset(element.Pos()), f.offset(element.End())
	for end < len(f.src) && (f.src[end] == ' ' || f.src[end] == '\t') {
		end++
	}
	if end < len(f.src) && f.src[end] == ',' {
		end++
	}
	lineStart := start
	for lineStart > 0 && (f.src[lineStart-1] == ' ' || f.src[lineStart-1] == '\t') {
		lineStart--
	}
	lineEnd := end
	for lineEnd < len(f.src) && (f.src[lineEnd] == ' ' || f.src[lineEnd] == '\t') {
		lineEnd++
	}
	switch {
	case lineStart > 0 && f.src[lineStart-1] == '\n' && lineEnd < len(f.src) && f.src[lineEnd] == '\n':
		start, end = lineStart, lineEnd+1
	case end < lineEnd: // one line for all elements
		end = lineEnd
	}
	f.edits = append(f.edits, edit{start, end, ""})
}

// removeStatement removes a statement with its line, and the empty line after it if a block begins with it.
func (f *file) removeStatement(n ast.Node) {
	e := lineOf(f.src, f.offset(n.Pos()), f.offset(n.End()))
	before, after := bytes.TrimRight(f.src[:e.start], " \t"), f.src[e.end:]
	if bytes.HasSuffix(before, []byte("{\n")) && bytes.HasPrefix(after, []byte("\n")) {
		e.end++
	}
	f.edits = append(f.edits, e)
}

// hasComment reports whether a comment is inside of a node.
func (f *file) hasComment(n ast.Node) bool {
	return slices.ContainsFunc(f.ast.Comments, func(c *ast.CommentGroup) bool {
		return n.Pos() <= c.Pos() && c.End() <= n.End()
	})
}

// apply returns the source after the edits. Edits inside of a larger removed or replaced range have no effect.
func apply(src []byte, edits []edit) []byte {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		// insertions first, then the widest range
		if (a.start == a.end) != (b.start == b.end) {
			if a.start == a.end {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.end, a.end)
	})
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.start < at {
			continue
		}
		out.Write(src[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(src[at:])
	return out.Bytes()
}

// qualifier returns the name of a package in the file. If the file does not import it yet, it will.
func (f *file) qualifier(imported, preferred string) string {
	for name, known := range f.imports {
		if known == imported && name != "_" && name != "." {
			return name
		}
		if _, ok := belowOldModule(known); ok && f.project.moved(known) == imported {
			return name
		}
	}
	if known, taken := f.imports[preferred]; taken && known != imported {
		preferred += "2"
	}
	f.needs[imported] = preferred
	return preferred
}

// result returns the content of the file after all edits, with its imports in order.
func (f *file) result() ([]byte, error) {
	f.moveImports()
	if len(f.edits) == 0 {
		return f.src, nil
	}
	out := apply(f.src, f.edits)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, f.name, out, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("%s: trueup migrate made a syntax error, which is a bug; nothing was changed: %w", f.name, err)
	}
	before, after := qualifiers(f.ast), qualifiers(parsed)
	var edits []edit
	at := func(pos token.Pos) int { return fset.Position(pos).Offset }
	existing, removed := map[string]bool{}, map[*ast.ImportSpec]bool{}
	for _, spec := range parsed.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := packageName(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if before[name] && !after[name] {
			start, end := at(spec.Pos()), at(spec.End())
			edits = append(edits, lineOf(out, start, end))
			removed[spec] = true
			continue
		}
		existing[imported] = true
	}
	var missing []string
	for imported, name := range f.needs {
		if !existing[imported] && after[name] {
			missing = append(missing, imported)
		}
	}
	slices.Sort(missing)
	for _, imported := range missing {
		edits = append(edits, addImport(out, parsed, removed, at, imported, f.needs[imported]))
	}
	out = apply(out, edits)
	if formatted, err := format.Source(f.src); err == nil && bytes.Equal(formatted, f.src) {
		if formatted, err = format.Source(out); err != nil {
			return nil, fmt.Errorf("%s: trueup migrate made a syntax error, which is a bug: %w", f.name, err)
		}
		out = formatted
	}
	return out, nil
}

// qualifiers returns the names before dots.
func qualifiers(parsed *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				names[x.Name] = true
			}
		}
		return true
	})
	return names
}

// lineOf returns an edit that removes an import, with its line if nothing else is on it.
func lineOf(src []byte, start, end int) edit {
	lineStart, lineEnd := bytes.LastIndexByte(src[:start], '\n')+1, len(src)
	if i := bytes.IndexByte(src[end:], '\n'); i >= 0 {
		lineEnd = end + i + 1
	}
	before, after := strings.TrimSpace(string(src[lineStart:start])), strings.TrimSpace(string(src[end:lineEnd]))
	if (before == "" || before == "import") && after == "" {
		return edit{lineStart, lineEnd, ""}
	}
	return edit{start, end, ""}
}

// addImport adds an import beside the one whose path is most similar.
func addImport(
	src []byte, parsed *ast.File, removed map[*ast.ImportSpec]bool, at func(token.Pos) int, imported, name string,
) edit {
	line := strconv.Quote(imported)
	if packageName(imported) != name {
		line = name + " " + line
	}
	var best *ast.ImportSpec
	score := -1
	for _, decl := range parsed.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.IMPORT || !group.Lparen.IsValid() {
			continue
		}
		for _, spec := range group.Specs {
			spec := spec.(*ast.ImportSpec)
			known, _ := strconv.Unquote(spec.Path.Value)
			if similar := similarity(known, imported); similar > score && !removed[spec] {
				best, score = spec, similar
			}
		}
	}
	if best != nil {
		end := at(best.End())
		if best.Comment != nil {
			end = at(best.Comment.End())
		}
		return edit{end, end, "\n\t" + line}
	}
	end := at(parsed.Name.End())
	for _, decl := range parsed.Decls {
		if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.IMPORT {
			end = max(end, at(group.End()))
		}
	}
	if i := bytes.IndexByte(src[end:], '\n'); i >= 0 {
		end += i
	}
	return edit{end, end, "\n\nimport " + line}
}

func similarity(a, b string) int {
	first, _, _ := strings.Cut(a, "/")
	other, _, _ := strings.Cut(b, "/")
	if strings.Contains(first, ".") != strings.Contains(other, ".") {
		return 0
	}
	score := 1
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := 0; i < len(as) && i < len(bs) && as[i] == bs[i]; i++ {
		score++
	}
	return score
}

// moveImports changes the paths of imports.
func (f *file) moveImports() {
	for _, spec := range f.ast.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if _, ok := belowOldModule(imported); ok && !strings.HasPrefix(imported, trueupModule+"/") {
			f.replace(spec.Path.Pos(), spec.Path.End(), strconv.Quote(f.project.moved(imported)))
		}
	}
}

// moved returns the import path of what was a package of an old module.
func (p *project) moved(imported string) string {
	if name, ok := pastedPackages[imported]; ok {
		return p.pastedPath(name)
	}
	below, _ := belowOldModule(imported)
	return trueupModule + "/" + below
}

// pastedPath returns the import path of a package that migrate writes to the module.
func (p *project) pastedPath(name string) string { return p.module + "/" + pastedDir + "/" + name }
