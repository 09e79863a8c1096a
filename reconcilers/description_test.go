// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trueup.dev/graph"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

// nesting has each reconciler that nests another one.
var nesting = map[string]func(below subReconciler) subReconciler{
	"Advice": func(below subReconciler) subReconciler { return &advice{Reconciler: below} },
	"Always": func(below subReconciler) subReconciler { return always{below} },
	"CastResource": func(below subReconciler) subReconciler {
		return &reconcilers.CastResource[*fixture.Resource, *fixture.Resource]{Reconciler: below}
	},
	"ForEach": func(below subReconciler) subReconciler { return &forEach{Items: items("x"), Reconciler: below} },
	"IfThen": func(below subReconciler) subReconciler {
		return &ifThen{If: isTrue, Then: nothing(), Else: &ifThen{If: isTrue, Then: below}}
	},
	"OverrideSetup": func(below subReconciler) subReconciler { return &overrideSetup{Reconciler: below} },
	"Paused":        func(below subReconciler) subReconciler { return &paused{Reconciler: below} },
	"Periodic":      func(below subReconciler) subReconciler { return &periodic{Interval: time.Hour, Reconciler: below} },
	"Prune": func(below subReconciler) subReconciler {
		return &prune{Inventory: "example.com/inventory", Reconciler: below}
	},
	"RateLimit": func(below subReconciler) subReconciler { return &rateLimit{Interval: time.Hour, Reconciler: below} },
	"Retry":     func(below subReconciler) subReconciler { return &retry{Reconciler: below} },
	"Sequence":  func(below subReconciler) subReconciler { return sequence{below} },
	"Steps": func(below subReconciler) subReconciler {
		return &steps{Steps: []stepOf{{Name: "a", Reconciler: below}}}
	},
	"SuppressTransientErrors": func(below subReconciler) subReconciler { return &suppress{Reconciler: below} },
	"Timeout":                 func(below subReconciler) subReconciler { return &timeout{After: time.Hour, Reconciler: below} },
	"TryCatch": func(below subReconciler) subReconciler {
		return &tryCatch{Try: nothing(), Finally: &tryCatch{Try: below}}
	},
	"While": func(below subReconciler) subReconciler { return &while{Condition: isTrue, Reconciler: below} },
	"WithConfig": func(below subReconciler) subReconciler {
		return &withConfig{Config: sameConfig, Reconciler: below}
	},
	"WithFinalizer": func(below subReconciler) subReconciler {
		return &withFinalizer{Finalizer: "example.com/finalizer", Reconciler: below}
	},
}

// notNesting are the other sub reconcilers.
var notNesting = []string{"ChildReconciler", "ChildSetReconciler", "SyncReconciler"}

func TestNesting_WhatIsNestedIsSetUpValidatedAndDescribed(t *testing.T) {
	for name, nest := range nesting {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			invalid := nest(&syncReconciler{Name: "below"}).(validation.Validator)
			contains(t, everything(invalid.Validate(validation.WithRecursive(w.Context()))),
				`SyncReconciler "below" must implement Sync or SyncWithResult`)
			wantErr(t, nil, invalid.Validate(w.Context()))

			s := &setups{t: t, config: w.Config}
			reconciler := nest(s.part("below"))
			wantErr(t, nil, reconciler.SetupWithManager(w.Context(), nil, nil))
			want := []string{"below"}
			if name == "OverrideSetup" {
				want = nil
			}
			equal(t, "set up", want, s.order)

			described := false
			for node := range graph.Of(&resourceReconciler{Reconciler: reconciler}).All() {
				described = described || node.Name == "below"
			}
			equal(t, "below is in the graph", true, described)
		})
	}
}

// TestEachReconciler finds what a new type of this package lacks: see "Add a reconciler" in CONTRIBUTING.md.
func TestEachReconciler(t *testing.T) {
	methods := methodsOfPackage(t)
	examples := contentOf(t, "example*_test.go")
	scenarios := contentOf(t, "../internal/tests/convergence/*_test.go")
	guide := contentOf(t, "../docs/composing.md")
	found := 0
	for name, has := range methods {
		if !ast.IsExported(name) || has["SetupWithManager"] != 3 || has["Reconcile"] == 0 {
			continue
		}
		found++
		if has["describe"] == 0 {
			t.Errorf("%s has no method describe, from which set-up, validation and package graph follow", name)
		}
		if nesting[name] == nil && !slices.Contains(notNesting, name) {
			t.Errorf("%s is neither in nesting nor in notNesting", name)
		}
		if !strings.Contains(examples, "\nfunc Example"+name+"(") {
			t.Errorf("%s has no Example", name)
		}
		if !strings.Contains(scenarios, "reconcilers."+name+"[") && name != "OverrideSetup" { // which only omits watches
			t.Errorf("no test in internal/tests/convergence has a %s", name)
		}
		if !strings.Contains(guide, "`"+name+"`") {
			t.Errorf("docs/composing.md has no row for %s", name)
		}
	}
	equal(t, "sub reconcilers", len(nesting)+len(notNesting), found)
	for name, has := range methods {
		manages := name == "ApplyingObjectManager" || name == "UpdatingObjectManager" // their reconciler describes the kind
		if ast.IsExported(name) && has["Validate"] > 0 && has["DescribeTo"] == 0 && !manages {
			t.Errorf("%s has no method DescribeTo for package graph", name)
		}
	}
}

// methodsOfPackage returns the numbers of parameters of the methods of each type.
func methodsOfPackage(t *testing.T) map[string]map[string]int {
	t.Helper()
	files, err := filepath.Glob("*.go")
	wantErr(t, nil, err)
	methods := map[string]map[string]int{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		wantErr(t, nil, err)
		for _, declaration := range file.Decls {
			method, ok := declaration.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			name := receiver(method.Recv.List[0].Type)
			if methods[name] == nil {
				methods[name] = map[string]int{}
			}
			methods[name][method.Name.Name] = method.Type.Params.NumFields()
		}
	}
	return methods
}

// receiver returns the name of the type of a receiver.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

func contentOf(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	wantErr(t, nil, err)
	all := strings.Builder{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		wantErr(t, nil, err)
		all.Write(content)
	}
	return all.String()
}
