// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"go/ast"
	"strings"
)

// statusKinds names the kind with a status in the test cases that expect its updates. The API in memory of earlier
// versions updated the status of any kind.
func (r *rewriter) statusKinds(f *file) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Run" && sel.Sel.Name != "Test" {
			return true
		}
		table := ast.Unparen(sel.X)
		if _, d := r.declarationOf(table); d.value != nil && d.file == f {
			table = d.value
		}
		lit, ok := table.(*ast.CompositeLit)
		if !ok || lit.Type == nil || elements[f.old(lit.Type)] != "testing.ReconcilerTestCase" {
			return true
		}
		kind := r.reconciled(call.Args[2])
		if kind == nil {
			return true
		}
		star, ok := kind.expr.(*ast.StarExpr)
		if !ok {
			return true
		}
		for _, element := range lit.Elts {
			if kv, ok := element.(*ast.KeyValueExpr); ok {
				element = kv.Value
			}
			if testCase, ok := element.(*ast.CompositeLit); ok {
				f.addStatusKind(testCase, shownType{kind.file, star.X})
			}
		}
		return true
	})
}

// reconciled returns the type of what the root reconciler that a factory returns reconciles.
func (r *rewriter) reconciled(factory ast.Expr) (found *shownType) {
	fn, ok := factory.(*ast.FuncLit)
	if !ok {
		return nil
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if result, ok := n.(*ast.ReturnStmt); ok && len(result.Results) == 1 && found == nil {
			if key, _ := r.keyOf(result.Results[0]); strings.HasPrefix(r.names[key], "reconcilers.") {
				found = r.slot(key, 0).found
			}
		}
		return true
	})
	return found
}

func (f *file) addStatusKind(testCase *ast.CompositeLit, kind shownType) {
	var before *ast.KeyValueExpr
	for _, element := range testCase.Elts {
		kv, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		switch f.text(kv.Key) {
		case "StatusSubResourceTypes":
			return
		case "ExpectStatusUpdates", "ExpectStatusPatches":
			before = kv
		}
	}
	if before != nil {
		object := f.qualifier(controllerRuntime+"/pkg/client", "client") + ".Object"
		f.insert(before.Pos(), "StatusSubResourceTypes: []"+object+"{&"+kind.in(f)+"{}},\n")
	}
}
