// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const (
	setFinalizer  = "integration.trueup.dev/set"
	holdFinalizer = "integration.trueup.dev/hold"
	idLabel       = "integration.trueup.dev/id"
	parentLabel   = "integration.trueup.dev/parent"
)

// childSet is a set of ConfigMaps in another namespace than their parent, one for each of its fields.
type childSet struct {
	namespace string
	passes    atomic.Int64
	known     atomic.Int64 // in the last reconcile
}

func (s *childSet) reconciler() reconcilers.SubReconciler[*fixture.Resource] {
	ours := func(parent *fixture.Resource) map[string]string {
		return map[string]string{parentLabel: parent.Name}
	}
	return &reconcilers.ChildSetReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Finalizer: setFinalizer,
		ListOptions: func(_ context.Context, parent *fixture.Resource) []client.ListOption {
			return []client.ListOption{client.InNamespace(s.namespace), client.MatchingLabels(ours(parent))}
		},
		OurChild: func(parent *fixture.Resource, child *corev1.ConfigMap) bool {
			return child.Labels[parentLabel] == ours(parent)[parentLabel]
		},
		IdentifyChild: func(child *corev1.ConfigMap) string { return child.Labels[idLabel] },
		DesiredChildren: func(_ context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
			children := []*corev1.ConfigMap{}
			for id, value := range parent.Spec.Fields {
				if id == fixture.DefaulterField {
					continue
				}
				child := newConfigMap(parent.Name+"-"+id, map[string]string{"value": value})
				child.Namespace = s.namespace
				child.Labels = reconcilers.MergeMaps(ours(parent), map[string]string{idLabel: id})
				children = append(children, child)
			}
			return children, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels, current.Data = desired.Labels, desired.Data
		},
		ReflectChildrenStatusOnParent: func(
			ctx context.Context, parent *fixture.Resource, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
			parent.Status.Fields = nil
			for _, child := range result.Children {
				if child.Child != nil {
					parent.Status.Fields = reconcilers.MergeMaps(parent.Status.Fields, map[string]string{
						child.Id: child.Child.Data["value"],
					})
				}
			}
			s.known.Store(int64(len(reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx))))
			s.passes.Add(1)
		},
	}
}

// children waits until the children of a parent match want, by id.
func (e *env) children(s *childSet, want map[string]string) {
	e.Helper()
	e.Eventually(func() error {
		var list corev1.ConfigMapList
		if err := e.List(e.Context(), &list, client.InNamespace(s.namespace), client.HasLabels{parentLabel}); err != nil {
			return err
		}
		got := map[string]string{}
		for _, child := range list.Items {
			got[child.Labels[idLabel]] = child.Data["value"]
			if len(child.OwnerReferences) != 0 {
				e.Errorf("%s has owners, which cannot be in another namespace: %v", child.Name, child.OwnerReferences)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("children (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestChildSet_inAnotherNamespace(t *testing.T) {
	e := newEnv(t)
	set := &childSet{namespace: e.anotherNamespace()}
	parent := newResource("parent", map[string]string{"a": "1", "b": "2"})
	e.Add(parent)
	e.start(root(set.reconciler()))
	e.children(set, map[string]string{"a": "1", "b": "2"})

	change(e, parent, func(r *fixture.Resource) { r.Spec.Fields = map[string]string{"b": "3", "c": "4"} })
	e.children(set, map[string]string{"b": "3", "c": "4"})
	until(e, parent, func(r *fixture.Resource) error {
		if diff := cmp.Diff(map[string]string{"b": "3", "c": "4"}, r.Status.Fields); diff != "" {
			return fmt.Errorf("status (-want +got):\n%s", diff)
		}
		return nil
	})

	// The child has no owner reference that leads to its parent.
	child := newConfigMap("parent-b", nil)
	child.Namespace = set.namespace
	change(e, child, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"value": "by hand"} })
	e.children(set, map[string]string{"b": "3", "c": "4"})
	e.Must(e.Delete(t.Context(), child))
	e.children(set, map[string]string{"b": "3", "c": "4"})
	e.events("parent", "FinalizerPatched", "Created", "Updated", "Deleted")
}

func TestChildSet_keepsItsFinalizerUntilTheLastChildIsDeleted(t *testing.T) {
	e := newEnv(t)
	set := &childSet{namespace: e.anotherNamespace()}
	parent := newResource("parent", map[string]string{"a": "1", "b": "2"})
	e.Add(parent)
	e.start(root(set.reconciler()))
	e.children(set, map[string]string{"a": "1", "b": "2"})
	held := newConfigMap("parent-b", nil)
	held.Namespace = set.namespace
	change(e, held, func(cm *corev1.ConfigMap) { cm.Finalizers = []string{holdFinalizer} })

	e.Must(e.Delete(t.Context(), parent))
	e.children(set, map[string]string{"b": "2"})
	// The reconcile that saw one child left is complete when the next one has started.
	e.Eventually(func() error {
		if known := set.known.Load(); known != 1 {
			return fmt.Errorf("the last reconcile saw %d children", known)
		}
		return nil
	})
	passes := set.passes.Load()
	e.touch(held)
	e.Eventually(func() error {
		if set.passes.Load() == passes {
			return fmt.Errorf("the parent was not reconciled for a change of a child that is being deleted")
		}
		return nil
	})
	e.Must(e.Read(parent))
	if diff := cmp.Diff([]string{setFinalizer}, parent.Finalizers); diff != "" {
		t.Errorf("finalizers while a child exists (-want +got):\n%s", diff)
	}

	change(e, held, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	e.WaitForDeletion(parent)
	e.children(set, map[string]string{})
}

// A child that a manager creates just before it stops, and that is not in the cache of the next manager, is deleted
// too.
func TestChildSet_cleansUpAfterARestart(t *testing.T) {
	e := newEnv(t)
	set := &childSet{namespace: e.anotherNamespace()}
	parent := newResource("parent", map[string]string{"a": "1"})
	e.Add(parent)
	stop := e.start(root(set.reconciler()))
	e.children(set, map[string]string{"a": "1"})
	stop()
	e.Must(e.Delete(t.Context(), parent))
	e.Must(e.Read(parent))
	e.start(root(set.reconciler()))
	e.WaitForDeletion(parent)
	e.children(set, map[string]string{})
}
