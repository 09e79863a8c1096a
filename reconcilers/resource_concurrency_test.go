// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestConcurrentRequests(t *testing.T) {
	const parents, passes = 10, 3
	given := []client.Object{}
	for i := range parents {
		given = append(given, newResource(func(r *fixture.Resource) {
			r.Name, r.UID = fmt.Sprintf("parent-%d", i), types.UID(fmt.Sprintf("parent-%d", i))
		}))
	}
	w := newWorld(t, given...)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	of := func(parent *fixture.Resource, id string) *corev1.ConfigMap {
		cm := member(id, "parent", parent.Name)
		cm.Name = parent.Name + "-" + id
		return cm
	}
	reflected := func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {}
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{
		&withFinalizer{Finalizer: "test-finalizer", Reconciler: sequence{}},
		&childReconciler{
			OurChild: func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] == "single" },
			DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
				return of(parent, "single"), nil
			},
			// All requests share these functions.
			MergeBeforeUpdate: mergeData, ReflectChildStatusOnParent: reflected,
		},
		newChildSetReconciler(w, func(r *childSetReconciler) {
			r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] != "single" }
			r.DesiredChildren = func(_ context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
				return []*corev1.ConfigMap{of(parent, "a"), of(parent, "b")}, nil
			}
		}),
		setField(reconcilers.Result{}, nil),
	}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))

	var done sync.WaitGroup
	for _, parent := range given {
		done.Go(func() {
			for range passes {
				_, err := r.Reconcile(context.Background(), requestFor(parent))
				wantErr(t, nil, err)
			}
		})
	}
	done.Wait()
	equal(t, "creates", 3*parents, w.Count("create ConfigMap"))
	equal(t, "updates", 0, w.Count("update ConfigMap"))
	equal(t, "deletes", 0, w.Count("delete"))
	equal(t, "status writes", parents, w.Count("update Resource/status"))
	for _, parent := range given {
		parent := stored(w, parent.(*fixture.Resource))
		for _, id := range []string{"single", "a", "b"} {
			child := stored(w, of(parent, id))
			equal(t, "owner of "+child.Name, parent.UID, child.OwnerReferences[0].UID)
			equal(t, "data of "+child.Name, parent.Name, child.Data["parent"])
		}
	}
}

func TestResourceReconciler_Panic(t *testing.T) {
	w := newWorld(t, newResource())
	log, lines := newLog(0)
	r := &resourceReconciler{Config: w.Config, Reconciler: sequence{
		sequence{},
		&syncReconciler{Name: "Careless", Sync: func(context.Context, *fixture.Resource) error { panic(errTest) }},
	}}
	func() {
		defer func() {
			if got, ok := recover().(error); !ok || !errors.Is(got, errTest) {
				t.Errorf("panic value %v", got)
			}
		}()
		_, _ = r.Reconcile(withLog(context.Background(), log), testRequest)
	}()
	equal(t, "messages", []string{"reconciler panicked"}, lines.messages())
	contains(t, lines.all(), `"step"="ResourceResourceReconciler.1.Careless"`)
}
