// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"testing"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
)

// The action depends on the state of the resource and on the remembered state.
func TestWithEdge_Actions(t *testing.T) {
	const first, second = "a", "b"
	kept := with(testFinalizer)
	handled := func(*fixture.Resource) bool { return true }
	for name, tc := range map[string]struct {
		reason string
		with   func(*bench)
		do     func(*bench)
		want   []string
		// records is the number of records at the end.
		records int
	}{
		"exists, nothing known": {
			reason: "it is new", do: func(b *bench) { b.appears(version(first, 1, 1)); b.handle(version(first, 1, 1)) },
			want: []string{"Created a 1"}, records: 1,
		},
		"exists, was there before the controller": {
			reason: "it is listed", do: func(b *bench) { b.isListed(version(first, 1, 1)); b.handle(version(first, 1, 1)) },
			want: []string{"Created a 1, listed"}, records: 1,
		},
		"exists, nothing known, marked": {
			reason: "an earlier process has handled it", with: func(b *bench) { b.Handled = handled },
			do: func(b *bench) { b.handle(version(first, 1, 1)) }, want: []string{"Resynced a 1"}, records: 1,
		},
		"exists, known, another generation": {
			reason: "it has changed", do: func(b *bench) { b.handle(version(first, 1, 1)); b.handle(version(first, 2, 2)) },
			want: []string{"Created a 1", "Updated a 1>2"}, records: 1,
		},
		"exists, known, nothing has changed": {
			reason: "the handler is not called", do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.handle(version(first, 1, 1))
			},
			want: []string{"Created a 1"}, records: 1,
		},
		"exists, known, nothing has changed, but OnlyChanges is false": {
			reason: "as without a change", with: func(b *bench) { b.OnlyChanges = false },
			do:   func(b *bench) { b.handle(version(first, 1, 1)); b.handle(version(first, 1, 1)) },
			want: []string{"Created a 1", "Resynced a 1>1"}, records: 1,
		},
		"exists, known, nothing that counts has changed": {
			reason: "the handler is not called", with: func(b *bench) { b.React = operator.ReactSpec },
			do:   func(b *bench) { b.handle(version(first, 1, 1)); b.handle(version(first, 1, 2, labeled("new"))) },
			want: []string{"Created a 1"}, records: 1,
		},
		"exists, known, a label has changed that counts": {
			reason: "it has changed", with: func(b *bench) { b.React = operator.ReactLabels },
			do:   func(b *bench) { b.handle(version(first, 1, 1)); b.handle(version(first, 1, 2, labeled("new"))) },
			want: []string{"Created a 1", "Updated a 1>1"}, records: 1,
		},
		"exists, known, older than known": {
			reason: "it is not handled again as it was", do: func(b *bench) {
				b.handle(version(first, 2, 2))
				b.handle(version(first, 1, 1))
			},
			want: []string{"Created a 2"}, records: 1,
		},
		"exists, another one is known": {
			reason: "the other one no longer exists",
			do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.changes(version(first, 2, 2), version(second, 3, 3))
				b.handle(version(second, 3, 3))
			},
			want: []string{"Created a 1", "Deleted a 1>2", "Created b 3"}, records: 1,
		},
		"exists, another one is known, and the events have not come yet": {
			reason: "the other one no longer exists, and its deletion was handled", do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.handle(version(second, 3, 3))
			},
			want: []string{"Created a 1", "Deleted a 1>1", "Created b 3"}, records: 1,
		},
		"exists, resynced": {
			reason: "not asked for",
			do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.resyncs(version(first, 1, 1))
				b.handle(version(first, 1, 1))
			},
			want: []string{"Created a 1"}, records: 1,
		},
		"exists, resynced, asked for": {
			reason: "once for each resync", with: func(b *bench) { b.Resync = true },
			do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.resyncs(version(first, 1, 1))
				b.handle(version(first, 1, 1))
				b.handle(version(first, 1, 1))
			},
			want: []string{"Created a 1", "Resynced a 1>1"}, records: 1,
		},
		"deleting with our finalizer, known": {
			reason: "its deletion is handled once", with: func(b *bench) { b.Finalizers = []string{testFinalizer} },
			do: func(b *bench) {
				b.handle(version(first, 1, 1, kept))
				b.handle(version(first, 2, 2, kept, deleting))
				b.handle(version(first, 2, 3, kept, deleting))
			},
			want: []string{"Created a 1", "Deleted a 1>2"}, records: 1,
		},
		"deleting with our finalizer, nothing known": {
			reason: "it was deleted while no process ran", with: func(b *bench) { b.Finalizers = []string{testFinalizer} },
			do: func(b *bench) { b.handle(version(first, 2, 2, kept, deleting)) }, want: []string{"Deleted a 2"}, records: 1,
		},
		"deleting with our finalizer, handled, and then deleted": {
			reason: "nothing is left", with: func(b *bench) { b.Finalizers = []string{testFinalizer} },
			do: func(b *bench) {
				b.appears(version(first, 2, 2, kept, deleting))
				b.handle(version(first, 2, 2, kept, deleting))
				b.vanishes(version(first, 2, 3, deleting))
				_, _ = b.absent()
			},
			want: []string{"Deleted a 2"},
		},
		"deleting without our finalizer, nothing known": {
			reason: "the finalizer is another controller's", with: func(b *bench) { b.Finalizers = []string{testFinalizer} },
			do: func(b *bench) { b.handle(version(first, 2, 2, with("example.com/other"), deleting)) },
		},
		"deleting without our finalizer, known": {
			reason: "another client removed the finalizer, so it is handled once absent", with: func(b *bench) {
				b.Finalizers = []string{testFinalizer}
			},
			do: func(b *bench) {
				b.appears(version(first, 1, 1, kept))
				b.handle(version(first, 1, 1, kept))
				b.handle(version(first, 2, 2, with("example.com/other"), deleting))
				b.want(b.t, "Created a 1")
				b.vanishes(version(first, 2, 3, deleting))
				_, _ = b.absent()
				_, _ = b.absent()
			},
			want: []string{"Deleted a 1>2"},
		},
		"deleting, no finalizers, known": {
			reason: "it is an update first, and a deletion later",
			do: func(b *bench) {
				b.appears(version(first, 1, 1))
				b.handle(version(first, 1, 1))
				b.handle(version(first, 2, 2, with("example.com/other"), deleting))
				b.vanishes(version(first, 2, 3, deleting))
				_, _ = b.absent()
			},
			want: []string{"Created a 1", "Updated a 1>2", "Deleted a 2>2"},
		},
		"deleting, no finalizers, nothing known": {
			reason: "handling it must not begin during its deletion", do: func(b *bench) {
				b.handle(version(first, 2, 2, with("example.com/other"), deleting))
			},
		},
		"no longer exists, known": {
			reason: "its deletion is handled once, with the last known state",
			do: func(b *bench) {
				b.appears(version(first, 1, 1))
				b.handle(version(first, 1, 1))
				b.vanishes(version(first, 2, 2))
				_, _ = b.absent()
				_, _ = b.absent()
			},
			want: []string{"Created a 1", "Deleted a 1>2"},
		},
		"no longer exists, never handled successfully": {
			reason: "the failed attempt may have had effects",
			do: func(b *bench) {
				b.appears(version(first, 1, 1))
				b.errs = []error{errTest}
				_, _ = b.see(version(first, 1, 1))
				b.vanishes(version(first, 1, 1))
				_, _ = b.absent()
			},
			want: []string{"Created a 1", "Deleted a 1"},
		},
		"no longer exists, unknown": {
			reason: "the handler is not called",
			do: func(b *bench) {
				b.appears(version(first, 1, 1))
				b.vanishes(version(first, 1, 1))
				_, _ = b.absent()
			},
		},
		"fails, and has changed": {
			reason: "a failed creation is still a creation",
			do: func(b *bench) {
				b.errs = []error{errTest}
				_, _ = b.see(version(first, 1, 1))
				b.handle(version(first, 2, 2))
				b.handle(version(first, 3, 3))
			},
			want: []string{"Created a 1", "Created a 2", "Updated a 2>3"}, records: 1,
		},
		"fails, again and again": {
			reason: "attempts are counted, and the previous state is that of the last success",
			do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.errs = []error{errTest, errTest}
				_, _ = b.see(version(first, 2, 2))
				_, _ = b.see(version(first, 2, 2))
				b.handle(version(first, 2, 2))
			},
			want: []string{"Created a 1", "Updated a 1>2", "Updated a 1>2, attempt 1", "Updated a 1>2, attempt 2"}, records: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if tc.with != nil {
				tc.with(b)
			}
			tc.do(b)
			b.want(t, tc.want...)
			if got := b.Records(); got != tc.records {
				t.Errorf("%d records at the end, want %d", got, tc.records)
			}
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}
