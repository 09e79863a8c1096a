// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A child, or a conflicting object, may be created and deleted between two lists of the cache. No watch event is
// delivered then, so the request must be requeued.
func TestChild_ObjectsThatNeverReachTheCache(t *testing.T) {
	for _, c := range []struct {
		name   string
		parent *fixture.Resource
		child  *corev1.ConfigMap
		edit   func(*childReconciler)
		// after runs between the first request and the next.
		after func(w *world, child *corev1.ConfigMap) error
		done  func(w *world, parent *fixture.Resource, child *corev1.ConfigMap) bool
	}{
		{
			name: "child of a parent that is deleted", parent: newResource(finalizer("test-finalizer"), terminating),
			child: newConfigMap("child"),
			edit: func(r *childReconciler) {
				withoutOwner(r)
				r.ChildObjectManager, r.MergeBeforeUpdate, r.Finalizer = nil, mergeData, "test-finalizer"
			},
			after: func(*world, *corev1.ConfigMap) error { return nil },
			done:  func(w *world, parent *fixture.Resource, _ *corev1.ConfigMap) bool { return stored(w, parent) == nil },
		},
		{
			name: "object of another owner", parent: newResource(settled), child: newConfigMap("child", orphan),
			edit:  func(*childReconciler) {},
			after: func(w *world, child *corev1.ConfigMap) error { return w.Server.Delete(context.Background(), child) },
			done: func(w *world, _ *fixture.Resource, child *corev1.ConfigMap) bool {
				found := stored(w, child)
				return found != nil && len(found.OwnerReferences) > 0
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.parent, c.child)
			w.Unseen = func(obj client.Object) bool {
				_, ok := obj.(*corev1.ConfigMap)
				return ok
			}
			events := newEventCache(w.Scheme)
			mgr := newManager(t, w, events)
			config := configFor(w, mgr)
			config.StaleReadsTimeout = 20 * time.Millisecond
			ended, goOn := make(requests, 10), make(chan struct{}, 1)
			r := &resourceReconciler{
				Config: config, Reconciler: newChildReconciler(w, c.edit),
				AfterReconcile: func(
					_ context.Context, req reconcilers.Request, res reconcilers.Result, err error,
				) (reconcilers.Result, error) {
					ended <- req
					<-goOn
					return res, err
				},
			}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			start(t, mgr)
			t.Cleanup(func() { close(goOn) })
			events.changed(c.parent)

			ended.next(t, "the event of the parent")
			wantErr(t, nil, c.after(w, c.child))
			goOn <- struct{}{}
			ended.next(t, "nothing at all")
			if !c.done(w, c.parent, c.child) {
				t.Errorf("the request had no effect: %v", w.Trace())
			}
		})
	}
}
