// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// A main that elects a leader and never ends must not release the lease: what is left of its reconciles would run
// beside the next leader.
func TestExamplesReleaseTheirLeaseAndEnd(t *testing.T) {
	electing := 0
	for _, f := range sourceFiles(t) {
		if !strings.HasPrefix(f.path, "examples/") || !strings.HasSuffix(f.path, "/main.go") ||
			!strings.Contains(f.content, "LeaderElectionID:") {
			continue
		}
		electing++
		if !strings.Contains(f.content, "LeaderElectionReleaseOnCancel: true,") {
			t.Errorf("%s does not set LeaderElectionReleaseOnCancel: the next leader waits until the lease expires", f.path)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.content, 0)
		if err != nil {
			t.Fatal(err)
		}
		if main := parsed.Scope.Lookup("main"); main == nil || !startsLast(main.Decl.(*ast.FuncDecl).Body.List) {
			t.Errorf("main in %s must end when the manager has stopped: mgr.Start must be its last statement", f.path)
		}
	}
	if electing != 2 {
		t.Errorf("found %d examples that elect a leader, want 2", electing)
	}
}

// startsLast reports whether the last statement starts a manager, and does not wait for anything after it.
func startsLast(statements []ast.Stmt) bool {
	if len(statements) == 0 {
		return false
	}
	last, ok := statements[len(statements)-1].(*ast.IfStmt)
	if !ok || last.Init == nil {
		return false
	}
	assigned, ok := last.Init.(*ast.AssignStmt)
	if !ok || len(assigned.Rhs) != 1 {
		return false
	}
	call, ok := assigned.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Start"
}
