// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"go/ast"
	"slices"
	"strings"
)

const (
	webhookPackage   = controllerRuntime + "/pkg/webhook"
	admissionPackage = controllerRuntime + "/pkg/webhook/admission"
)

// webhookFor makes the object of a webhook an argument of the builder. If the kind has the methods that earlier
// versions of controller-runtime called, a defaulter and a validator call them. Without these, they are no longer
// called, and controller-runtime reports nothing.
func (r *rewriter) webhookFor(f *file, call *ast.CallExpr, sel *ast.SelectorExpr, stack []ast.Node) {
	var builder *ast.CallExpr
	links := map[string]*ast.SelectorExpr{}
	for below := sel.X; builder == nil; {
		next, ok := below.(*ast.CallExpr)
		if !ok {
			return
		}
		imported, name := f.selector(next.Fun)
		if imported+"."+name == controllerRuntime+".NewWebhookManagedBy" ||
			imported+"."+name == controllerRuntime+"/pkg/builder.WebhookManagedBy" {
			builder = next
			break
		}
		link, ok := next.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		links[link.Sel.Name], below = link, link.X
	}
	if len(builder.Args) != 1 {
		return
	}
	for i := len(stack) - 1; i > 0; i -= 2 {
		link, ok := stack[i].(*ast.SelectorExpr)
		if _, called := stack[i-1].(*ast.CallExpr); !ok || !called {
			break
		}
		links[link.Sel.Name] = link
	}
	f.insert(builder.Args[0].End(), ", "+f.text(call.Args[0]))
	text, dot := "", string(f.src[f.offset(sel.X.End()):f.offset(sel.Sel.Pos())])
	defaulter, validator := r.ownWebhooks(f, call.Args[0])
	for _, webhook := range []struct{ with, custom, own string }{
		{"WithDefaulter", "WithCustomDefaulter", defaulter}, {"WithValidator", "WithCustomValidator", validator},
	} {
		if link := links[webhook.with]; link != nil { // it took objects of any type
			f.replace(link.Sel.Pos(), link.Sel.End(), webhook.custom)
		} else if webhook.own != "" {
			text += dot + webhook.with + "(" + webhook.own + ")"
		}
	}
	f.replace(sel.X.End(), call.End(), text)
	if links["WithDefaulter"] == nil || links["WithValidator"] == nil {
		r.unseenKind(f, call.Args[0])
	}
}

// ownWebhooks returns a defaulter and a validator that call the methods of a kind. They are empty if the kind does not
// have the methods.
func (r *rewriter) ownWebhooks(f *file, object ast.Expr) (defaulter, validator string) {
	t, ok := f.typeOf(object)
	star, isPointer := t.expr.(*ast.StarExpr)
	if !ok || !isPointer {
		return "", ""
	}
	key := shownType{t.file, star.X}.key()
	has := func(name string, parameters, results int) bool {
		fn := r.methods[key+"."+name].fn
		return fn != nil && len(flatten(fn.Params)) == parameters && len(flatten(fn.Results)) == results
	}
	generic := func(name string) string {
		return f.qualifier(r.pastedPath("webhooks"), "webhooks") + "." + name + "[" + t.in(f) + "]{}"
	}
	if has("Default", 0, 0) {
		defaulter = generic("Defaulter")
	}
	for name, results := range map[string]int{"Validator": 1, "WarningValidator": 2} {
		if has("ValidateCreate", 0, results) && has("ValidateUpdate", 1, results) && has("ValidateDelete", 0, results) {
			validator = generic(name)
		}
	}
	return defaulter, validator
}

// unseenKind reports a kind of another module: it may have methods that are no longer called. Kinds of Kubernetes have
// none.
func (r *rewriter) unseenKind(f *file, object ast.Expr) {
	t, ok := f.typeOf(object)
	if ok {
		if star, isPointer := t.expr.(*ast.StarExpr); isPointer {
			t.expr = star.X
		}
		imported, _ := t.file.selector(t.expr)
		if imported == "" || strings.HasPrefix(imported, "k8s.io/") || strings.HasPrefix(imported+"/", r.module+"/") {
			return
		}
	}
	r.leave(f, object.Pos(), rows["webhook.Defaulter"],
		"methods Default and Validate… that this kind may have are no longer called")
}

// ownWebhookName removes the assertion that a kind is its own webhook, and reports other names for such kinds.
func (r *rewriter) ownWebhookName(f *file, sel *ast.SelectorExpr, stack []ast.Node) {
	switch imported, name := f.selector(sel); {
	case imported != webhookPackage && imported != admissionPackage:
		return
	case name == "Defaulter" || name == "Validator":
		if index, ok := stack[len(stack)-1].(*ast.IndexExpr); ok && index.X == ast.Expr(sel) { // of today
			return
		}
		if spec, ok := stack[len(stack)-1].(*ast.ValueSpec); ok && f.assertsOwnWebhook(spec) {
			f.removeAssertion(spec, stack[len(stack)-2].(*ast.GenDecl))
			return
		}
	case name != "DefaultingWebhookFor" && name != "ValidatingWebhookFor":
		return
	}
	r.leave(f, sel.Pos(), rows["webhook.Defaulter"], f.text(sel)+" does not exist")
}

// assertsOwnWebhook reports whether a declaration only asserts that a kind is its own webhook.
func (f *file) assertsOwnWebhook(spec ast.Spec) bool {
	value, ok := spec.(*ast.ValueSpec)
	if !ok || len(value.Names) != 1 || value.Names[0].Name != "_" {
		return false
	}
	imported, name := f.selector(value.Type)
	return (imported == webhookPackage || imported == admissionPackage) && (name == "Defaulter" || name == "Validator")
}

// removeAssertion removes a declaration of a variable, and the group with the last one.
func (f *file) removeAssertion(spec *ast.ValueSpec, decl *ast.GenDecl) {
	if !slices.ContainsFunc(decl.Specs, func(s ast.Spec) bool { return !f.assertsOwnWebhook(s) }) {
		if spec == decl.Specs[0] {
			f.removeDeclaration(decl, decl.Doc)
		}
		return
	}
	end := spec.End()
	if spec.Comment != nil {
		end = spec.Comment.End()
	}
	f.edits = append(f.edits, lineOf(f.src, f.offset(spec.Pos()), f.offset(end)))
}

// removeDeclaration removes a declaration with its comment and the empty line after it. Markers for generators stay.
func (f *file) removeDeclaration(decl ast.Decl, doc *ast.CommentGroup) {
	start := decl.Pos()
	marked := doc != nil && bytes.Contains(f.src[f.offset(doc.Pos()):f.offset(doc.End())], []byte("+kubebuilder:"))
	if doc != nil && !marked {
		start = doc.Pos()
	}
	e := lineOf(f.src, f.offset(start), f.offset(decl.End()))
	if !marked && bytes.HasPrefix(f.src[e.end:], []byte("\n")) {
		e.end++
	}
	f.edits = append(f.edits, e)
}
