// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// spoil changes what it can of an object, in place.
func spoil(obj client.Object) {
	for key := range obj.GetLabels() {
		obj.GetLabels()[key] = "spoiled"
	}
	for i := range obj.GetOwnerReferences() {
		obj.GetOwnerReferences()[i].Name = "spoiled"
	}
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		for key := range obj.Data {
			obj.Data[key] = "spoiled"
		}
	case *fixture.Resource:
		for key := range obj.Spec.Fields {
			obj.Spec.Fields[key] = "spoiled"
		}
	}
}

// Changes that authors make to the objects they receive do not reach the cache, although the engine copies as little as
// possible.
func TestNothingReachesTheObjectsInTheCache(t *testing.T) {
	e := newEnv(t)
	var passes atomic.Int64
	var cached client.Reader
	newChild := func(name string, parent *fixture.Resource) *corev1.ConfigMap {
		child := newConfigMap(name, map[string]string{"value": "right"})
		child.Namespace, child.Labels = parent.Namespace, map[string]string{"label": "right"}
		return child
	}
	manager := func() reconcilers.ObjectManager[*corev1.ConfigMap] {
		return &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
			HarmonizeImmutableFields: func(current, desired *corev1.ConfigMap) {
				desired.BinaryData = current.BinaryData
				desired.Labels = current.Labels
			},
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
				current.Data, current.Labels = desired.Data, desired.Labels
			},
		}
	}
	child := &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		OurChild: func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name == "single" },
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
			return newChild("single", parent), nil
		},
		ChildObjectManager: manager(),
		ReflectChildStatusOnParent: func(_ context.Context, _ *fixture.Resource, child *corev1.ConfigMap, _ error) {
			spoil(child)
		},
	}
	set := &reconcilers.ChildSetReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		OurChild:      func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name != "single" },
		IdentifyChild: func(child *corev1.ConfigMap) string { return child.Name },
		DesiredChildren: func(ctx context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
			for _, known := range reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx) {
				spoil(known)
			}
			if passes.Load()%2 == 1 {
				return nil, reconcilers.OnlyReconcileChildStatus
			}
			return []*corev1.ConfigMap{newChild("one", parent), newChild("two", parent)}, nil
		},
		ChildObjectManager: manager(),
		ReflectChildrenStatusOnParent: func(
			_ context.Context, _ *fixture.Resource, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
			for _, child := range result.Children {
				spoil(child.Child)
			}
		},
	}
	last := &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(_ context.Context, parent *fixture.Resource) error {
		spoil(parent)
		passes.Add(1)
		return nil
	}}
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		cached = mgr.GetCache()
		return root(reconcilers.Sequence[*fixture.Resource]{child, set, last})(ctx, mgr, c)
	})
	resource := newResource("it", map[string]string{"field": "right"})
	resource.Labels = map[string]string{"label": "right"}
	e.Add(resource)
	for _, name := range []string{"single", "one", "two"} {
		e.Eventually(func() error { return e.Read(newConfigMap(name, nil)) })
	}
	for range 4 {
		before := passes.Load()
		e.touch(resource)
		e.Eventually(func() error {
			if passes.Load() == before {
				return fmt.Errorf("no reconcile for a change of the resource")
			}
			return nil
		})
	}

	for _, obj := range []client.Object{
		resource, newConfigMap("single", nil), newConfigMap("one", nil), newConfigMap("two", nil),
	} {
		e.Must(e.Read(obj))
		held := obj.DeepCopyObject().(client.Object)
		e.Eventually(func() error {
			e.Must(cached.Get(e.Context(), client.ObjectKeyFromObject(obj), held))
			if held.GetResourceVersion() != obj.GetResourceVersion() {
				return fmt.Errorf("the cache has version %s, not %s", held.GetResourceVersion(), obj.GetResourceVersion())
			}
			return nil
		})
		held.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
		if diff := cmp.Diff(obj, held); diff != "" {
			t.Errorf("%T %s in the cache (-API server +cache):\n%s", obj, obj.GetName(), diff)
		}
	}
}
