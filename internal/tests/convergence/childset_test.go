// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// childSet is a reconciler of ConfigMaps.
type childSet = reconcilers.ChildSetReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]

// newChildSet returns a reconciler of one ConfigMap for each word in the field "children".
func newChildSet(name func(child *corev1.ConfigMap, id string)) *childSet {
	return &childSet{
		DesiredChildren: func(_ context.Context, resource *fixture.Resource) ([]*corev1.ConfigMap, error) {
			if resource.DeletionTimestamp != nil {
				return nil, nil
			}
			var children []*corev1.ConfigMap
			for id := range strings.FieldsSeq(resource.Spec.Fields["children"]) {
				child := configMap(resource, "")
				child.Labels = map[string]string{"id": id}
				name(child, id)
				children = append(children, child)
			}
			return children, nil
		},
		IdentifyChild: func(child *corev1.ConfigMap) string { return child.Labels["id"] },
		ReflectChildrenStatusOnParent: func(
			_ context.Context, parent *fixture.Resource, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
			var there []string
			problem := ""
			for _, child := range result.Children {
				switch {
				case child.Err != nil:
					problem = child.Err.Error()
				case child.Child != nil:
					there = append(there, child.Id+"="+child.Child.Data["value"])
				}
			}
			slices.Sort(there)
			report(parent, "children", strings.Join(there, " "))
			report(parent, "problem", problem)
		},
		MergeBeforeUpdate: mergeConfigMap,
	}
}

func TestChildSetReconciler(t *testing.T) {
	fixed := func(child *corev1.ConfigMap, id string) { child.Name = "child-" + id }
	// While one child cannot be deleted, the others are created. So each has a prefix of its own.
	generated := func(child *corev1.ConfigMap, id string) { child.GenerateName = "child-" + id + "-" }
	ours := func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] != "" }
	withFinalizer := func(set *childSet) *childSet {
		set.Finalizer, set.OurChild, set.ListOptions = finalizer, ours, inNamespace
		return set
	}
	for name, build := range map[string]func() *childSet{
		"fixed names":                func() *childSet { return newChildSet(fixed) },
		"generated names":            func() *childSet { return newChildSet(generated) },
		"finalizer":                  func() *childSet { return withFinalizer(newChildSet(fixed)) },
		"finalizer, generated names": func() *childSet { return withFinalizer(newChildSet(generated)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := under(t, func(converge.Env) sub { return build() })
			resource := newResource("one")
			setField("children", "x y")(resource)
			s.Steps = converge.Lifecycle(resource, setField("children", "y z"), setField("value", "two"))
			prove(t, s)
		})
	}
}
