// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object of another owner has the name of the child. Its deletion must trigger the parent, although the parent does
// not own it.
func TestSetup_EventOfAConflictingObjectTriggersTheParent(t *testing.T) {
	parent := newResource(settled)
	blocker := newConfigMap("child")
	blocker.OwnerReferences = nil
	w := newWorld(t, parent, blocker)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls := make(requests, 10)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{newChildReconciler(w), notify(calls)}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)

	events.changed(parent)
	calls.next(t, "the first event")
	if w.Count("track ConfigMap default/child for default/test") == 0 {
		t.Fatalf("the conflicting object is not tracked: %v", w.Trace())
	}
	wantErr(t, nil, w.Server.Delete(context.Background(), blocker))
	events.changed(blocker)
	calls.next(t, "the conflicting object was deleted")
	created := stored(w, blocker)
	if created == nil || !metav1.IsControlledBy(created, parent) {
		t.Errorf("the child was not created: %v", created)
	}
}
