// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"testing"

	"trueup.dev/internal/fixture"
	"trueup.dev/operator"
)

// What has happened, by what the resource is now and what is known of it.
func TestWithEdge_Actions(t *testing.T) {
	const first, second = "a", "b"
	kept := with(testFinalizer)
	handled := func(*fixture.Resource) bool { return true }
	for name, tc := range map[string]struct {
		reason string
		with   func(*bench)
		do     func(*bench)
		want   []string
		// records is how many resources are known in the end.
		records int
	}{
		"exists, nothing known": {
			reason: "it is new", do: func(b *bench) { b.appears(version(first, 1, 1)); b.handle(version(first, 1, 1)) },
			want: []string{"Created a 1"}, records: 1,
		},
		"exists, was there before the controller": {
			reason: "that can be told", do: func(b *bench) { b.isListed(version(first, 1, 1)); b.handle(version(first, 1, 1)) },
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
			reason: "there is nothing to tell", do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.handle(version(first, 1, 1))
			},
			want: []string{"Created a 1"}, records: 1,
		},
		"exists, known, nothing has changed, but everything is told": {
			reason: "as without a change", with: func(b *bench) { b.OnlyChanges = false },
			do:   func(b *bench) { b.handle(version(first, 1, 1)); b.handle(version(first, 1, 1)) },
			want: []string{"Created a 1", "Resynced a 1>1"}, records: 1,
		},
		"exists, known, nothing that counts has changed": {
			reason: "there is nothing to tell", with: func(b *bench) { b.React = operator.ReactSpec },
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
			reason: "the other one is gone",
			do: func(b *bench) {
				b.handle(version(first, 1, 1))
				b.changes(version(first, 2, 2), version(second, 3, 3))
				b.handle(version(second, 3, 3))
			},
			want: []string{"Created a 1", "Deleted a 1>2", "Created b 3"}, records: 1,
		},
		"exists, another one is known, and the events have not come yet": {
			reason: "the other one is gone, as it was handled", do: func(b *bench) {
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
			reason: "it was deleted while nobody was there", with: func(b *bench) { b.Finalizers = []string{testFinalizer} },
			do: func(b *bench) { b.handle(version(first, 2, 2, kept, deleting)) }, want: []string{"Deleted a 2"}, records: 1,
		},
		"deleting with our finalizer, handled, and then gone": {
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
			reason: "it is none of ours", with: func(b *bench) { b.Finalizers = []string{testFinalizer} },
			do: func(b *bench) { b.handle(version(first, 2, 2, with("example.com/other"), deleting)) },
		},
		"deleting without our finalizer, known": {
			reason: "somebody has taken it off: it is told of when it is gone", with: func(b *bench) {
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
			reason: "that is a change, and it is gone later",
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
			reason: "it is not worth a beginning", do: func(b *bench) {
				b.handle(version(first, 2, 2, with("example.com/other"), deleting))
			},
		},
		"gone, known": {
			reason: "it is told once, with what was last known",
			do: func(b *bench) {
				b.appears(version(first, 1, 1))
				b.handle(version(first, 1, 1))
				b.vanishes(version(first, 2, 2))
				_, _ = b.absent()
				_, _ = b.absent()
			},
			want: []string{"Created a 1", "Deleted a 1>2"},
		},
		"gone, never handled with success": {
			reason: "there may be traces of it",
			do: func(b *bench) {
				b.appears(version(first, 1, 1))
				b.errs = []error{errTest}
				_, _ = b.see(version(first, 1, 1))
				b.vanishes(version(first, 1, 1))
				_, _ = b.absent()
			},
			want: []string{"Created a 1", "Deleted a 1"},
		},
		"gone, nothing known": {
			reason: "there is nothing to tell",
			do: func(b *bench) {
				b.appears(version(first, 1, 1))
				b.vanishes(version(first, 1, 1))
				_, _ = b.absent()
			},
		},
		"fails, and has changed": {
			reason: "what could not be created is still to be created",
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
				t.Errorf("%d resources are known in the end, want %d", got, tc.records)
			}
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}
