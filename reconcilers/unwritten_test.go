// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// Is a change of the spec lost in silence? Only the status is written.
func TestResourceReconciler_WhatIsChangedInMemoryOnly(t *testing.T) {
	write := func(ctx context.Context, r *fixture.Resource) error {
		return reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, r)
	}
	for name, tc := range map[string]struct {
		sync func(ctx context.Context, r *fixture.Resource) error
		want []string
	}{
		"nothing":    {sync: func(context.Context, *fixture.Resource) error { return nil }},
		"the status": {sync: func(ctx context.Context, r *fixture.Resource) error { r.Status.MarkReady(ctx); return nil }},
		"the spec": {
			sync: func(_ context.Context, r *fixture.Resource) error {
				r.Spec.Fields["value"] = "changed"
				return nil
			},
			want: []string{`["spec.fields[value]"]`},
		},
		"a label, before an error": {
			sync: func(_ context.Context, r *fixture.Resource) error {
				r.Labels = map[string]string{"a": "b"}
				return errTest
			},
			want: []string{`["metadata.labels[a]"]`},
		},
		"a finalizer": {sync: func(ctx context.Context, r *fixture.Resource) error {
			return reconcilers.AddFinalizer(ctx, r, "test-finalizer")
		}},
		"the spec, written": {sync: func(ctx context.Context, r *fixture.Resource) error {
			r.Spec.Fields["value"] = "changed"
			return write(ctx, r)
		}},
		"a label, written": {sync: func(ctx context.Context, r *fixture.Resource) error {
			r.Labels = map[string]string{"a": "b"}
			return write(ctx, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled, specField("value", "given"), func(r *fixture.Resource) { r.UID = "uid" }))
			logged := []string{}
			ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) {
				if _, fields, found := strings.Cut(args, `"fields"=`); found && strings.Contains(args, "in memory only") {
					logged = append(logged, fields)
				}
			}, funcr.Options{}))
			root := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: tc.sync}}
			for range 3 {
				_, _ = root.ReconcileManaged(ctx, testRequest)
			}
			if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(logged)); diff != "" {
				t.Errorf("unexpected log lines (-want +got):\n%s", diff)
			}
		})
	}
}
