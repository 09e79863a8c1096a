// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

// TestWhatIsWatched also has a kind whose Go type is that of several kinds.
func TestWhatIsWatched(t *testing.T) {
	mgr := offlineManager(t)
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	for _, name := range []string{"second", "first"} {
		bldr := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(node).Named(name).
			WithOptions(controller.Options{SkipNameValidation: new(true)})
		if err := observe.Controller(bldr).Complete(reconcile.Func(
			func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil },
		)); err != nil {
			t.Fatal(err)
		}
	}
	hub := observe.Of(mgr)
	if diff := cmp.Diff([]string{"first", "second"}, hub.Controllers()); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	want := []schema.GroupVersionKind{}
	for _, kind := range []string{"ConfigMap", "Node", "Secret"} {
		want = append(want, corev1.SchemeGroupVersion.WithKind(kind))
	}
	if diff := cmp.Diff(want, hub.Watched(mgr.GetCache(), mgr.GetScheme())); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if other := hub.Watched(&informertest.FakeInformers{}, mgr.GetScheme()); len(other) > 0 {
		t.Errorf("kinds of another cache: %v", other)
	}
}
