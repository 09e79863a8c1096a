// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

var resourceKind = fixture.GroupVersion.WithKind("Resource")

// ducks is a controller that knows only some fields of its resources.
func ducks(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
	return (&reconcilers.ResourceReconciler[*fixture.Duck]{
		Type:         fixture.NewDuck("", ""),
		StatusEvents: true,
		Reconciler: reconcilers.Sequence[*fixture.Duck]{
			configMapOf("-of-a-duck", duckFields),
			&reconcilers.SyncReconciler[*fixture.Duck]{
				Sync: func(_ context.Context, duck *fixture.Duck) error {
					duck.Status.Fields = map[string]string{"quack": duck.Spec.Fields["sound"]}
					return nil
				},
			},
		},
		Config: c,
	}).SetupWithManager(ctx, mgr)
}

func duckFields(duck *fixture.Duck) map[string]string {
	return map[string]string{"sound": duck.Spec.Fields["sound"]}
}

func TestDuck(t *testing.T) {
	e := newEnv(t)
	resource := newUnstructured(resourceKind, "it")
	resource.Object["spec"] = map[string]any{"fields": map[string]any{"sound": "quack"}, "feathers": "white"}
	e.Add(resource)
	resource.Object["status"] = map[string]any{"swims": true}
	e.Must(e.Status().Update(t.Context(), resource))
	e.start(ducks)

	until(e, resource, statusIs(map[string]any{
		"swims":              true, // not a field of the duck
		"observedGeneration": int64(1),
		"fields":             map[string]any{"quack": "quack"},
	}))
	if diff := cmp.Diff(
		map[string]any{"fields": map[string]any{"sound": "quack"}, "feathers": "white"}, resource.Object["spec"],
	); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	child := newConfigMap("it-of-a-duck", nil)
	until(e, child, dataIs(map[string]string{"sound": "quack"}))
	if owner := metav1.GetControllerOf(child); owner == nil || owner.Kind != "Resource" || owner.UID != resource.GetUID() {
		t.Errorf("owner of the child: %+v", owner)
	}
	e.events("it", "StatusPatched", "Created")
	for _, verb := range e.traffic.of("resources/status") {
		if verb != "PATCH" {
			t.Errorf("the status was written by %s: unknown fields would be lost", verb)
		}
	}

	change(e, resource, func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, "honk", "spec", "fields", "sound"); err != nil {
			t.Error(err)
		}
	})
	until(e, child, dataIs(map[string]string{"sound": "honk"}))
	e.Must(e.Delete(t.Context(), child))
	until(e, child, dataIs(map[string]string{"sound": "honk"}))
}

// A reconciler for ducks below a root for Resources.
func TestCastResource(t *testing.T) {
	e := newEnv(t)
	cleaned := make(chan string, 1)
	e.start(root(&reconcilers.CastResource[*fixture.Resource, *fixture.Duck]{
		Reconciler: &reconcilers.WithFinalizer[*fixture.Duck]{
			Finalizer: finalizer,
			Reconciler: reconcilers.Sequence[*fixture.Duck]{
				configMapOf("-of-a-duck", duckFields),
				&reconcilers.SyncReconciler[*fixture.Duck]{
					Sync: func(_ context.Context, duck *fixture.Duck) error {
						duck.Status.Fields = map[string]string{"quack": duck.Spec.Fields["sound"]}
						if duck.Spec.Fields["sound"] == "none" {
							return errors.New("a duck must make a sound")
						}
						return nil
					},
					Finalize: func(_ context.Context, duck *fixture.Duck) error {
						cleaned <- duck.Name
						return nil
					},
				},
			},
		},
	}))
	resource := newResource("it", map[string]string{"sound": "quack"})
	e.Add(resource)

	until(e, resource, func(r *fixture.Resource) error {
		if diff := cmp.Diff(map[string]string{"quack": "quack"}, r.Status.Fields); diff != "" {
			return fmt.Errorf("status (-want +got):\n%s", diff)
		}
		return nil
	})
	if diff := cmp.Diff([]string{finalizer}, resource.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	child := newConfigMap("it-of-a-duck", nil)
	until(e, child, dataIs(map[string]string{"sound": "quack"}))
	if owner := metav1.GetControllerOf(child); owner == nil || owner.APIVersion != fixture.GroupVersion.String() ||
		owner.Kind != "Resource" {
		t.Errorf("owner of the child: %+v", owner)
	}
	change(e, child, func(cm *corev1.ConfigMap) { cm.Data = nil }) // the watch of the root triggers the owner
	until(e, child, dataIs(map[string]string{"sound": "quack"}))
	e.events("it", "FinalizerPatched", "Created", "Updated")

	// Changes of a subreconciler to a resource are also stored if it fails.
	change(e, resource, func(r *fixture.Resource) { r.Spec.Fields["sound"] = "none" })
	until(e, resource, func(r *fixture.Resource) error {
		if r.Status.Fields["quack"] != "none" {
			return fmt.Errorf("status = %v", r.Status.Fields)
		}
		return nil
	})
	if resource.Status.ObservedGeneration != 1 {
		t.Errorf("observed generation = %d after a failed reconcile of generation 2", resource.Status.ObservedGeneration)
	}

	e.Must(e.Delete(t.Context(), resource))
	e.WaitForDeletion(resource)
	if name := <-cleaned; name != "it" {
		t.Errorf("cleaned up after %q", name)
	}
}

// Children with only some known fields. Creating and updating them must be enabled.
func TestDuck_asAChild(t *testing.T) {
	e := newEnv(t)
	ours := func(parent *unstructured.Unstructured, duck *fixture.Duck) bool {
		return duck.Name == parent.GetName()+"-duck"
	}
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		return (&reconcilers.ResourceReconciler[*unstructured.Unstructured]{
			Type: newUnstructured(widgetKind, ""),
			Reconciler: &reconcilers.ChildReconciler[*unstructured.Unstructured, *fixture.Duck, *fixture.DuckList]{
				ChildType: fixture.NewDuck("", ""),
				ChildListType: &fixture.DuckList{
					TypeMeta: metav1.TypeMeta{APIVersion: fixture.GroupVersion.String(), Kind: "ResourceList"},
				},
				DesiredChild: func(_ context.Context, parent *unstructured.Unstructured) (*fixture.Duck, error) {
					sound, found, err := unstructured.NestedString(parent.Object, "spec", "sound")
					if err != nil || !found {
						return nil, err
					}
					duck := fixture.NewDuck(parent.GetNamespace(), parent.GetName()+"-duck")
					duck.Spec.Fields = map[string]string{"sound": sound}
					return duck, nil
				},
				OurChild: ours,
				ChildObjectManager: &reconcilers.UpdatingObjectManager[*fixture.Duck]{
					Type:                      fixture.NewDuck("", ""),
					DangerouslyAllowDuckTypes: true,
					MergeBeforeUpdate:         func(current, desired *fixture.Duck) { current.Spec = desired.Spec },
				},
				ReflectChildStatusOnParent: func(
					_ context.Context, parent *unstructured.Unstructured, duck *fixture.Duck, err error,
				) {
					parent.Object["status"] = map[string]any{"exists": err == nil && duck != nil}
				},
			},
			Config: c,
		}).SetupWithManager(ctx, mgr)
	})
	parent, child := newUnstructured(widgetKind, "it"), newUnstructured(resourceKind, "it-duck")
	parent.Object["spec"] = map[string]any{"sound": "quack"}
	e.Add(parent)
	until(e, child, specIs(map[string]any{"fields": map[string]any{"sound": "quack"}}))
	until(e, parent, statusIs(map[string]any{"exists": true}))
	if !metav1.IsControlledBy(child, parent) {
		t.Errorf("owners of the child: %v", child.GetOwnerReferences())
	}
	change(e, child, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{} })
	until(e, child, specIs(map[string]any{"fields": map[string]any{"sound": "quack"}}))
	change(e, parent, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{} })
	e.WaitForDeletion(child)
	until(e, parent, statusIs(map[string]any{"exists": false}))
}
