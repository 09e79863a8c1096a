// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

type (
	advice        = reconcilers.Advice[*fixture.Resource]
	always        = reconcilers.Always[*fixture.Resource]
	ifThen        = reconcilers.IfThen[*fixture.Resource]
	while         = reconcilers.While[*fixture.Resource]
	forEach       = reconcilers.ForEach[*fixture.Resource, string]
	tryCatch      = reconcilers.TryCatch[*fixture.Resource]
	overrideSetup = reconcilers.OverrideSetup[*fixture.Resource]
	whileServed   = reconcilers.WhileServed[*fixture.Resource]
	withConfig    = reconcilers.WithConfig[*fixture.Resource]
	suppress      = reconcilers.SuppressTransientErrors[*fixture.Resource, *fixture.ResourceList]
	castToDuck    = reconcilers.CastResource[*fixture.Resource, *fixture.Duck]
	duckSync      = reconcilers.SyncReconciler[*fixture.Duck]
	subReconciler = reconcilers.SubReconciler[*fixture.Resource]
)

// nothing returns a subreconciler that does nothing.
func nothing() *syncReconciler { return returning(reconcilers.Result{}, nil) }

func isTrue(context.Context, *fixture.Resource) bool { return true }

// items returns an Items function for a list.
func items[I any](list ...I) func(context.Context, *fixture.Resource) ([]I, error) {
	return func(context.Context, *fixture.Resource) ([]I, error) { return list, nil }
}

// servedKinds are kinds that are served.
func servedKinds() []client.Object { return []client.Object{&corev1.ConfigMap{}} }

func sameConfig(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) {
	return config, nil
}

// validated is a reconciler and its problems. Deep ones are found only if the context requests recursion.
type validated struct {
	reconciler     validation.Validator
	problems, deep []string
}

func TestNesting_Validate(t *testing.T) {
	invalid := &syncReconciler{Name: "x"}
	const why = `: SyncReconciler "x" must implement Sync or SyncWithResult`
	setup := func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return nil }
	for name, tc := range map[string]validated{
		"Advice":        {reconciler: &advice{Reconciler: nothing()}},
		"Advice, empty": {&advice{}, []string{`Advice "Advice" must implement Reconciler`}, nil},
		"Advice, named": {&advice{Name: "n"}, []string{`Advice "n" must implement Reconciler`}, nil},
		"Advice, invalid below": {
			&advice{Reconciler: invalid}, nil, []string{`Advice "Advice" must have a valid Reconciler` + why},
		},
		"Always, empty":         {reconciler: always{}},
		"Always":                {reconciler: always{nothing(), nothing()}},
		"Always, invalid below": {always{nothing(), invalid}, nil, []string{`Always must have a valid Always[1]` + why}},
		"Always, invalid by pointer": {
			&always{invalid, invalid}, nil,
			[]string{`Always must have a valid Always[0]` + why, `Always must have a valid Always[1]` + why},
		},
		"IfThen":               {reconciler: &ifThen{If: isTrue, Then: nothing(), Else: nothing()}},
		"IfThen, without Else": {reconciler: &ifThen{If: isTrue, Then: nothing()}},
		"IfThen, empty": {
			&ifThen{}, []string{`IfThen "IfThen" must implement If`, `IfThen "IfThen" must implement Then`}, nil,
		},
		"IfThen, named": {&ifThen{Name: "n", If: isTrue}, []string{`IfThen "n" must implement Then`}, nil},
		"IfThen, invalid below": {
			&ifThen{If: isTrue, Then: invalid, Else: invalid}, nil,
			[]string{`IfThen "IfThen" must have a valid Then` + why, `IfThen "IfThen" must have a valid Else` + why},
		},
		"While": {reconciler: &while{Condition: isTrue, Reconciler: nothing()}},
		"While, empty": {
			&while{}, []string{`While "While" must implement Condition`, `While "While" must implement Reconciler`}, nil,
		},
		"While, named": {&while{Name: "n", Condition: isTrue}, []string{`While "n" must implement Reconciler`}, nil},
		"While, invalid below": {
			&while{Condition: isTrue, Reconciler: invalid}, nil, []string{`While "While" must have a valid Reconciler` + why},
		},
		"ForEach": {reconciler: &forEach{Items: items("a"), Reconciler: nothing()}},
		"ForEach, empty": {
			&forEach{}, []string{`ForEach "ForEach" must implement Reconciler`, `ForEach "ForEach" must implement Items`}, nil,
		},
		"ForEach, named": {
			&forEach{Name: "n", Items: items("a")}, []string{`ForEach "n" must implement Reconciler`}, nil,
		},
		"ForEach, invalid below": {
			&forEach{Items: items("a"), Reconciler: invalid}, nil, []string{
				`ForEach "ForEach" must have a valid Reconciler` + why,
			},
		},
		"TryCatch":        {reconciler: &tryCatch{Try: nothing()}},
		"TryCatch, empty": {&tryCatch{}, []string{`TryCatch "TryCatch" must implement Try`}, nil},
		"TryCatch, named": {&tryCatch{Name: "n", Finally: nothing()}, []string{`TryCatch "n" must implement Try`}, nil},
		"TryCatch, invalid below": {
			&tryCatch{Try: invalid, Finally: invalid}, nil,
			[]string{`TryCatch "TryCatch" must have a valid Try` + why, `TryCatch "TryCatch" must have a valid Finally` + why},
		},
		"OverrideSetup, only Setup":      {reconciler: &overrideSetup{Setup: setup}},
		"OverrideSetup, only Reconciler": {reconciler: &overrideSetup{Reconciler: nothing()}},
		"OverrideSetup, empty": {
			&overrideSetup{}, []string{`OverrideSetup "SkipSetup" must implement at least one of Setup or Reconciler`}, nil,
		},
		"OverrideSetup, named": {
			&overrideSetup{Name: "n"}, []string{`OverrideSetup "n" must implement at least one of Setup or Reconciler`}, nil,
		},
		"OverrideSetup, invalid below": {
			&overrideSetup{Reconciler: invalid}, nil, []string{`OverrideSetup "SkipSetup" must have a valid Reconciler` + why},
		},
		"WhileServed": {reconciler: &whileServed{Kinds: servedKinds(), Reconciler: nothing(), Else: nothing()}},
		"WhileServed, empty": {
			&whileServed{},
			[]string{`WhileServed "WhileServed" must define Kinds`, `WhileServed "WhileServed" must define Reconciler`},
			nil,
		},
		"WhileServed, without a kind": {
			&whileServed{Name: "n", Kinds: []client.Object{nil}, Reconciler: nothing()},
			[]string{`WhileServed "n" must define Kinds[0]`},
			nil,
		},
		"WhileServed, invalid below": {
			&whileServed{Kinds: servedKinds(), Reconciler: invalid, Else: invalid}, nil, []string{
				`WhileServed "WhileServed" must have a valid Reconciler` + why,
				`WhileServed "WhileServed" must have a valid Else` + why,
			},
		},
		"WithConfig": {reconciler: &withConfig{Config: sameConfig, Reconciler: nothing()}},
		"WithConfig, empty": {
			&withConfig{},
			[]string{`WithConfig "WithConfig" must define Config`, `WithConfig "WithConfig" must define Reconciler`},
			nil,
		},
		"WithConfig, named": {
			&withConfig{Name: "n", Config: sameConfig}, []string{`WithConfig "n" must define Reconciler`}, nil,
		},
		"WithConfig, invalid below": {
			&withConfig{Config: sameConfig, Reconciler: invalid}, nil, []string{
				`WithConfig "WithConfig" must have a valid Reconciler` + why,
			},
		},
		"SuppressTransientErrors": {reconciler: &suppress{Reconciler: nothing()}},
		"SuppressTransientErrors, empty": {
			&suppress{}, []string{`SuppressTransientErrors "SuppressTransientErrors" must implement Reconciler`}, nil,
		},
		"SuppressTransientErrors, named": {
			&suppress{Name: "n"}, []string{`SuppressTransientErrors "n" must implement Reconciler`}, nil,
		},
		"SuppressTransientErrors, invalid below": {
			&suppress{Reconciler: invalid}, nil,
			[]string{`SuppressTransientErrors "SuppressTransientErrors" must have a valid Reconciler` + why},
		},
		"SuppressTransientErrors, of an interface": {
			&reconcilers.SuppressTransientErrors[*fixture.Resource, client.ObjectList]{Reconciler: nothing()},
			[]string{`SuppressTransientErrors "SuppressTransientErrors" must define ListType`},
			nil,
		},
		"CastResource":        {reconciler: &castToDuck{Reconciler: reconcilers.Sequence[*fixture.Duck]{}}},
		"CastResource, empty": {&castToDuck{}, []string{`CastResource "DuckCastResource" must define Reconciler`}, nil},
		"CastResource, of a kind in the scheme": {
			&reconcilers.CastResource[*fixture.Resource, *corev1.Secret]{}, []string{
				`CastResource "SecretCastResource" must define Reconciler`,
			}, nil,
		},
		"CastResource, of an interface": {
			&reconcilers.CastResource[*fixture.Resource, client.Object]{}, []string{
				`CastResource "CastResource" must define Reconciler`,
			}, nil,
		},
		"CastResource, named": {&castToDuck{Name: "n"}, []string{`CastResource "n" must define Reconciler`}, nil},
		"CastResource, invalid below": {
			&castToDuck{Reconciler: &duckSync{Name: "x"}}, nil,
			[]string{`CastResource "DuckCastResource" must have a valid Reconciler` + why},
		},
	} {
		t.Run(name, tc.check)
	}
}

func (tc validated) check(t *testing.T) {
	t.Helper()
	log, lines := newLog(1)
	ctx := withLog(newWorld(t).Context(), log)
	wantText(t, first(tc.problems), tc.reconciler.Validate(ctx))
	deep := slices.Concat(tc.problems, tc.deep)
	wantText(t, first(deep), tc.reconciler.Validate(validation.WithRecursive(ctx)))
	equal(t, "log lines", nil, lines.messages())
	if len(deep) == 0 {
		return
	}
	// Setup of a root reports all problems.
	err := sequence{&inSetup{tc.reconciler}}.Validate(validation.WithRecursive(ctx))
	for _, problem := range deep {
		contains(t, everything(err), problem)
	}
	if part, ok := tc.reconciler.(subReconciler); ok && len(tc.problems) > 0 {
		wantText(t, strings.Join(tc.problems, "\n"), part.SetupWithManager(ctx, nil, nil))
	}
}

// first returns the problem that Validate reports, or "" without problems.
func first(problems []string) string { return strings.Join(problems[:min(1, len(problems))], "") }

// inSetup is a validator that is part of a tree.
type inSetup struct{ validation.Validator }

func (*inSetup) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (*inSetup) Reconcile(context.Context, *fixture.Resource) (reconcilers.Result, error) {
	return reconcilers.Result{}, nil
}

// everything returns the texts of an error and of all errors that it wraps.
func everything(err error) string {
	if err == nil {
		return ""
	}
	texts := []string{err.Error()}
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range list.Unwrap() {
			texts = append(texts, everything(part))
		}
	}
	return strings.Join(texts, "\n")
}

// setups records the order in which parts of a tree are set up.
type setups struct {
	t      *testing.T
	config reconcilers.Config
	order  []string
	// failing is the part whose setup fails.
	failing string
}

// hook returns the Setup function of a part.
func (s *setups) hook(name string) func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
		s.t.Helper()
		s.order = append(s.order, name)
		if reconcilers.RetrieveConfigOrDie(ctx) != s.config {
			s.t.Errorf("the context of %s has no config", name)
		}
		logr.FromContextOrDiscard(ctx).Info("set up " + name)
		if name == s.failing {
			return errTest
		}
		return nil
	}
}

// part returns a subreconciler with this Setup function.
func (s *setups) part(name string) *syncReconciler {
	return &syncReconciler{
		Name: name, Setup: s.hook(name), Sync: func(context.Context, *fixture.Resource) error { return nil },
	}
}

func TestNesting_SetsUpEveryReconciler(t *testing.T) {
	for name, tc := range map[string]struct {
		build func(s *setups) subReconciler
		want  []string
	}{
		"Always": {func(s *setups) subReconciler { return always{s.part("a"), s.part("b")} }, []string{"a", "b"}},
		"Advice": {
			func(s *setups) subReconciler { return &advice{Setup: s.hook("own"), Reconciler: s.part("a")} },
			[]string{"own", "a"},
		},
		"Advice, without Setup": {func(s *setups) subReconciler { return &advice{Reconciler: s.part("a")} }, []string{"a"}},
		"IfThen": {
			func(s *setups) subReconciler {
				return &ifThen{Setup: s.hook("own"), If: isTrue, Then: s.part("then"), Else: s.part("else")}
			},
			[]string{"own", "then", "else"},
		},
		"IfThen, only Then": {
			func(s *setups) subReconciler { return &ifThen{If: isTrue, Then: s.part("then")} }, []string{"then"},
		},
		"While": {
			func(s *setups) subReconciler {
				return &while{Setup: s.hook("own"), Condition: isTrue, Reconciler: s.part("a")}
			},
			[]string{"own", "a"},
		},
		"While, without Setup": {
			func(s *setups) subReconciler { return &while{Condition: isTrue, Reconciler: s.part("a")} }, []string{"a"},
		},
		"ForEach": {
			func(s *setups) subReconciler {
				return &forEach{Setup: s.hook("own"), Items: items("x"), Reconciler: s.part("a")}
			},
			[]string{"a", "own"},
		},
		"ForEach, without Setup": {
			func(s *setups) subReconciler { return &forEach{Items: items("x"), Reconciler: s.part("a")} }, []string{"a"},
		},
		"TryCatch": {
			func(s *setups) subReconciler {
				return &tryCatch{Setup: s.hook("own"), Try: s.part("try"), Finally: s.part("finally")}
			},
			[]string{"own", "try", "finally"},
		},
		"TryCatch, only Try": {func(s *setups) subReconciler { return &tryCatch{Try: s.part("try")} }, []string{"try"}},
		"OverrideSetup": {
			func(s *setups) subReconciler { return &overrideSetup{Setup: s.hook("own"), Reconciler: s.part("a")} },
			[]string{"own"},
		},
		"OverrideSetup, without Setup": {
			func(s *setups) subReconciler { return &overrideSetup{Reconciler: s.part("a")} }, nil,
		},
		"WhileServed": {
			func(s *setups) subReconciler {
				return &whileServed{Kinds: servedKinds(), Reconciler: s.part("a"), Else: s.part("else")}
			},
			[]string{"a", "else"},
		},
		"WithConfig": {
			func(s *setups) subReconciler { return &withConfig{Config: sameConfig, Reconciler: s.part("a")} },
			[]string{"a"},
		},
		"SuppressTransientErrors": {
			func(s *setups) subReconciler { return &suppress{Setup: s.hook("own"), Reconciler: s.part("a")} },
			[]string{"a", "own"},
		},
		"SuppressTransientErrors, without Setup": {
			func(s *setups) subReconciler { return &suppress{Reconciler: s.part("a")} }, []string{"a"},
		},
		"Retry": {func(s *setups) subReconciler { return &retry{Reconciler: s.part("a")} }, []string{"a"}},
		"Steps": {
			func(s *setups) subReconciler {
				return &steps{Steps: []stepOf{
					{Name: "1", DependsOn: []string{"2"}, Reconciler: s.part("a")}, {Name: "2", Reconciler: s.part("b")},
				}}
			},
			[]string{"a", "b"},
		},
		"Timeout": {
			func(s *setups) subReconciler { return &timeout{After: time.Second, Reconciler: s.part("a")} }, []string{"a"},
		},
		"RateLimit": {
			func(s *setups) subReconciler { return &rateLimit{Interval: time.Second, Reconciler: s.part("a")} }, []string{"a"},
		},
		"Periodic": {
			func(s *setups) subReconciler { return &periodic{Interval: time.Hour, Reconciler: s.part("a")} }, []string{"a"},
		},
		"Paused": {
			func(s *setups) subReconciler { return &paused{Setup: s.hook("own"), Reconciler: s.part("a")} },
			[]string{"own", "a"},
		},
		"CastResource": {
			func(s *setups) subReconciler {
				return &castToDuck{
					Reconciler: &duckSync{Setup: s.hook("a"), Sync: func(context.Context, *fixture.Duck) error { return nil }},
				}
			},
			[]string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, failing := range append([]string{""}, tc.want...) {
				s := &setups{t: t, config: w.Config, failing: failing}
				err := tc.build(s).SetupWithManager(w.Context(), nil, nil)
				if failing == "" {
					wantErr(t, nil, err)
					equal(t, "order", tc.want, s.order)
					continue
				}
				wantErr(t, errTest, err)
				equal(t, "last setup", failing, s.order[len(s.order)-1])
			}
		})
	}
}

func TestNesting_LogNamesDoNotContainSiblings(t *testing.T) {
	w := newWorld(t)
	log, lines := newLog(0)
	s := &setups{t: t, config: w.Config}
	r := &advice{Name: "top", Reconciler: always{s.part("a"), sequence{s.part("b"), s.part("c")}}}
	wantErr(t, nil, r.SetupWithManager(withLog(w.Context(), log), nil, nil))
	for _, line := range []string{
		`top/0/a "level"=0 "msg"="set up a"`, `top/1/0/b "level"=0 "msg"="set up b"`, `top/1/1/c "level"=0 "msg"="set up c"`,
	} {
		contains(t, "\n"+lines.all(), "\n"+line)
	}
}

func TestNesting_RootsValidateNestedValues(t *testing.T) {
	r := &resourceReconciler{
		Name: "root", Reconciler: always{sequence{&advice{Reconciler: always{&syncReconciler{Name: "x"}}}}},
	}
	wantText(t, `ResourceReconciler "root" must have a valid Reconciler: Always must have a valid Always[0]: Sequence must have a valid Sequence[0]: `+
		`Advice "Advice" must have a valid Reconciler: Always must have a valid Always[0]: SyncReconciler "x" must implement Sync or SyncWithResult`,
		r.Validate(validation.WithRecursive(context.Background())))
	wantText(
		t, `Always must not have a nil Always[1]`,
		always{nothing(), nil}.Validate(validation.WithRecursive(context.Background())),
	)
}

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
	"Timeout": func(below subReconciler) subReconciler {
		return &timeout{After: time.Hour, Reconciler: below}
	},
	"TryCatch": func(below subReconciler) subReconciler {
		return &tryCatch{Try: nothing(), Finally: &tryCatch{Try: below}}
	},
	"While": func(below subReconciler) subReconciler { return &while{Condition: isTrue, Reconciler: below} },
	"WhileServed": func(below subReconciler) subReconciler {
		return &whileServed{Kinds: servedKinds(), Reconciler: nothing(), Else: &whileServed{
			Kinds: servedKinds(), Reconciler: below,
		}}
	},
	"WithConfig": func(below subReconciler) subReconciler {
		return &withConfig{Config: sameConfig, Reconciler: below}
	},
	"WithFinalizer": func(below subReconciler) subReconciler {
		return &withFinalizer{Finalizer: "example.com/finalizer", Reconciler: below}
	},
}

// notNesting are the other subreconcilers.
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
