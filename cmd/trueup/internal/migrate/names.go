// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// namesIn changes the names of packages and the calls of functions in a file.
func (r *rewriter) namesIn(f *file) {
	ast.PreorderStack(f.ast, nil, func(n ast.Node, stack []ast.Node) bool {
		if r.done[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.SelectorExpr:
			r.selected(f, n, stack)
		case *ast.CallExpr:
			r.called(f, n, stack)
		}
		return true
	})
}

func (r *rewriter) selected(f *file, sel *ast.SelectorExpr, stack []ast.Node) {
	name := f.old(sel)
	if name == "apis.Conditions" {
		f.replace(sel.Pos(), sel.End(), "[]"+f.qualifier(meta, "metav1")+".Condition")
		return
	}
	to, ok := renames[name]
	switch {
	case ok && to.as == builtin:
		f.replace(sel.Pos(), sel.End(), to.name)
		return
	case ok && to.imported == "":
		f.replace(sel.Sel.Pos(), sel.Sel.End(), to.name)
		return
	case ok:
		imported := to.imported
		if pasted, isPasted := strings.CutPrefix(imported, pastedPrefix); isPasted {
			imported = r.pastedPath(pasted)
		}
		f.replace(sel.Pos(), sel.End(), f.qualifier(imported, to.as)+"."+to.name)
		return
	}
	r.ownWebhookName(f, sel, stack)
	r.untypedQueue(f, sel)
	if sel.Sel.Name != "Log" && sel.Sel.Name != "Scheme" || !r.isConfig(f, sel.X) {
		return
	}
	if sel.Sel.Name == "Scheme" {
		if call, isCall := stack[len(stack)-1].(*ast.CallExpr); !isCall || call.Fun != ast.Expr(sel) {
			f.insert(sel.End(), "()")
		}
		return
	}
	if assign, ok := stack[len(stack)-1].(*ast.AssignStmt); ok && slices.Contains(assign.Lhs, ast.Expr(sel)) {
		if len(assign.Lhs) == 1 { // the logger of the context already has the name of the reconciler
			f.removeStatement(assign)
		}
		return
	}
	if ctx := r.contextIn(f, stack); ctx != "" {
		f.replace(sel.Pos(), sel.End(), f.qualifier("github.com/go-logr/logr", "logr")+".FromContextOrDiscard("+ctx+")")
	} else {
		f.replace(sel.Pos(), sel.End(), f.qualifier(controllerRuntime, "ctrl")+".Log")
	}
	r.unused(f, sel.X)
}

// isConfig reports whether an expression is a config of reconcilers.
func (r *rewriter) isConfig(f *file, expr ast.Expr) bool {
	if call, ok := expr.(*ast.CallExpr); ok {
		return strings.Contains(f.old(call.Fun), "Config") && strings.HasPrefix(f.old(call.Fun), "reconcilers.Retrieve")
	}
	_, d := r.declarationOf(expr)
	switch {
	case d.typ != nil:
		typ := d.typ
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		return d.file.old(typ) == "reconcilers.Config"
	case d.value != nil && ast.Unparen(d.value) != expr:
		if lit, ok := d.value.(*ast.CompositeLit); ok && lit.Type != nil {
			return d.file.old(lit.Type) == "reconcilers.Config"
		}
		return r.isConfig(d.file, d.value)
	}
	return false
}

// contextIn returns the name of the context in the innermost function that has one.
func (r *rewriter) contextIn(f *file, stack []ast.Node) string {
	for _, n := range slices.Backward(stack) {
		var typ *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncLit:
			typ = n.Type
		case *ast.FuncDecl:
			typ = n.Type
		default:
			continue
		}
		if name := r.contexts[n]; name != "" {
			return name
		}
		for _, field := range typ.Params.List {
			if imported, name := f.selector(field.Type); imported != "context" || name != "Context" || len(field.Names) == 0 {
				continue
			}
			if field.Names[0].Name != "_" {
				return field.Names[0].Name
			}
			if !r.done[field] {
				r.done[field] = true
				f.replace(field.Names[0].Pos(), field.Names[0].End(), "ctx")
			}
			return "ctx"
		}
	}
	return ""
}

// unused removes a variable whose uses have all been replaced.
func (r *rewriter) unused(f *file, expr ast.Expr) {
	ident, ok := expr.(*ast.Ident)
	if !ok {
		return
	}
	pos := r.objects[ident]
	r.replaced[pos]++
	uses := 0
	for other, declared := range r.objects {
		if declared == pos && other.Pos() != pos {
			uses++
		}
	}
	if r.replaced[pos] != uses {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			return true
		}
		for _, left := range assign.Lhs {
			if left.Pos() == pos && len(assign.Lhs) == 1 {
				f.removeStatement(assign)
			} else if left.Pos() == pos {
				f.replace(left.Pos(), left.End(), "_")
			}
		}
		return true
	})
}

// called changes calls.
func (r *rewriter) called(f *file, call *ast.CallExpr, stack []ast.Node) {
	name := f.old(call.Fun)
	switch name {
	case "testing.BoolPtr", "testing.StringPtr":
		f.replace(call.Fun.Pos(), call.Fun.End(), "new")
	case "testing.Int32Ptr", "testing.Int64Ptr":
		f.replace(call.Fun.Pos(), call.Fun.End(), "new("+strings.ToLower(name[len("testing."):len(name)-len("Ptr")]))
		f.insert(call.End(), ")")
	case "reconcilers.EnqueueTracked":
		ctx := r.contextIn(f, stack)
		if ctx != "" && len(call.Args) > 0 && (len(call.Args) > 1 || f.text(call.Args[0]) != ctx) {
			f.replace(call.Args[0].Pos(), call.Args[len(call.Args)-1].End(), ctx)
			for _, arg := range call.Args {
				r.done[arg] = true
			}
		}
	case "reconcilers.RetrieveConfig", "reconcilers.RetrieveParentConfig", "reconcilers.RetrieveOriginalConfig":
		assign, ok := stack[len(stack)-1].(*ast.AssignStmt)
		_, returned := stack[len(stack)-1].(*ast.ReturnStmt)
		if !returned && (!ok || len(assign.Lhs) == 1) {
			f.insert(call.Fun.End(), "OrDie")
		}
	case "testing.NewEvent", "testing.NewTrackRequest", "testing.NewDeleteRefFromObject":
		for i, arg := range call.Args {
			objects := 1
			if name == "testing.NewTrackRequest" {
				objects = 2
			}
			if i < objects && r.factories && !f.isPlain(arg) {
				f.wrap(arg, f.qualifier(r.pastedPath("kit"), "kit")+".Object(", ")")
			}
		}
	case "tracker.New":
		for _, n := range slices.Backward(stack) {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || lit.Type == nil || f.old(lit.Type) != "reconcilers.Config" || len(call.Args) != 1 {
				continue
			}
			if scheme := f.fieldText(lit, "Scheme", ""); scheme != "" {
				f.insert(call.Args[0].Pos(), scheme+", ")
			} else if manager, ok := strings.CutSuffix(f.fieldText(lit, "Client", ""), ".GetClient()"); ok {
				f.insert(call.Args[0].Pos(), manager+".GetScheme(), ")
			}
		}
	case "app.NewEmbeddedManifest":
		if len(call.Args) == 1 {
			f.only(call, call.Args[0])
			r.done[call.Fun] = true
		}
	case "k8s.NewClientRegistry":
		f.replace(call.Pos(), call.End(), "&"+f.qualifier(trueupModule+"/simple", "simple")+".Clients{}")
		for _, n := range append([]ast.Expr{call.Fun}, call.Args...) {
			r.done[n] = true
		}
		r.leave(f, call.Pos(), rows["k8s.NewClientRegistry"], "pass these clients to simple.AppConfig.Clients")
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && name == "" {
		r.method(f, call, sel, stack)
	}
}

// method changes calls of methods, and of functions of controller-runtime.
func (r *rewriter) method(f *file, call *ast.CallExpr, sel *ast.SelectorExpr, stack []ast.Node) {
	if sel.Sel.Name == "GetStaticMetadata" && r.generation == Grafana {
		r.staticMetadata(f, call, sel, stack)
		return
	}
	if _, d := r.declarationOf(sel); d.fn != nil { // a method of the project
		return
	}
	imported, function := f.selector(sel)
	switch {
	case imported == controllerRuntime+"/pkg/handler" && function == "EnqueueRequestsFromMapFunc" && len(call.Args) == 1:
		r.mapFunction(f, call.Args[0])
	case imported != "":
	case sel.Sel.Name == "Watches" && len(call.Args) > 0:
		f.unwrapKind(call.Args[0])
	case sel.Sel.Name == "For" && len(call.Args) == 1:
		r.webhookFor(f, call, sel, stack)
	case sel.Sel.Name == "SetupWithManager" && len(call.Args) == 1:
		if key, _ := r.keyOf(sel.X); strings.HasPrefix(r.names[key], "reconcilers.") {
			ctx := r.contextIn(f, stack)
			if ctx == "" {
				ctx = f.qualifier("context", "context") + ".Background()"
			}
			f.insert(call.Args[0].Pos(), ctx+", ")
		}
	case sel.Sel.Name == "Track" && len(call.Args) == 3:
		r.track(f, call, sel, stack)
	case (sel.Sel.Name == "IsTrue" || sel.Sel.Name == "IsFalse" || sel.Sel.Name == "IsUnknown") && len(call.Args) == 0:
		r.conditionIs(f, call, sel)
	case sel.Sel.Name == "MarkTrue" && len(call.Args) == 1:
		f.insert(call.Args[0].End(), `, "Succeeded", ""`)
		r.review(f, call.Pos(), row{V01, "MarkTrue(t)"}, `the reason is now "Succeeded"; choose one`)
	case slices.Contains(marks, sel.Sel.Name) && len(call.Args) == 3:
		if text, ok := call.Args[2].(*ast.BasicLit); !ok || text.Kind != token.STRING {
			f.insert(call.Args[2].Pos(), `"%s", `)
		}
	}
}

// marks set a condition, with a reason and the format of a message.
var marks = []string{"MarkTrue", "MarkFalse", "MarkUnknown"}

// conditionIs makes methods of conditions functions.
func (r *rewriter) conditionIs(f *file, call *ast.CallExpr, sel *ast.SelectorExpr) {
	address := ""
	if getter, ok := sel.X.(*ast.CallExpr); ok {
		if fun, ok := getter.Fun.(*ast.SelectorExpr); !ok || fun.Sel.Name != "GetCondition" {
			return
		}
	} else {
		t, ok := f.typeOf(sel.X)
		if !ok {
			return
		}
		expr := t.expr
		star, pointer := expr.(*ast.StarExpr)
		if pointer {
			expr = star.X
		} else {
			address = "&"
		}
		if t.file.old(expr) != "apis.Condition" {
			return
		}
	}
	f.insert(call.Pos(), f.qualifier(trueupModule+"/apis", "apis")+".Condition"+sel.Sel.Name+"("+address)
	f.replace(sel.X.End(), call.End(), ")")
}

// unwrapKind replaces a source for a kind by the object.
func (f *file) unwrapKind(arg ast.Expr) {
	address, ok := arg.(*ast.UnaryExpr)
	if !ok {
		return
	}
	lit, ok := address.X.(*ast.CompositeLit)
	if !ok || len(lit.Elts) != 1 || lit.Type == nil {
		return
	}
	imported, name := f.selector(lit.Type)
	if name != "Kind" || imported != controllerRuntime+"/pkg/source" && f.old(lit.Type) != "reconcilers.Kind" {
		return
	}
	if kv, ok := lit.Elts[0].(*ast.KeyValueExpr); ok {
		f.only(arg, kv.Value)
	}
}

// mapFunction gives a function that maps objects to requests a context.
func (r *rewriter) mapFunction(f *file, arg ast.Expr) {
	fn, declaredIn := f.function(arg)
	if fn == nil || fn.Params.NumFields() != 1 {
		return
	}
	contextType := f.qualifier("context", "context") + ".Context"
	if inline, ok := arg.(*ast.FuncLit); ok {
		r.addContext(f, inline)
		return
	}
	if fn.Results.NumFields() != 1 {
		return
	}
	parameter, result := shownType{declaredIn, fn.Params.List[0].Type}, shownType{declaredIn, fn.Results.List[0].Type}
	f.wrap(arg, "func(_ "+contextType+", object "+parameter.in(f)+") "+result.in(f)+" { return ", "(object) }")
}

// track replaces a key and a name by a reference and the object that tracks.
func (r *rewriter) track(f *file, call *ast.CallExpr, sel *ast.SelectorExpr, stack []ast.Node) {
	observer := f.namedObject(call.Args[2])
	key := f.reference(call.Args[1])
	if observer == "" || key == "" {
		return
	}
	text := f.text(sel.X) + ".TrackReference(" + key + ", " + observer + ")"
	statement, ok := stack[len(stack)-1].(*ast.ExprStmt)
	if !ok || f.hasComment(statement) {
		return
	}
	f.replace(statement.Pos(), statement.End(), f.handled(text, stack))
}

// handled returns the statement for a call whose error was not returned before.
func (f *file) handled(text string, stack []ast.Node) string {
	for _, n := range slices.Backward(stack) {
		var results *ast.FieldList
		switch n := n.(type) {
		case *ast.FuncLit:
			results = n.Type.Results
		case *ast.FuncDecl:
			results = n.Type.Results
		default:
			continue
		}
		flat := flatten(results)
		switch {
		case len(flat) == 1 && f.text(flat[0]) == "error":
			return "if err := " + text + "; err != nil {\nreturn err\n}"
		case len(flat) == 2 && f.text(flat[1]) == "error" && strings.HasSuffix(f.text(flat[0]), ".Result"):
			return "if err := " + text + "; err != nil {\nreturn " + f.text(flat[0]) + "{}, err\n}"
		case len(flat) == 2 && f.text(flat[1]) == "error" && strings.HasPrefix(f.text(flat[0]), "*"):
			return "if err := " + text + "; err != nil {\nreturn nil, err\n}"
		}
		break
	}
	return "_ = " + text
}

// reference returns the text of a tracker.Reference for a key.
func (f *file) reference(key ast.Expr) string {
	if call, ok := key.(*ast.CallExpr); ok && f.old(call.Fun) == "tracker.NewKey" && len(call.Args) == 2 {
		kind, name := f.text(call.Args[0]), f.text(call.Args[1])
		group, kindName := kind+".Group", kind+".Kind"
		if lit, ok := call.Args[0].(*ast.CompositeLit); ok {
			group, kindName = f.fieldText(lit, "Group", `""`), f.fieldText(lit, "Kind", `""`)
		}
		namespace, named := name+".Namespace", name+".Name"
		if lit, ok := call.Args[1].(*ast.CompositeLit); ok {
			namespace, named = f.fieldText(lit, "Namespace", `""`), f.fieldText(lit, "Name", `""`)
		}
		text := f.qualifier(trueupModule+"/tracker", "tracker") + ".Reference{"
		if group != `""` {
			text += "\nAPIGroup: " + group + ","
		}
		return text + "\nKind: " + kindName + ",\nNamespace: " + namespace + ",\nName: " + named + ",\n}"
	}
	if ident, ok := key.(*ast.Ident); ok {
		k := ident.Name
		return f.qualifier(trueupModule+"/tracker", "tracker") + ".Reference{\nAPIGroup: " + k + ".GroupKind.Group,\nKind: " +
			k + ".GroupKind.Kind,\nNamespace: " + k + ".NamespacedName.Namespace,\nName: " + k + ".NamespacedName.Name,\n}"
	}
	return ""
}

func (f *file) fieldText(lit *ast.CompositeLit, field, otherwise string) string {
	for _, element := range lit.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok && f.text(kv.Key) == field {
			return f.text(kv.Value)
		}
	}
	return otherwise
}

// namedObject returns the object whose name an expression is.
func (f *file) namedObject(name ast.Expr) string {
	switch name := name.(type) {
	case *ast.CompositeLit:
		text := f.fieldText(name, "Name", "")
		for _, suffix := range []string{".Name", ".GetName()", ".ObjectMeta.Name"} {
			if object, ok := strings.CutSuffix(text, suffix); ok {
				return object
			}
		}
	case *ast.CallExpr:
		if _, function := f.selector(name.Fun); function == "ObjectKeyFromObject" && len(name.Args) == 1 {
			return f.text(name.Args[0])
		}
	}
	return ""
}
