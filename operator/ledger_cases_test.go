// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"testing"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// during is a handler that runs a function during its call.
type during struct {
	reconcilers.SubReconciler[*fixture.Resource]

	next   sub
	happen func()
}

func (d *during) Reconcile(ctx context.Context, r *fixture.Resource) (reconcilers.Result, error) {
	d.happen()
	return d.next.Reconcile(ctx, r)
}

// Events during a call of the handler must neither be lost nor leave a record behind.
func TestLedger_EventsDuringACall(t *testing.T) {
	kept := with(testFinalizer)
	for name, tc := range map[string]struct {
		reason     string
		controller bool
		given      *fixture.Resource
		happen     func(*bench)
		fails      bool
		then       func(*bench)
		want       []string
		records    int
	}{
		"goes": {
			reason: "its deletion is handled", controller: true, given: version("a", 1, 1),
			happen: func(b *bench) { b.vanishes(version("a", 1, 1)) }, then: func(b *bench) { _, _ = b.absent() },
			want: []string{"Created a 1", "Deleted a 1>1"},
		},
		"goes, and the call fails": {
			reason: "its deletion is handled", controller: true, given: version("a", 1, 1), fails: true,
			happen: func(b *bench) { b.vanishes(version("a", 1, 1)) }, then: func(b *bench) { _, _ = b.absent() },
			want: []string{"Created a 1", "Deleted a 1"},
		},
		"is deleted without a call for absent resources": {
			reason: "no record remains", given: version("a", 1, 1),
			happen: func(b *bench) { b.vanishes(version("a", 1, 1)) }, then: func(*bench) {},
			want: []string{"Created a 1"},
		},
		"is deleted without a call for absent resources, and the call fails": {
			reason: "no retry remains", given: version("a", 1, 1), fails: true,
			happen: func(b *bench) { b.vanishes(version("a", 1, 1)) }, then: func(*bench) {},
			want: []string{"Created a 1"},
		},
		"another client removes the finalizer while the deletion is handled": {
			reason: "the deletion was handled", controller: true, given: version("a", 2, 2, kept, deleting),
			happen: func(b *bench) { b.vanishes(version("a", 2, 3, deleting)) }, then: func(b *bench) { _, _ = b.absent() },
			want: []string{"Deleted a 2"},
		},
		"is replaced": {
			reason: "its deletion is handled, and the other one is new", controller: true, given: version("a", 1, 1),
			happen: func(b *bench) { b.changes(version("a", 1, 1), version("b", 1, 5)) },
			then: func(b *bench) {
				b.handle(version("b", 1, 5))
				b.handle(version("b", 1, 5))
			},
			want: []string{"Created a 1", "Deleted a 1>1", "Created b 1"}, records: 1,
		},
		"changes": {
			reason: "what was handled is what the handler was given", controller: true, given: version("a", 1, 1),
			happen: func(b *bench) { b.changes(version("a", 1, 1), version("a", 2, 2)) },
			then:   func(b *bench) { b.handle(version("a", 2, 2)) },
			want:   []string{"Created a 1", "Updated a 1>2"}, records: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if !tc.controller {
				b.WithEdge = operator.AsSubReconciler[*fixture.Resource](b.reconciler())
			}
			b.Finalizers = []string{testFinalizer}
			calls := 0
			b.Reconciler = &during{next: b.Reconciler, happen: func() {
				if calls++; calls == 1 {
					tc.happen(b)
				}
			}}
			b.appears(tc.given)
			if tc.fails {
				b.errs = []error{errTest}
			}
			_, _ = b.see(tc.given)
			tc.then(b)
			b.want(t, tc.want...)
			equal(t, "records, because "+tc.reason, tc.records, b.Records())
		})
	}
}

// A resource that never was in the cache may have been read from the API server. The server determines whether it
// still exists.
func TestLedger_VerifiesAbsence(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	b.handle(b.stored())
	_, err := b.absent()
	wantErr(t, err)
	b.want(t, "Created a 1")
	if err := b.server.Delete(t.Context(), b.stored()); err != nil {
		t.Fatal(err)
	}
	_, err = b.absent()
	wantErr(t, err)
	b.want(t, "Deleted a 1>1")

	// Without a config, the server cannot be asked.
	b.handle(version("a", 1, 1))
	_, err = b.Absent(context.Background(), testRequest)
	if err == nil {
		t.Error("no error")
	}
	b.want(t, "Created a 1")
}

// An intent is dropped if the resource is deleted before its first call.
func TestLedger_DropsIntents(t *testing.T) {
	b := newOpinionated(t, version("a", 1, 1))
	b.controller.SkipStatusUpdate = true // so that the finalizer is the mark
	b.fail = func(string) error { return errTest }
	events := b.Handler.Events(&fixture.Resource{})
	bench := &bench{world: b.world, WithEdge: b.Handler, events: events}
	bench.appears(version("a", 1, 1))
	_, err := b.request()
	wantErr(t, err, errTest)
	equal(t, "records", 1, b.Handler.Records())
	bench.vanishes(version("a", 1, 1))
	equal(t, "records in the end", 0, b.Handler.Records())
}

// The deletion of a replaced resource is handled before everything else, including the finalizer.
func TestOpinionated_ReplacedResource(t *testing.T) {
	b := newOpinionated(t, version("b", 1, 5))
	ctx := b.context()
	gone := version("a", 1, 1, with(testFinalizer))
	_, err := b.Reconcile(ctx, gone)
	wantErr(t, err)
	b.errs = []error{errTest}
	_, err = b.Reconcile(ctx, b.stored())
	wantErr(t, err, errTest)
	equal(t, "finalizers", 0, len(b.stored().Finalizers))
	_, err = b.Reconcile(ctx, b.stored())
	wantErr(t, err)
	b.want(t, "Created a 1", "Deleted a 1>1", "Deleted a 1>1, attempt 1", "Created b 1")
	equal(t, "finalizers", []string{testFinalizer}, b.stored().Finalizers)
}
