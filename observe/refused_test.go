// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWhichWritesAreRefused tests which writes make a reconcile a failure that returns no error.
func TestWhichWritesAreRefused(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	forbidden := apierrors.NewForbidden(resource, "a", errors.New("exceeded quota"))
	type write struct {
		object string
		answer error
		dryRun bool
	}
	for name, tc := range map[string]struct {
		writes []write
		want   []string
	}{
		"refused":        {writes: []write{{"a", forbidden, false}}, want: []string{"ConfigMap default/a"}},
		"succeeds later": {writes: []write{{"a", forbidden, false}, {"a", nil, false}}},
		"succeeds as a dry run": {
			writes: []write{{"a", forbidden, false}, {"a", nil, true}}, want: []string{"ConfigMap default/a"},
		},
		"another one succeeds": {
			writes: []write{{"a", forbidden, false}, {"b", nil, false}}, want: []string{"ConfigMap default/a"},
		},
		"two, and one of them succeeds later": {
			writes: []write{{"a", forbidden, false}, {"b", forbidden, false}, {"b", nil, false}},
			want:   []string{"ConfigMap default/a"},
		},
		"twice": {
			writes: []write{{"a", forbidden, false}, {"a", forbidden, false}}, want: []string{"ConfigMap default/a"},
		},
		"a dry run":         {writes: []write{{"a", forbidden, true}}},
		"a conflict":        {writes: []write{{"a", apierrors.NewConflict(resource, "a", nil), false}}},
		"does not exist":    {writes: []write{{"a", apierrors.NewNotFound(resource, "a"), false}}},
		"exists, by design": {writes: []write{{"a", apierrors.NewAlreadyExists(resource, "a"), false}}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := &Hub{}
			var finished ReconcileFinished
			hub.Add(Func(func(_ context.Context, event Event) {
				if e, ok := event.(*ReconcileFinished); ok {
					finished = *e
				}
			}))
			next := 0
			c := NewClient(interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
					return tc.writes[next].answer
				},
			}), nil, hub)
			o := &controllerObserver{hub: hub, reconciler: reconcile.Func(
				func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
					for ; next < len(tc.writes); next++ {
						w, opts := tc.writes[next], []client.UpdateOption{}
						if w.dryRun {
							opts = append(opts, client.DryRunAll)
						}
						obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.object}}
						if err := c.Update(ctx, obj, opts...); !errors.Is(err, w.answer) {
							t.Errorf("got error %v", err)
						}
					}
					return reconcile.Result{}, nil
				})}
			if _, err := o.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range finished.Refused {
				got = append(got, f.Origin()) // the reconciler has no steps
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || finished.Failed() != (len(tc.want) > 0) {
				t.Errorf("failed: %v; refused writes (-want +got):\n%s", finished.Failed(), diff)
			}
		})
	}
}
