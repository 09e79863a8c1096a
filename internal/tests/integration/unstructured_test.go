// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/reconcilers"
)

// widgets is a controller without Go types for its resources and their children.
func widgets(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
	type object = *unstructured.Unstructured
	return (&reconcilers.ResourceReconciler[object]{
		Type: newUnstructured(widgetKind, ""),
		Reconciler: &reconcilers.ChildReconciler[object, object, *unstructured.UnstructuredList]{
			ChildType:     newUnstructured(gadgetKind, ""),
			ChildListType: newUnstructuredList(gadgetKind),
			DesiredChild: func(_ context.Context, widget object) (object, error) {
				size, found, err := unstructured.NestedInt64(widget.Object, "spec", "size")
				if err != nil || !found {
					return nil, err
				}
				gadget := newUnstructured(gadgetKind, widget.GetName())
				gadget.SetNamespace(widget.GetNamespace())
				gadget.Object["spec"] = map[string]any{"size": size}
				return gadget, nil
			},
			MergeBeforeUpdate: func(current, desired object) { current.Object["spec"] = desired.Object["spec"] },
			ReflectChildStatusOnParent: func(_ context.Context, widget, gadget object, _ error) {
				name := ""
				if gadget != nil {
					name = gadget.GetName()
				}
				widget.Object["status"] = map[string]any{"gadget": name}
			},
		},
		Config: c,
	}).SetupWithManager(ctx, mgr)
}

func statusIs(want any) func(*unstructured.Unstructured) error {
	return func(got *unstructured.Unstructured) error {
		if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
			return fmt.Errorf("status of %s (-want +got):\n%s", got.GetName(), diff)
		}
		return nil
	}
}

func specIs(want any) func(*unstructured.Unstructured) error {
	return func(got *unstructured.Unstructured) error {
		if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
			return fmt.Errorf("spec of %s (-want +got):\n%s", got.GetName(), diff)
		}
		return nil
	}
}

func TestUnstructured(t *testing.T) {
	e := newEnv(t)
	e.start(widgets)
	widget, gadget := newUnstructured(widgetKind, "it"), newUnstructured(gadgetKind, "it")
	widget.Object["spec"] = map[string]any{"size": int64(1), "color": "red"}
	e.Add(widget)

	until(e, gadget, specIs(map[string]any{"size": int64(1)}))
	until(e, widget, statusIs(map[string]any{"gadget": "it"}))
	if !metav1.IsControlledBy(gadget, widget) {
		t.Errorf("owners of the child: %v", gadget.GetOwnerReferences())
	}
	if owner := metav1.GetControllerOf(gadget); owner != nil &&
		(owner.APIVersion != "integration.trueup.dev/v1" || owner.Kind != "Widget") {
		t.Errorf("owner of the child: %+v", owner)
	}
	if diff := cmp.Diff(map[string]any{"size": int64(1), "color": "red"}, widget.Object["spec"]); diff != "" {
		t.Errorf("spec of the resource (-want +got):\n%s", diff)
	}

	change(e, gadget, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"size": int64(7)} })
	until(e, gadget, specIs(map[string]any{"size": int64(1)}))
	change(e, widget, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"size": int64(2)} })
	until(e, gadget, specIs(map[string]any{"size": int64(2)}))
	change(e, widget, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{} })
	e.WaitForDeletion(gadget)
	until(e, widget, statusIs(map[string]any{"gadget": ""}))
	e.events("it", "Created", "Updated", "Deleted")
}

// The garbage collector follows the owner reference.
func TestUnstructured_childGoesWithItsOwner(t *testing.T) {
	e := newEnv(t)
	e.start(widgets)
	widget, gadget := newUnstructured(widgetKind, "it"), newUnstructured(gadgetKind, "it")
	widget.Object["spec"] = map[string]any{"size": int64(1)}
	e.Add(widget)
	until(e, gadget, specIs(map[string]any{"size": int64(1)}))
	e.Must(e.Delete(t.Context(), widget))
	e.WaitForDeletion(gadget)
}
