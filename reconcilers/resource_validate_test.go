// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

// part is a sub reconciler that counts its setups. Its Validate method returns Invalid.
type part struct {
	*syncReconciler
	Invalid error
	Setups  int
}

func (p *part) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	p.Setups++
	return nil
}

func (p *part) Validate(context.Context) error { return p.Invalid }

func TestResourceReconciler_Validate(t *testing.T) {
	for name, tc := range map[string]struct {
		reconciler *resourceReconciler
		recursive  bool
		want       string
	}{
		"valid": {
			reconciler: &resourceReconciler{Reconciler: sequence{}},
		},
		"no reconciler": {
			reconciler: &resourceReconciler{Name: "test"},
			want:       `ResourceReconciler "test" must define Reconciler`,
		},
		"no name": {
			reconciler: &resourceReconciler{},
			want:       `ResourceReconciler "ResourceResourceReconciler" must define Reconciler`,
		},
		"invalid part": {
			reconciler: &resourceReconciler{Reconciler: &part{Invalid: errTest}},
		},
		"invalid part, recursive": {
			reconciler: &resourceReconciler{Reconciler: &part{Invalid: errTest}},
			recursive:  true,
			want:       `ResourceReconciler "ResourceResourceReconciler" must have a valid Reconciler: failure of the test`,
		},
		"invalid part of a sequence used as a value, recursive": {
			reconciler: &resourceReconciler{Reconciler: sequence{&syncReconciler{}}},
			recursive:  true,
			want: `ResourceReconciler "ResourceResourceReconciler" must have a valid Reconciler: ` +
				`Sequence must have a valid Sequence[0]: SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			if tc.recursive {
				ctx = validation.WithRecursive(ctx)
			}
			wantText(t, tc.want, tc.reconciler.Validate(ctx))
		})
	}

	t.Run("all nested problems are errors", func(t *testing.T) {
		r := &resourceReconciler{Reconciler: sequence{&syncReconciler{}, &part{Invalid: errTest}}}
		wantErr(t, errTest, r.Validate(validation.WithRecursive(context.Background())))
	})
	t.Run("an interface needs a type", func(t *testing.T) {
		r := &reconcilers.ResourceReconciler[client.Object]{Name: "test", Reconciler: reconcilers.Sequence[client.Object]{}}
		wantText(t, `ResourceReconciler "test" must define Type`, r.Validate(context.Background()))
		r = &reconcilers.ResourceReconciler[client.Object]{
			Type: &fixture.Resource{}, Reconciler: reconcilers.Sequence[client.Object]{},
		}
		wantText(t, "", r.Validate(context.Background()))
	})
}

// inspector is a sub reconciler whose Validate method calls a function.
type inspector struct {
	*syncReconciler
	validate func(ctx context.Context) error
}

func (i inspector) Validate(ctx context.Context) error { return i.validate(ctx) }

func TestResourceReconciler_ValidateBelowFindsTheConfig(t *testing.T) {
	w := newWorld(t)
	r := &resourceReconciler{Config: w.Config, Reconciler: inspector{validate: func(ctx context.Context) error {
		config, err := reconcilers.RetrieveConfig(ctx)
		original, oerr := reconcilers.RetrieveOriginalConfig(ctx)
		if config != w.Config || original != w.Config || reconcilers.RetrieveResourceType(ctx) == nil ||
			reconcilers.RetrieveOriginalResourceType(ctx) == nil {
			return errors.Join(errTest, err, oerr)
		}
		return nil
	}}}
	wantErr(t, nil, r.Validate(validation.WithRecursive(context.Background())))
}

func TestResourceReconciler_ValidateLogs(t *testing.T) {
	const (
		noStatus     = "resource missing status field, operations related to status will be skipped"
		nilable      = "resource status is nilable, status is typically a struct"
		noGeneration = "resource status missing ObservedGeneration field of type int64, generation will not be managed"
		noInitialize = "resource status missing InitializeConditions(context.Context) method, " +
			"conditions will not be auto-initialized"
		deprecated = "resource status InitializeConditions() method is deprecated, " +
			"use InitializeConditions(context.Context)"
		noConditions = "resource status is missing field Conditions of type []metav1.Condition, " +
			"condition timestamps will not be managed"
	)
	type validator interface{ Validate(context.Context) error }
	for name, tc := range map[string]struct {
		reconciler validator
		want       []string
	}{
		"complete": {&resourceReconciler{Reconciler: sequence{}}, nil},
		"none": {&reconcilers.ResourceReconciler[*fixture.ResourceNoStatus]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceNoStatus]{},
		}, []string{noStatus}},
		"pointer": {&reconcilers.ResourceReconciler[*fixture.ResourceNilableStatus]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceNilableStatus]{},
		}, []string{nilable}},
		"empty": {&reconcilers.ResourceReconciler[*fixture.ResourceEmptyStatus]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceEmptyStatus]{},
		}, []string{noGeneration, noInitialize, noConditions}},
		"without a context": {&reconcilers.ResourceReconciler[*fixture.ResourceLegacyConditions]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceLegacyConditions]{},
		}, []string{deprecated}},
		"invalid": {&reconcilers.ResourceReconciler[*fixture.ResourceEmptyStatus]{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(1)
			err := tc.reconciler.Validate(withLog(context.Background(), log))
			equal(t, "invalid", name == "invalid", err != nil)
			equal(t, "messages", tc.want, lines.messages())
		})
	}
}
