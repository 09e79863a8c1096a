// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// generatedCode removes what the CLI of the App SDK has generated and trueup has no use for: clients, and the function
// of a manifest that reads it from the API server.
func (r *rewriter) generatedCode() {
	for _, f := range r.files {
		if !f.selected {
			continue
		}
		if f.isGeneratedClient() {
			f.deleted = true
			r.removeNames(f)
			continue
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.isRemoteManifest(fn) {
				f.removeDeclaration(fn, fn.Doc)
				r.removed[fn.Name.Pos()] = rows["app.NewAPIServerManifest"]
			}
		}
	}
}

// clientMethods are the methods of a generated client. For each subresource there is one that begins with Update, and
// for each custom route one with a type for its request.
var clientMethods = []string{"Get", "List", "ListAll", "Create", "Patch", "Delete"}

// isGeneratedClient reports whether the file has exactly the form of a generated client. Its header does not show it:
// the generator writes none.
func (f *file) isGeneratedClient() bool {
	if base := path.Base(f.name); base != "client_gen.go" && !strings.HasSuffix(base, "_client_gen.go") {
		return false
	}
	client, methods, specs := "", map[string]bool{}, map[string]ast.Expr{}
	for _, decl := range f.ast.Decls {
		switch decl := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ImportSpec:
				case *ast.TypeSpec:
					specs[spec.Name.Name] = spec.Type
					if f.wrapsClient(spec.Type) {
						client = spec.Name.Name
					}
				default:
					return false
				}
			}
		case *ast.FuncDecl:
			if decl.Recv != nil {
				methods[decl.Name.Name] = true
			}
		}
	}
	for name, spec := range specs {
		route, isRequest := strings.CutSuffix(name, "Request")
		if _, isStruct := spec.(*ast.StructType); name != client && (!isStruct || !isRequest || !methods[route]) {
			return false
		}
	}
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		if fn.Recv == nil {
			if name != "New"+client && name != "New"+client+"FromGenerator" {
				return false
			}
			continue
		}
		receiver, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
		if !ok || f.text(receiver.X) != client || specs[name+"Request"] == nil &&
			!slices.Contains(clientMethods, name) && !strings.HasPrefix(name, "Update") {
			return false
		}
	}
	return client != ""
}

// wrapsClient reports whether a type is a struct with nothing but a client of the App SDK.
func (f *file) wrapsClient(typ ast.Expr) bool {
	fields, ok := typ.(*ast.StructType)
	if !ok || len(fields.Fields.List) != 1 {
		return false
	}
	field := fields.Fields.List[0]
	if pointer, ok := field.Type.(*ast.StarExpr); ok && len(field.Names) == 1 && field.Names[0].Name == "client" {
		return f.old(unindexed(pointer.X)) == "resource.TypedClient"
	}
	return len(field.Names) == 0 && f.old(field.Type) == "resource.CustomRouteClient"
}

// isRemoteManifest reports whether a function is the RemoteManifest of a generated manifest.
func (f *file) isRemoteManifest(fn *ast.FuncDecl) bool {
	if !strings.HasSuffix(f.name, "_manifest.go") || fn.Recv != nil || fn.Name.Name != "RemoteManifest" ||
		fn.Body == nil || len(fn.Body.List) != 1 {
		return false
	}
	result, ok := fn.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(result.Results) != 1 {
		return false
	}
	call, ok := result.Results[0].(*ast.CallExpr)
	return ok && f.old(call.Fun) == "app.NewAPIServerManifest"
}

// removeNames notes the functions and types of a deleted file: their uses are left by hand.
func (r *rewriter) removeNames(f *file) {
	remove := func(name *ast.Ident) {
		at := rows["resource.NewTypedClient"]
		if path.Base(f.name) == "client_gen.go" || strings.HasSuffix(name.Name, "Request") {
			at = rows["resource.CustomRouteClient"]
		}
		r.removed[name.Pos()] = at
	}
	for _, decl := range f.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				remove(decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					remove(spec.Name)
				}
			}
		}
	}
}

// usesOfRemoved reports uses of removed declarations.
func (r *rewriter) usesOfRemoved(f *file) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok {
			pos := r.objects[ident]
			if at, ok := r.removed[pos]; ok && pos != ident.Pos() {
				r.leave(f, ident.Pos(), at, ident.Name+" was generated, and is removed")
			}
		}
		return true
	})
}

// objectFile ends the names of files whose types have a generated method GetStaticMetadata.
const objectFile = "_object_gen.go"

// staticMetadata makes the method GetStaticMetadata a function. Methods that the project declares are kept.
func (r *rewriter) staticMetadata(f *file, call *ast.CallExpr, sel *ast.SelectorExpr, stack []ast.Node) {
	if _, d := r.declarationOf(sel); d.file != nil || len(call.Args) > 0 || strings.HasSuffix(f.name, objectFile) {
		return
	}
	name := f.qualifier(trueupModule+"/resource", "resource")
	if r.declares(stack, name) {
		r.leave(f, call.Pos(), rows["GetStaticMetadata"],
			"call StaticMetadataOf of package resource: "+name+" is a variable here")
		return
	}
	f.insert(call.Pos(), name+".StaticMetadataOf(")
	f.replace(sel.X.End(), call.End(), ")")
}

// declares reports whether a function around a node has a variable of that name.
func (r *rewriter) declares(stack []ast.Node, name string) bool {
	found := false
	for _, n := range stack {
		fn, ok := n.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if ident, ok := n.(*ast.Ident); ok && ident.Name == name && r.objects[ident] != token.NoPos {
				found = true
			}
			return !found
		})
	}
	return found
}
