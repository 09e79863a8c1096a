// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck,govet // tests the deprecated names
package generations

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
)

// The documented examples of v0.12 to v0.19: type parameters instead of type fields, sets of children and flow control.
// Examples that did not change are in the files of the older generations.

// A child with a finalizer has no owner reference, is tracked, and keeps its parent until it no longer exists.
func TestV19_ChildReconcilerFinalizer(t *testing.T) {
	child := &reconcilers.ChildReconciler[*Function, *Image, *ImageList]{
		Name:      "ChildImage",
		Finalizer: "functions.example.com/image",
		ListOptions: func(context.Context, *Function) []client.ListOption {
			return []client.ListOption{client.InNamespace("builds")}
		},
		OurChild: func(parent *Function, child *Image) bool { return child.Labels[functionLabel] == parent.Name },
		DesiredChild: func(_ context.Context, parent *Function) (*Image, error) {
			return &Image{ObjectMeta: metav1.ObjectMeta{
				Namespace: "builds", Name: parent.Name, Labels: map[string]string{functionLabel: parent.Name},
			}}, nil
		},
		MergeBeforeUpdate:          func(actual, desired *Image) { actual.Spec = desired.Spec },
		ReflectChildStatusOnParent: func(context.Context, *Function, *Image, error) {},
	}
	function := newFunction()
	w := newWorld(t, function)
	reconcileBelow(t, w, child, function)
	image := &Image{ObjectMeta: metav1.ObjectMeta{Namespace: "builds", Name: "square"}}
	w.get(t, image)
	equal(t, "owner references", 0, len(image.OwnerReferences))
	w.get(t, function)
	equal(t, "finalizers", []string{"functions.example.com/image"}, function.Finalizers)
	image.SetGroupVersionKind(group.WithKind("Image"))
	observers, err := w.Tracker.GetObservers(image)
	equal(t, "tracked", true, err == nil && len(observers) == 1)

	if err := w.Delete(t.Context(), function); err != nil {
		t.Fatal(err)
	}
	for range 2 { // first delete the image, then remove the finalizer
		reconcileBelow(t, w, child, function)
	}
	w.gone(t, image)
	w.gone(t, function)
}

// Halting is not an error, and the changed status is written.
func TestV19_HaltSubReconcilers(t *testing.T) {
	gateway := newGateway()
	w := newWorld(t, gateway)
	reconcileBelow(t, w, reconcilers.Sequence[*Gateway]{
		&reconcilers.SyncReconciler[*Gateway]{Sync: func(_ context.Context, resource *Gateway) error {
			resource.Status.GatewayImage = "none yet"
			return reconcilers.HaltSubReconcilers
		}},
		&reconcilers.SyncReconciler[*Gateway]{Sync: func(context.Context, *Gateway) error {
			t.Error("called after a halt")
			return nil
		}},
	}, gateway)
	w.get(t, gateway)
	equal(t, "status", "none yet", gateway.Status.GatewayImage)
	equal(t, "observed generation", int64(1), gateway.Status.ObservedGeneration)
}

func TestV19_Time(t *testing.T) {
	started := time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
	gateway := newGateway()
	w := newWorld(t, gateway)
	root := &reconcilers.ResourceReconciler[*Gateway]{
		Reconciler: &reconcilers.SyncReconciler[*Gateway]{Sync: func(ctx context.Context, resource *Gateway) error {
			resource.Status.StartedAt = &metav1.Time{Time: rtime.RetrieveTime(ctx)}
			return nil
		}},
		Config: w.Config,
	}
	if _, err := root.Reconcile(
		rtime.StashNow(t.Context(), started), reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(gateway)},
	); err != nil {
		t.Fatal(err)
	}
	w.get(t, gateway)
	equal(t, "time", true, gateway.Status.StartedAt.Time.Equal(started))
}
