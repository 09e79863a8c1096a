// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

// BenchmarkSequence is what 20 steps cost that do nothing.
func BenchmarkSequence(b *testing.B) {
	steps := make(sequence, 20)
	for i := range steps {
		steps[i] = &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }}
	}
	w := newWorld(b)
	resource := newResource()
	for name, ctx := range map[string]context.Context{
		"Plain":     context.Background(),
		"BelowRoot": w.Context(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if result, err := steps.Reconcile(ctx, resource); err != nil || result != (reconcilers.Result{}) {
					b.Fatalf("result %v, error %v", result, err)
				}
			}
		})
	}
}

func TestSequence_Allocations(t *testing.T) {
	steps := sequence{
		&syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }},
		&syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }},
	}
	ctx, resource := context.Background(), newResource()
	allocations := testing.AllocsPerRun(100, func() { _, _ = steps.Reconcile(ctx, resource) })
	equal(t, "allocations of reconcilers that do nothing", 0, allocations)
}
