// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"go/ast"
	"go/token"
	"strings"
)

// rewriter changes the files of a project after their type parameters are known.
type rewriter struct {
	*inference
	generation Generation

	contexts map[ast.Node]string // functions that get a context, and its name
	done     map[ast.Node]bool
	replaced map[token.Pos]int // replaced uses of a variable
	removed  map[token.Pos]row // removed declarations, and what replaces them
	findings []finding
}

// finding is something that the user should look at.
type finding struct {
	file *file
	pos  token.Pos
	row  row
	text string
	left bool // not only to review
}

// review notes a change that is complete, but whose behavior the user should compare.
func (r *rewriter) review(f *file, pos token.Pos, at row, text string) {
	r.findings = append(r.findings, finding{f, pos, at, text, false})
}

// literals changes the fields of literals.
func (r *rewriter) literals(f *file) {
	types := map[*ast.CompositeLit]string{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		name := types[lit]
		if lit.Type != nil {
			r.managerOptions(f, lit)
			name = f.old(unindexed(lit.Type))
			if list, ok := lit.Type.(*ast.ArrayType); ok && elements[name] == "" {
				types[lit] = f.old(list.Elt)
				for _, element := range lit.Elts {
					if inner, ok := element.(*ast.CompositeLit); ok && inner.Type == nil {
						types[inner] = f.old(unindexed(list.Elt))
					}
				}
			}
		}
		for _, element := range lit.Elts {
			kv, ok := element.(*ast.KeyValueExpr)
			value := element
			if ok {
				value = kv.Value
			}
			if inner, isLit := value.(*ast.CompositeLit); isLit && inner.Type == nil && elements[name] != "" {
				types[inner] = elements[name]
			}
			if !ok {
				continue
			}
			if field, isName := kv.Key.(*ast.Ident); isName {
				if what, ok := fields[name][field.Name]; ok {
					r.field(f, name, lit, kv, what)
				}
				if name == "operator.ReconcileResult" && field.Name == "RequeueAfter" {
					if address, ok := kv.Value.(*ast.UnaryExpr); ok && address.Op == token.AND {
						f.replace(address.Pos(), address.X.Pos(), "")
					}
				}
			}
		}
		return true
	})
}

// unindexed returns a generic type without its parameters.
func unindexed(expr ast.Expr) ast.Expr {
	switch expr := expr.(type) {
	case *ast.IndexExpr:
		return expr.X
	case *ast.IndexListExpr:
		return expr.X
	}
	return expr
}

func (r *rewriter) field(f *file, name string, lit *ast.CompositeLit, kv *ast.KeyValueExpr, what change) {
	fn, declaredIn := f.function(kv.Value)
	inline, isInline := kv.Value.(*ast.FuncLit)
	parameters, results := 0, 0
	if fn != nil {
		parameters, results = fn.Params.NumFields(), fn.Results.NumFields()
	}
	parameter := func(i int) string { return shownType{declaredIn, flatten(fn.Params)[i]}.in(f) }
	called := f.text(kv.Value)
	contextType := func() string { return f.qualifier("context", "context") + ".Context" }
	switch what {
	case remove, removeConfig:
		f.removeElement(kv)
	case removeReview:
		f.removeElement(kv)
		r.review(f, kv.Pos(), rows["SemanticEquals"], "removed: objects are compared after the merge")
	case withResult:
		if results == 2 {
			f.insert(kv.Key.End(), "WithResult")
		}
	case asSequence:
		f.replace(kv.Key.Pos(), kv.Key.End(), "Reconciler")
		if list, ok := kv.Value.(*ast.CompositeLit); ok && list.Type != nil {
			// the type parameter is added after it
			text := f.qualifier(trueupModule+"/reconcilers", "reconcilers") + ".Sequence"
			f.replace(list.Type.Pos(), list.Type.End(), text)
		}
	case reflectStatus:
		switch {
		case parameters != 3:
		case isInline:
			r.addContext(f, inline)
		default:
			f.wrap(kv.Value, "func(_ "+contextType()+", parent "+parameter(0)+", child "+parameter(1)+", err error) { ",
				"(parent, child, err) }")
		}
	case setUpContext:
		switch {
		case parameters != 2:
		case isInline:
			r.addContext(f, inline)
		default:
			reconcilers := f.qualifier(trueupModule+"/reconcilers", "reconcilers")
			f.wrap(kv.Value, "func(_ "+contextType()+", mgr "+reconcilers+".Manager, bldr *"+reconcilers+
				".Builder) error { return ", "(mgr, bldr) }")
		}
	case returnsAny:
		if results != 1 {
			return
		}
		switch text := declaredIn.text(fn.Results.List[0].Type); {
		case text == "any" || text == "interface{}":
		case isInline:
			f.replace(fn.Results.List[0].Type.Pos(), fn.Results.List[0].Type.End(), "any")
		default:
			f.replace(kv.Value.Pos(), kv.Value.End(), "func(object "+parameter(0)+") any { return "+called+"(object) }")
		}
	case returnsType:
		if results == 2 && isInline {
			declared := shownType{f, flatten(fn.Results)[0]}
			if t := r.slot(lit.Pos(), 0).found; t != nil && declared.isObject() {
				f.replace(declared.expr.Pos(), declared.expr.End(), t.in(f))
			}
		}
	case prepareContext, cleanUpContext:
		if parameters == 1 {
			r.hook(f, name, lit, kv, what == prepareContext)
		}
	case objectList:
		r.objectList(f, kv)
	case object:
		if r.factories && !f.isPlain(kv.Value) {
			t := r.slot(lit.Pos(), 0).found
			if t == nil {
				return
			}
			f.wrap(kv.Value, f.qualifier(r.pastedPath("kit"), "kit")+".As["+t.in(f)+"](", ")")
		}
		r.renameResource(f, name, kv)
	}
}

// renameResource gives the resource of a case its new name, unless code reads the old one.
func (r *rewriter) renameResource(f *file, name string, kv *ast.KeyValueExpr) {
	key := kv.Key.(*ast.Ident)
	renamed := map[string]string{"Parent": "Resource", "ExpectParent": "ExpectResource"}[key.Name]
	if renamed == "" || name != "testing.SubReconcilerTestCase" {
		return
	}
	for _, other := range r.files {
		if other.dir == f.dir && r.readsParent(other) {
			return
		}
	}
	f.replace(key.Pos(), key.End(), renamed)
}

func (r *rewriter) readsParent(f *file) (reads bool) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Parent" || sel.Sel.Name == "ExpectParent") {
			if key, _ := r.keyOf(sel.X); strings.HasPrefix(r.names[key], "testing.SubReconcilerTest") {
				reads = true
			}
		}
		return true
	})
	return reads
}

// addContext makes a context the first parameter.
func (r *rewriter) addContext(f *file, fn *ast.FuncLit) {
	if _, done := r.contexts[fn]; done {
		return
	}
	r.contexts[fn] = ""
	text := f.qualifier("context", "context") + ".Context, "
	if len(fn.Type.Params.List[0].Names) > 0 {
		text = "ctx " + text
		r.contexts[fn] = "ctx"
	}
	f.insert(fn.Type.Params.List[0].Pos(), text)
}

// hook gives Prepare or CleanUp of a test case its context and the case.
func (r *rewriter) hook(f *file, name string, lit *ast.CompositeLit, kv *ast.KeyValueExpr, returnsContext bool) {
	kit, caseName, _ := strings.Cut(name, ".")
	caseType := "*" + f.qualifier(trueupModule+"/"+kit, "rtesting") + "." + caseName
	if strings.HasPrefix(caseName, "Sub") {
		t := r.slot(lit.Pos(), 0).found
		if t == nil {
			return
		}
		caseType += "[" + t.in(f) + "]"
	}
	contextType := f.qualifier("context", "context") + ".Context"
	more := ", ctx " + contextType + ", _ " + caseType
	fn, ok := kv.Value.(*ast.FuncLit)
	if !ok {
		before, results := "", "error"
		if returnsContext {
			before, results = "ctx, ", "("+contextType+", error)"
		}
		f.wrap(kv.Value, "func(t *"+f.qualifier("testing", "testing")+".T"+more+") "+results+" { return "+before, "(t) }")
		return
	}
	if len(fn.Type.Params.List[0].Names) == 0 {
		f.insert(fn.Type.Params.List[0].Pos(), "_ ")
	}
	f.insert(fn.Type.Params.List[0].End(), more)
	r.contexts[fn] = "ctx"
	if !returnsContext || fn.Type.Results.NumFields() != 1 {
		return
	}
	f.wrap(fn.Type.Results.List[0].Type, "("+contextType+", ", ")")
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if result, ok := n.(*ast.ReturnStmt); ok && len(result.Results) == 1 {
			f.insert(result.Results[0].Pos(), "ctx, ")
		}
		_, nested := n.(*ast.FuncLit)
		return !nested
	})
}

// objectList makes a list of factories a list of objects.
func (r *rewriter) objectList(f *file, kv *ast.KeyValueExpr) {
	if !r.factories {
		return
	}
	kit := func() string { return f.qualifier(r.pastedPath("kit"), "kit") }
	list, ok := kv.Value.(*ast.CompositeLit)
	if !ok {
		if t, known := f.typeOf(kv.Value); known {
			if slice, isSlice := t.expr.(*ast.ArrayType); isSlice && t.file.old(slice.Elt) == "testing.Factory" {
				f.wrap(kv.Value, kit()+".ObjectsOf(", ")")
			}
		}
		return
	}
	plain := true
	for _, element := range list.Elts {
		plain = plain && f.isPlain(element)
	}
	slice, ok := list.Type.(*ast.ArrayType)
	if !ok || plain && f.old(slice.Elt) != "testing.Factory" {
		return
	}
	f.replace(list.Type.Pos(), list.Lbrace+1, kit()+".Objects(")
	f.replace(list.Rbrace, list.Rbrace+1, ")")
}

// isPlain reports whether an expression is an object, and not what makes one.
func (f *file) isPlain(expr ast.Expr) bool {
	if call, ok := expr.(*ast.CallExpr); ok {
		if imported, _ := f.selector(unindexed(call.Fun)); imported == f.project.pastedPath("kit") {
			return true // of an earlier run
		}
	}
	t, ok := f.typeOf(expr)
	if !ok {
		ident, isName := expr.(*ast.Ident)
		return isName && ident.Name == "nil"
	}
	_, pointer := t.expr.(*ast.StarExpr)
	return pointer && !t.isFactory()
}

// isFactory reports whether the project declares that the type makes objects.
func (t shownType) isFactory() bool {
	expr := t.expr
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if imported, _ := t.file.selector(expr); pastedPackages[imported] == "factories" {
		return true
	}
	return t.file.project.methods[shownType{t.file, expr}.key()+".CreateObject"].fn != nil
}

// made returns the type of what a factory makes.
func (t shownType) made() (shownType, bool) {
	expr := t.expr
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	create := t.file.project.methods[shownType{t.file, expr}.key()+".Create"]
	if create.fn == nil || create.fn.Results.NumFields() == 0 {
		return shownType{}, false
	}
	return shownType{create.file, create.fn.Results.List[0].Type}, true
}
