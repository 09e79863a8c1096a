// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type (
	wiredRoot     = reconcilers.ResourceReconciler[*fixture.Resource]
	wiredSequence = reconcilers.Sequence[*fixture.Resource]
	wiredSync     = reconcilers.SyncReconciler[*fixture.Resource]
	wiredChild    = reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]
)

func wiringScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fixture.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// wiredWith is a set-up of a ResourceReconciler with sub reconcilers.
func wiredWith(below ...reconcilers.SubReconciler[*fixture.Resource]) setUpFunc {
	return func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		return (&wiredRoot{Config: config, Reconciler: wiredSequence(below)}).SetupWithManager(ctx, mgr)
	}
}

// wiredBy is a set-up of a ResourceReconciler with its Setup function.
func wiredBy(setup func(ctx context.Context, mgr ctrl.Manager, bldr *reconcilers.Builder) error) setUpFunc {
	return func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		return (&wiredRoot{Config: config, Setup: setup, Reconciler: wiredSequence{}}).SetupWithManager(ctx, mgr)
	}
}

// wiredPlain is a set-up of a controller that is built without anything of trueup. Its reconciler must not be called.
func wiredPlain(t testing.TB, build func(bldr *reconcilers.Builder, mgr ctrl.Manager)) setUpFunc {
	return func(_ context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		bldr := ctrl.NewControllerManagedBy(mgr)
		build(bldr, mgr)
		return bldr.Complete(neverCalled(t))
	}
}

func neverCalled(t testing.TB) reconcile.Reconciler {
	return reconcile.Func(func(_ context.Context, request reconcilers.Request) (reconcilers.Result, error) {
		t.Errorf("the reconciler was called with %s", request)
		return reconcilers.Result{}, nil
	})
}

// newWiredChild returns a reconciler for a ConfigMap.
func newWiredChild(edits ...func(*wiredChild)) *wiredChild {
	r := &wiredChild{
		DesiredChild:               func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) { return nil, nil },
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
		MergeBeforeUpdate:          func(_, _ *corev1.ConfigMap) {},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func withoutOwnerReference(r *wiredChild) {
	r.SkipOwnerReference = true
	r.OurChild = func(*fixture.Resource, *corev1.ConfigMap) bool { return true }
	r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption { return nil }
}

// identifiedByName makes a ChildReconciler tell its child from others of the kind.
func identifiedByName(name string) func(*wiredChild) {
	return func(r *wiredChild) {
		r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name == name }
	}
}

// tracking returns a reconciler that watches a kind for the resources that track it.
func tracking(obj client.Object) *wiredSync {
	return &wiredSync{
		Sync: func(context.Context, *fixture.Resource) error { return nil },
		Setup: func(ctx context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(obj, reconcilers.EnqueueTracked(ctx))
			return nil
		},
	}
}

func unstructuredKind(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

func metadataKind(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}

// watchesOf lists kinds without anything that is ignored.
func watchesOf(objs ...client.Object) []Watch {
	return each(objs, func(obj client.Object) Watch { return Watch{Object: obj} })
}

// ownerIndex is the index that child reconcilers ask for.
const ownerIndex = "trueup.dev/controller-uid"
