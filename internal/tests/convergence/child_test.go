// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// child is a reconciler of one ConfigMap.
type child = reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]

// newChild returns a reconciler of a ConfigMap, which exists unless the resource has the field "childless".
func newChild(name func(*corev1.ConfigMap)) *child {
	return &child{
		DesiredChild: func(_ context.Context, resource *fixture.Resource) (*corev1.ConfigMap, error) {
			if resource.Spec.Fields["childless"] != "" {
				return nil, nil
			}
			desired := configMap(resource, "")
			name(desired)
			return desired, nil
		},
		ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *corev1.ConfigMap, err error) {
			report(parent, "problem", "")
			report(parent, "child", "")
			switch {
			case err != nil:
				report(parent, "problem", err.Error())
			case child != nil:
				report(parent, "child", child.Data["value"])
			}
		},
		MergeBeforeUpdate: mergeConfigMap,
	}
}

func fixedName(obj *corev1.ConfigMap)     { obj.Name = "child" }
func generatedName(obj *corev1.ConfigMap) { obj.GenerateName = "child-" }

func inNamespace(_ context.Context, resource *fixture.Resource) []client.ListOption {
	return []client.ListOption{client.InNamespace(resource.Namespace)}
}

// lives are the steps of a resource with one child: the child is created, changed, deleted and created again.
func lives() []converge.Step {
	return converge.Lifecycle(
		newResource("one"), setField("value", "two"), setField("childless", "yes"), setField("childless", ""),
	)
}

func TestChildReconciler(t *testing.T) {
	ours := func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["of"] == "us" }
	labeled := func(name func(*corev1.ConfigMap)) func(*corev1.ConfigMap) {
		return func(obj *corev1.ConfigMap) {
			name(obj)
			obj.Labels = map[string]string{"of": "us"}
		}
	}
	for name, build := range map[string]func() *child{
		"fixed name":     func() *child { return newChild(fixedName) },
		"generated name": func() *child { return newChild(generatedName) },
		"finalizer": func() *child {
			c := newChild(labeled(fixedName))
			c.Finalizer, c.OurChild = finalizer, ours
			c.ListOptions = inNamespace
			return c
		},
		"finalizer, generated name": func() *child {
			c := newChild(labeled(generatedName))
			c.Finalizer, c.OurChild = finalizer, ours
			c.ListOptions = inNamespace
			return c
		},
		"applied": func() *child {
			c := newChild(fixedName)
			c.MergeBeforeUpdate, c.ChildObjectManager = nil, &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{}
			return c
		},
		"applied, finalizer": func() *child {
			c := newChild(labeled(fixedName))
			c.OurChild, c.ListOptions, c.SkipOwnerReference, c.MergeBeforeUpdate = ours, inNamespace, true, nil
			c.ChildObjectManager = &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
				Finalizer: finalizer, TrackDesired: true,
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := under(t, func(converge.Env) sub { return build() })
			s.Steps = lives()
			prove(t, s)
		})
		t.Run(name+", again", func(t *testing.T) {
			s := under(t, func(converge.Env) sub { return build() })
			s.Steps = again(newResource("one"), newResource("two"))
			prove(t, s)
		})
	}
}
