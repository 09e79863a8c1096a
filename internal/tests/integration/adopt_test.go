// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type configMapChild = reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]

// Who owns an object that existed before its parent: the parent, unless another controller does. The parent releases it
// when it no longer wants it, and takes it when the other controller gives it up. The object is not created again.
func TestWhoOwnsTheObject(t *testing.T) {
	t.Parallel()
	for name, manager := range map[string]reconcilers.ObjectManager[*corev1.ConfigMap]{
		"update": &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		},
		"apply": &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{Conflicts: reconcilers.ForceOnConflict},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			child := owned().(*configMapChild)
			desired := child.DesiredChild
			child.DesiredChild = func(ctx context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
				if parent.Spec.Fields["none"] != "" {
					return nil, nil
				}
				return desired(ctx, parent)
			}
			child.MergeBeforeUpdate, child.ChildObjectManager = nil, manager
			always := func(context.Context, *fixture.Resource, *corev1.ConfigMap) bool { return true }
			child.Adopt, child.Release = always, always
			child.ReflectChildStatusOnParentWithError = func(
				_ context.Context, parent *fixture.Resource, _ *corev1.ConfigMap, err error,
			) error {
				parent.Status.Fields = map[string]string{}
				if err != nil {
					parent.Status.Fields["error"] = err.Error()
				}
				return nil
			}
			parent := newResource("parent", map[string]string{"a": "1"})
			parent.Namespace = e.Namespace
			object := newConfigMap("parent", map[string]string{"a": "by hand"})
			object.Namespace = e.Namespace
			other := newConfigMap("other", nil)
			other.Namespace = e.Namespace
			e.Add(other)
			object.OwnerReferences = []metav1.OwnerReference{
				*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
			}
			e.Add(object)
			uid := object.UID

			e.start(root(child))
			e.Add(parent)
			until(e, parent, func(p *fixture.Resource) error {
				want := `ConfigMap "parent" already exists and is controlled by ConfigMap "other"`
				return different("error", want, p.Status.Fields["error"])
			})
			change(e, object, func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil })
			until(e, object, func(cm *corev1.ConfigMap) error {
				if err := different("data", "1", cm.Data["a"]); err != nil {
					return err
				}
				return different("control by the parent", true, metav1.IsControlledBy(cm, parent))
			})
			e.events("parent", "Adopted")
			change(e, parent, func(p *fixture.Resource) { p.Spec.Fields["none"] = "yes" })
			until(e, object, func(cm *corev1.ConfigMap) error { return different("owners", 0, len(cm.OwnerReferences)) })
			e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(object), object))
			if object.UID != uid {
				t.Error("the object was created again")
			}
		})
	}
}
