// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// shownType is a type as the source of a file writes it.
type shownType struct {
	file *file
	expr ast.Expr
}

// in returns the text of the type for another file, and imports what it needs there.
func (t shownType) in(target *file) string {
	switch expr := t.expr.(type) {
	case *ast.StarExpr:
		return "*" + shownType{t.file, expr.X}.in(target)
	case *ast.ParenExpr:
		return shownType{t.file, expr.X}.in(target)
	case *ast.ArrayType:
		if expr.Len == nil {
			return "[]" + shownType{t.file, expr.Elt}.in(target)
		}
	case *ast.SelectorExpr:
		if imported, name := t.file.selector(expr); imported != "" {
			if imported == target.project.importPath(target) {
				return name
			}
			return target.qualifier(imported, nameOf(t.file, imported)) + "." + name
		}
	case *ast.Ident:
		if t.file.dir == target.dir && packageOf(t.file) == packageOf(target) || !ast.IsExported(expr.Name) {
			return expr.Name
		}
		imported := t.file.project.importPath(t.file)
		return target.qualifier(imported, t.file.ast.Name.Name) + "." + expr.Name
	}
	return t.file.text(t.expr)
}

// key identifies the type in all files.
func (t shownType) key() string {
	switch expr := t.expr.(type) {
	case *ast.StarExpr:
		return "*" + shownType{t.file, expr.X}.key()
	case *ast.SelectorExpr:
		imported, name := t.file.selector(expr)
		return imported + "." + name
	case *ast.Ident:
		return t.file.project.importPath(t.file) + "." + expr.Name
	}
	return t.file.text(t.expr)
}

func (t shownType) isObject() bool {
	key := t.key()
	return key == controllerRuntime+"/pkg/client.Object" || strings.HasSuffix(key, "/apis.Object")
}

func nameOf(f *file, imported string) string {
	for name, known := range f.imports {
		if known == imported {
			return name
		}
	}
	return packageName(imported)
}

func packageOf(f *file) string { return path.Join(f.dir, f.ast.Name.Name) }

// typeOf returns the type of an expression, if the source shows it.
func (f *file) typeOf(expr ast.Expr) (shownType, bool) {
	p := f.project
	switch expr := ast.Unparen(expr).(type) {
	case *ast.UnaryExpr:
		if lit, ok := expr.X.(*ast.CompositeLit); ok && expr.Op == token.AND && lit.Type != nil {
			return shownType{f, &ast.StarExpr{Star: lit.Pos(), X: lit.Type}}, true
		}
		if t, ok := f.typeOf(expr.X); ok && expr.Op == token.AND {
			return shownType{t.file, &ast.StarExpr{Star: t.expr.Pos(), X: t.expr}}, true
		}
	case *ast.CompositeLit:
		if expr.Type != nil {
			return shownType{f, expr.Type}, true
		}
	case *ast.StarExpr:
		if t, ok := f.typeOf(expr.X); ok {
			if star, ok := t.expr.(*ast.StarExpr); ok {
				return shownType{t.file, star.X}, true
			}
		}
	case *ast.Ident, *ast.SelectorExpr:
		if _, d := p.declarationOf(expr); d.typ != nil {
			return shownType{d.file, d.typ}, true
		} else if d.value != nil {
			return d.file.typeOf(d.value)
		}
	case *ast.IndexExpr:
		t, ok := f.typeOf(expr.X)
		if list, isList := t.expr.(*ast.ArrayType); ok && isList {
			return shownType{t.file, list.Elt}, true
		}
		if sel, isSel := t.expr.(*ast.SelectorExpr); ok && isSel && t.file.old(sel) == "apis.Conditions" {
			condition := &ast.Ident{NamePos: sel.Sel.NamePos, Name: "Condition"}
			return shownType{t.file, &ast.SelectorExpr{X: sel.X, Sel: condition}}, true
		}
	case *ast.CallExpr:
		if fun, ok := expr.Fun.(*ast.Ident); ok && fun.Name == "new" && len(expr.Args) == 1 {
			return shownType{f, &ast.StarExpr{Star: expr.Pos(), X: expr.Args[0]}}, true
		}
		if _, d := p.declarationOf(expr.Fun); d.fn != nil && d.fn.Results != nil && len(d.fn.Results.List) > 0 {
			return shownType{d.file, d.fn.Results.List[0].Type}, true
		}
		if sel, ok := expr.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "DeepCopy" {
			return f.typeOf(sel.X)
		}
		if name := f.old(expr.Fun); name == "testing.With" && len(expr.Args) > 0 {
			return f.typeOf(expr.Args[0])
		}
	}
	return shownType{}, false
}

// slot is a type parameter that is to be found.
type slot struct {
	same  *slot // the slot that stands for this one
	found *shownType
}

func (s *slot) root() *slot {
	for s.same != nil {
		s = s.same
	}
	return s
}

// inference finds the type parameters of generic types that are used without them.
type inference struct {
	*project
	slots map[token.Pos]*[3]*slot
	names map[token.Pos]string // the generic type of what is declared there
	uses  []use
	flows []flow
}

// use is an occurrence of a generic type without type parameters.
type use struct {
	file *file
	expr ast.Expr
	name string
	key  token.Pos
}

// flow is a reconciler that is declared elsewhere, used where another type parameter decides.
type flow struct {
	file  *file
	outer *slot
	inner token.Pos
	expr  ast.Expr
}

func (in *inference) slot(key token.Pos, index int) *slot {
	if in.slots[key] == nil {
		in.slots[key] = &[3]*slot{{}, {}, {}}
	}
	return in.slots[key][index].root()
}

func (in *inference) bind(s *slot, t shownType) {
	if s = s.root(); s.found == nil {
		s.found = &t
	}
}

func (in *inference) same(a, b *slot) {
	if a, b = a.root(), b.root(); a != b {
		if a.found == nil {
			a.found = b.found
		}
		b.same = a
	}
}

// unify makes what is declared at two positions have the same type parameters.
func (in *inference) unify(a, b token.Pos) {
	if !a.IsValid() || !b.IsValid() || a == b {
		return
	}
	in.same(in.slot(a, 0), in.slot(b, 0))
	if in.names[a] == in.names[b] && generics[in.names[a]].parameters > 1 {
		in.same(in.slot(a, 1), in.slot(b, 1))
		in.same(in.slot(a, 2), in.slot(b, 2))
	}
}

// declare notes the generic types in a type that belongs to the declaration at key.
func (in *inference) declare(f *file, typ ast.Node, key token.Pos) (any bool) {
	if typ == nil {
		return false
	}
	ast.Inspect(typ, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr, *ast.IndexListExpr, *ast.StructType, *ast.CompositeLit:
			return false // has parameters, or is declared by itself
		case *ast.SelectorExpr:
			name := f.old(n)
			if _, generic := generics[name]; generic {
				any = true
				in.uses = append(in.uses, use{f, n, name, key})
				if known := in.names[key]; known == "" || generics[known].parameters < generics[name].parameters {
					in.names[key] = name
				}
			}
			return false
		}
		return true
	})
	return any
}

// infer finds the type parameters of the project.
func (p *project) infer() *inference {
	in := &inference{project: p, slots: map[token.Pos]*[3]*slot{}, names: map[token.Pos]string{}}
	for _, step := range []func(*file){in.declarations, in.facts, in.connections} {
		for _, f := range p.files {
			step(f)
		}
	}
	// What takes any object is cast to where it is used, unless everything around it takes any object, too.
	for _, anyObject := range []bool{false, true} {
		for changed := true; changed; {
			changed = false
			for _, fl := range in.flows {
				outer, inner := fl.outer.root(), in.slot(fl.inner, 0)
				switch {
				case outer == inner:
				case inner.found == nil && outer.found != nil, // a known type goes in
					outer.found == nil && inner.found != nil && (anyObject || !inner.found.isObject()): // or out
					in.same(outer, inner)
					changed = true
				}
			}
		}
	}
	return in
}

// functionKey is the key of what a function returns.
func functionKey(n ast.Node) token.Pos {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Name.Pos()
	case *ast.FuncLit:
		return n.Pos()
	}
	return token.NoPos
}

func (in *inference) declarations(f *file) {
	seen := map[ast.Node]bool{}
	function := func(n ast.Node, typ *ast.FuncType) {
		if typ.Results != nil {
			in.declare(f, typ.Results, functionKey(n))
			seen[typ.Results] = true
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if seen[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			function(n, n.Type)
		case *ast.FuncLit:
			function(n, n.Type)
		case *ast.Field:
			key := n.Pos()
			if len(n.Names) > 0 {
				key = n.Names[0].Pos()
			}
			if _, isStruct := n.Type.(*ast.StructType); !isStruct && in.declare(f, n.Type, key) {
				for _, name := range n.Names {
					in.unify(key, name.Pos())
				}
			}
			return !isFunc(n.Type)
		case *ast.ValueSpec:
			if n.Type != nil {
				in.declare(f, n.Type, n.Names[0].Pos())
				for _, name := range n.Names[1:] {
					in.unify(n.Names[0].Pos(), name.Pos())
				}
				seen[n.Type] = true
			}
		case *ast.CompositeLit:
			if n.Type != nil {
				in.declare(f, n.Type, n.Pos())
				seen[n.Type] = true
			}
		case *ast.StructType:
		case *ast.SelectorExpr:
			if name := f.old(n); generics[name].parameters > 0 && !in.known(n) {
				in.uses = append(in.uses, use{f, n, name, n.Pos()})
				in.names[n.Pos()] = name
			}
		case *ast.IndexExpr:
			if f.old(n.X) != "" {
				return false
			}
		case *ast.IndexListExpr:
			return false
		}
		return true
	})
}

func isFunc(expr ast.Expr) bool {
	_, ok := expr.(*ast.FuncType)
	return ok
}

func (in *inference) known(expr ast.Expr) bool {
	for i := len(in.uses) - 1; i >= 0 && i >= len(in.uses)-20; i-- {
		if in.uses[i].expr == expr {
			return true
		}
	}
	return false
}

// facts reads type parameters from the fields of literals.
func (in *inference) facts(f *file) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || lit.Type == nil {
			return true
		}
		name := f.old(lit.Type)
		in.fieldFacts(f, name, lit, lit.Pos())
		return true
	})
}

func (in *inference) fieldFacts(f *file, name string, lit *ast.CompositeLit, key token.Pos) {
	for _, element := range lit.Elts {
		value := element
		var field string
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			value = kv.Value
			if ident, ok := kv.Key.(*ast.Ident); ok {
				field = ident.Name
			}
		}
		if inner, ok := value.(*ast.CompositeLit); ok && inner.Type == nil && generics[name].element != "" {
			in.unify(key, inner.Pos())
			in.names[inner.Pos()] = generics[name].element
			in.fieldFacts(f, generics[name].element, inner, key)
			continue
		}
		for _, fact := range generics[name].facts[field] {
			if t, ok := f.factOf(value, fact); ok {
				in.bind(in.slot(key, fact.slot), t)
			}
		}
	}
}

// factOf returns the type that a fact reads from the value of a field.
func (f *file) factOf(value ast.Expr, fact fact) (shownType, bool) {
	if fact.of == theType {
		t, ok := f.typeOf(value)
		if ok && t.isFactory() {
			return t.made()
		}
		return t, ok
	}
	fn, declaredIn := f.function(value)
	if fn == nil {
		return shownType{}, false
	}
	list := fn.Params
	if fact.of == aResult {
		list = fn.Results
	}
	flat := flatten(list)
	index := fact.index
	if index < 0 {
		index += len(flat)
	}
	if index < 0 || index >= len(flat) {
		return shownType{}, false
	}
	return shownType{declaredIn, flat[index]}, true
}

// function returns the type of a function literal or of a declared function.
func (f *file) function(expr ast.Expr) (*ast.FuncType, *file) {
	if lit, ok := ast.Unparen(expr).(*ast.FuncLit); ok {
		return lit.Type, f
	}
	_, d := f.project.declarationOf(expr)
	if d.value != nil {
		return d.file.function(d.value)
	}
	return d.fn, d.file
}

// flatten returns a type for each parameter.
func flatten(list *ast.FieldList) []ast.Expr {
	var flat []ast.Expr
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			flat = append(flat, field.Type)
		}
	}
	return flat
}

// keyOf returns the declaration whose type parameters an expression has.
func (in *inference) keyOf(expr ast.Expr) (key token.Pos, elsewhere bool) {
	switch expr := ast.Unparen(expr).(type) {
	case *ast.UnaryExpr:
		return in.keyOf(expr.X)
	case *ast.StarExpr:
		return in.keyOf(expr.X)
	case *ast.CompositeLit:
		if in.names[expr.Pos()] != "" {
			return expr.Pos(), false
		}
	case *ast.FuncLit:
		if in.names[expr.Pos()] != "" {
			return expr.Pos(), false
		}
	case *ast.IndexExpr:
		return in.keyOf(expr.X)
	case *ast.CallExpr:
		if fun, ok := expr.Fun.(*ast.Ident); ok && fun.Name == "append" && len(expr.Args) > 0 {
			return in.keyOf(expr.Args[0])
		}
		if pos, d := in.declarationOf(expr.Fun); d.fn != nil && in.names[pos] != "" {
			return pos, true
		} else if d.value != nil {
			key, _ := in.keyOf(d.value)
			return key, true
		}
		return in.keyOf(expr.Fun)
	case *ast.Ident, *ast.SelectorExpr:
		pos, d := in.declarationOf(expr)
		if in.names[pos] != "" {
			return pos, true
		}
		if d.value != nil {
			key, _ := in.keyOf(d.value)
			return key, true
		}
	}
	return token.NoPos, false
}

// connections finds what has the same type parameters as what.
func (in *inference) connections(f *file) {
	ast.PreorderStack(f.ast, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			in.nested(f, n)
		case *ast.FuncDecl:
			in.parameters(n.Name.Pos(), n.Type)
		case *ast.FuncLit:
			in.parameters(n.Pos(), n.Type)
		case *ast.ReturnStmt:
			for i := len(stack) - 1; i >= 0; i-- {
				if key := functionKey(stack[i]); key.IsValid() {
					if in.names[key] != "" && len(n.Results) > 0 {
						in.connect(f, in.slot(key, 0), key, n.Results[0], true)
					}
					break
				}
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) {
					if key, _ := in.keyOf(left); key.IsValid() {
						in.connect(f, in.slot(key, 0), key, n.Rhs[i], true)
					}
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if in.names[name.Pos()] != "" && i < len(n.Values) {
					in.connect(f, in.slot(name.Pos(), 0), name.Pos(), n.Values[i], true)
				}
			}
		case *ast.CallExpr:
			in.call(f, n)
		}
		return true
	})
}

// connect gives an expression the type parameter of where it is used. If the place declares the expression, as a return
// statement does, both are the same even for what takes any object.
func (in *inference) connect(f *file, outer *slot, outerKey token.Pos, expr ast.Expr, declares bool) {
	key, elsewhere := in.keyOf(expr)
	switch {
	case !key.IsValid():
	case elsewhere, !declares && in.slot(key, 0).found != nil && in.slot(key, 0).found.isObject():
		in.flows = append(in.flows, flow{f, outer, key, expr})
	case outerKey.IsValid():
		in.unify(outerKey, key)
	default:
		in.same(outer, in.slot(key, 0))
	}
}

func (in *inference) nested(f *file, lit *ast.CompositeLit) {
	name := in.names[lit.Pos()]
	generic, ok := generics[name]
	if !ok {
		return
	}
	outer, key := in.slot(lit.Pos(), 0), lit.Pos()
	if generic.nestedSlot > 0 {
		outer, key = in.slot(lit.Pos(), generic.nestedSlot), token.NoPos
	}
	for _, element := range lit.Elts {
		kv, ok := element.(*ast.KeyValueExpr)
		if !ok {
			in.connect(f, outer, key, element, false)
			continue
		}
		ident, ok := kv.Key.(*ast.Ident)
		switch {
		case !ok && generic.element == "": // a map of reconcilers
			in.connect(f, outer, key, kv.Value, false)
		case ok && nestedFields[ident.Name]:
			in.connect(f, outer, key, kv.Value, false)
		}
	}
}

// parameters connects a test case among the parameters of a factory with its result.
func (in *inference) parameters(key token.Pos, typ *ast.FuncType) {
	for _, field := range typ.Params.List {
		for _, name := range field.Names {
			if strings.HasPrefix(in.names[name.Pos()], "testing.") && in.names[key] != "" {
				in.unify(key, name.Pos())
			}
		}
		if len(field.Names) == 0 && strings.HasPrefix(in.names[field.Pos()], "testing.") && in.names[key] != "" {
			in.unify(key, field.Pos())
		}
	}
}

// call connects the arguments of functions of the project, and tests with their factories.
func (in *inference) call(f *file, call *ast.CallExpr) {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Run" || sel.Sel.Name == "Test") {
		if key, _ := in.keyOf(sel.X); key.IsValid() && strings.HasPrefix(in.names[key], "testing.") && len(call.Args) > 2 {
			if factory, _ := in.keyOf(call.Args[2]); factory.IsValid() {
				in.unify(key, factory)
			}
		}
	}
	if fun, ok := call.Fun.(*ast.Ident); ok && fun.Name == "append" && len(call.Args) > 1 {
		if key, _ := in.keyOf(call.Args[0]); key.IsValid() {
			for _, arg := range call.Args[1:] {
				in.connect(f, in.slot(key, 0), key, arg, false)
			}
		}
	}
	if _, d := in.declarationOf(call.Fun); d.fn != nil {
		i := 0
		for _, field := range d.fn.Params.List {
			for _, name := range field.Names {
				if i < len(call.Args) && in.names[name.Pos()] != "" {
					in.connect(f, in.slot(name.Pos(), 0), name.Pos(), call.Args[i], false)
				}
				i++
			}
		}
	}
}

// write adds the type parameters to the files.
func (in *inference) write() (unknown []use) {
	for _, u := range in.uses {
		if !u.file.selected {
			continue
		}
		var texts []string
		for index := range generics[u.name].parameters {
			s := in.slot(u.key, index)
			if s.found == nil && index == 2 && in.slot(u.key, 1).found != nil { // the list of a kind
				s.found = listOf(*in.slot(u.key, 1).found)
			}
			if s.found == nil {
				break
			}
			texts = append(texts, s.found.in(u.file))
		}
		if len(texts) < generics[u.name].parameters {
			unknown = append(unknown, u)
			continue
		}
		u.file.insert(u.expr.End(), "["+strings.Join(texts, ", ")+"]")
	}
	for _, fl := range in.flows {
		outer, inner := fl.outer.root(), in.slot(fl.inner, 0)
		if fl.file.selected && outer != inner && outer.found != nil && inner.found != nil &&
			inner.found.isObject() && outer.found.key() != inner.found.key() {
			qualifier := fl.file.qualifier(trueupModule+"/reconcilers", "reconcilers")
			fl.file.wrap(fl.expr, "&"+qualifier+".CastResource["+outer.found.in(fl.file)+", "+inner.found.in(fl.file)+
				"]{Reconciler: ", "}")
		}
	}
	return unknown
}

func listOf(t shownType) *shownType {
	star, ok := t.expr.(*ast.StarExpr)
	if !ok {
		return nil
	}
	switch named := star.X.(type) {
	case *ast.Ident:
		return &shownType{t.file, &ast.StarExpr{X: &ast.Ident{NamePos: named.Pos(), Name: named.Name + "List"}}}
	case *ast.SelectorExpr:
		return &shownType{t.file, &ast.StarExpr{X: &ast.SelectorExpr{
			X: named.X, Sel: &ast.Ident{NamePos: named.Sel.Pos(), Name: named.Sel.Name + "List"},
		}}}
	}
	return nil
}
