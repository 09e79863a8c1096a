// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A change of a child by another client is reverted.
func TestChildReconciler_drift(t *testing.T) {
	for name, named := range map[string]func(*corev1.ConfigMap){"fixed name": fixedName, "generated name": generatedName} {
		t.Run(name, func(t *testing.T) {
			s := under(t, func(converge.Env) sub { return newChild(named) })
			s.With = []converge.Fault{converge.FaultDrift}
			prove(t, s)
		})
	}
}

// The first list of a process may be stale. A fixed name is safe even then.
func TestChildReconciler_timeTravel(t *testing.T) {
	s := under(t, func(converge.Env) sub { return newChild(fixedName) })
	s.Consistency = converge.TimeTravel
	s.Steps = append(s.Steps, again(newResource("three"), newResource("four"))...)
	prove(t, s)
}

// Two resources desire a child of the same name. One of them creates it, and the other one after it was deleted.
func TestChildReconciler_contested(t *testing.T) {
	a, b := newResource("one"), newResource("one")
	b.Name = "b"
	s := under(t, func(converge.Env) sub { return newChild(fixedName) })
	s.Steps = converge.Steps(
		converge.Apply(a), converge.Settle(), converge.Apply(b), converge.Settle(), converge.Delete(a), converge.Settle(),
		converge.Delete(b), converge.Settle(),
	)
	s.Desired = func(state converge.State) error {
		var resources fixture.ResourceList
		if err := state.List(&resources); err != nil {
			return err
		}
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "child"}}
		if there := state.Get(child); there != (len(resources.Items) > 0) {
			return fmt.Errorf("%d resources, and the child exists: %t", len(resources.Items), there)
		}
		for _, resource := range resources.Items {
			owner, reported := metav1.IsControlledBy(child, &resource), resource.Status.Fields["child"] == "one"
			if owner != reported || owner == (resource.Status.Fields["problem"] != "") {
				return fmt.Errorf("%s is the owner: %t, and reports %v", resource.Name, owner, resource.Status.Fields)
			}
		}
		return nil
	}
	prove(t, s)
}

// An object of another client has the name of the child for a short time, and may never reach the cache.
func TestChildReconciler_blockedForAMoment(t *testing.T) {
	blocker, resource := config("child", "other"), newResource("one")
	s := under(t, func(converge.Env) sub { return newChild(fixedName) })
	s.Steps = converge.Steps(
		converge.Apply(blocker), converge.Apply(resource), converge.Sleep(20*time.Millisecond), converge.Delete(blocker),
		converge.Settle(), converge.Delete(resource), converge.Settle(),
	)
	prove(t, s)
}

// A child in another namespace has no owner.
func TestChildReconciler_otherNamespace(t *testing.T) {
	for name, named := range map[string]func(*corev1.ConfigMap){"fixed name": fixedName, "generated name": generatedName} {
		t.Run(name, func(t *testing.T) {
			s := under(t, func(converge.Env) sub {
				c := newChild(func(obj *corev1.ConfigMap) {
					named(obj)
					obj.Namespace, obj.Labels = "elsewhere", map[string]string{"of": "a"}
				})
				c.Finalizer = finalizer
				c.OurChild = func(
					parent *fixture.Resource, child *corev1.ConfigMap,
				) bool {
					return child.Labels["of"] == parent.Name
				}
				c.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption {
					return []client.ListOption{client.InNamespace("elsewhere")}
				}
				return c
			})
			s.Given = objects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
			s.Steps = append(lives(), again(newResource("three"), newResource("four"))...)
			prove(t, s)
		})
	}
}

// The API server adds immutable fields to a Job, which are not part of the desired child.
func TestChildReconciler_immutable(t *testing.T) {
	s := under(t, func(converge.Env) sub {
		return &reconcilers.ChildReconciler[*fixture.Resource, *batchv1.Job, *batchv1.JobList]{
			DesiredChild: func(_ context.Context, resource *fixture.Resource) (*batchv1.Job, error) {
				return &batchv1.Job{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: resource.Namespace, Name: "job", Labels: map[string]string{"value": resource.Spec.Fields["value"]},
					},
					Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
					}}},
				}, nil
			},
			ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *batchv1.Job, err error) {
				report(parent, "done", "")
				if err == nil && child != nil && child.Status.Succeeded > 0 {
					report(parent, "done", "yes")
				}
			},
			HarmonizeImmutableFields: func(current, desired *batchv1.Job) {
				desired.Spec.Template, desired.Spec.Selector = current.Spec.Template, current.Spec.Selector
			},
			MergeBeforeUpdate: func(current, desired *batchv1.Job) {
				current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
				current.Spec.Template, current.Spec.Selector = desired.Spec.Template, desired.Spec.Selector
			},
		}
	})
	s.World = []converge.Actor{converge.Jobs(converge.BecomeReady)}
	prove(t, s)
}

// The resource and its child are unstructured.
func TestChildReconciler_unstructured(t *testing.T) {
	type untyped = *unstructured.Unstructured
	kind := func(gvk schema.GroupVersionKind) untyped {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		return obj
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	s := under(t, nil)
	s.Setup = func(mgr ctrl.Manager) error {
		root := &reconcilers.ResourceReconciler[untyped]{
			Type: kind(fixture.GroupVersion.WithKind("Resource")),
			Reconciler: &reconcilers.ChildReconciler[untyped, untyped, *unstructured.UnstructuredList]{
				ChildType:     kind(corev1.SchemeGroupVersion.WithKind("ConfigMap")),
				ChildListType: list,
				DesiredChild: func(_ context.Context, resource untyped) (untyped, error) {
					value, _, err := unstructured.NestedString(resource.Object, "spec", "fields", "value")
					child := kind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
					child.SetNamespace(resource.GetNamespace())
					child.SetName("child")
					child.Object["data"] = map[string]any{"value": value}
					return child, err
				},
				ReflectChildStatusOnParent: func(_ context.Context, parent, child untyped, err error) {
					seen := ""
					if err == nil && child != nil {
						seen, _, _ = unstructured.NestedString(child.Object, "data", "value")
					}
					_ = unstructured.SetNestedField(parent.Object, seen, "status", "fields", "child")
				},
				MergeBeforeUpdate: func(current, desired untyped) { current.Object["data"] = desired.Object["data"] },
			},
			Config: reconcilers.NewConfig(mgr, nil, time.Hour),
		}
		return root.SetupWithManager(t.Context(), mgr)
	}
	prove(t, s)
}

// Errors that the next attempt does not repeat are not reported.
func TestSuppressTransientErrors(t *testing.T) {
	prove(t, under(t, func(env converge.Env) sub {
		return protected(&reconcilers.SuppressTransientErrors[*fixture.Resource, *fixture.ResourceList]{
			Reconciler: reconcilers.Sequence[*fixture.Resource]{newChild(generatedName), publishes(env, "thing")},
		})
	}))
}
