// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// service is an owned Service with the name of its parent. Kubernetes gives its labels to its Endpoints.
func service() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *corev1.Service, *corev1.ServiceList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.Service, error) {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
				Spec: corev1.ServiceSpec{
					Selector: map[string]string{"app": parent.Name}, Ports: []corev1.ServicePort{{Port: 80}},
				},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Service) { current.Labels = desired.Labels },
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *fixture.Resource, _ *corev1.Service, err error,
		) error {
			return err
		},
	}
}

// Endpoints are deprecated, but Kubernetes still makes them with the labels of a Service.
type (
	oldEndpoints     = corev1.Endpoints     //nolint:staticcheck // still used
	oldEndpointsList = corev1.EndpointsList //nolint:staticcheck // still used
)

// endpoints are owned Endpoints for an address outside of the cluster. They make Endpoints a kind of the inventory.
func endpoints() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *oldEndpoints, *oldEndpointsList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*oldEndpoints, error) {
			return &oldEndpoints{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-external"},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *oldEndpoints) {
			current.Labels = desired.Labels
		},
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *fixture.Resource, _ *oldEndpoints, err error,
		) error {
			return err
		},
	}
}

// warned waits until a Warning event of an object contains all texts.
func (e *env) warned(name, reason string, texts ...string) {
	e.Helper()
	e.Eventually(func() error {
		var list corev1.EventList
		if err := e.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		seen := []string{}
	events:
		for _, event := range list.Items {
			if event.InvolvedObject.Name != name || event.Reason != reason {
				continue
			}
			seen = append(seen, event.Message)
			for _, text := range texts {
				if !strings.Contains(event.Message, text) {
					continue events
				}
			}
			return nil
		}
		return fmt.Errorf("no event %s of %s contains %q: %q", reason, name, texts, seen)
	})
}

// What others have copied from children is neither deleted nor fought for: a replica in another namespace, the backup
// of a user, and the Endpoints that Kubernetes makes with the labels of a Service.
func TestPrune_Copies(t *testing.T) {
	e := newEnv(t)
	other := e.anotherNamespace()
	e.start(pruning(owned(), service(), endpoints()))
	parent := newResource("parent", map[string]string{"a": "1"})
	e.Add(parent)
	labeled := func(obj client.Object) error {
		return different("label", string(parent.UID), obj.GetLabels()[pruneInventory])
	}
	child := newConfigMap("parent", nil)
	until(e, child, func(cm *corev1.ConfigMap) error { return labeled(cm) })
	made := &oldEndpoints{ObjectMeta: metav1.ObjectMeta{Name: "parent"}}
	until(e, made, func(made *oldEndpoints) error { return labeled(made) })

	replica, backup := newConfigMap("parent", map[string]string{"is": "a replica"}), newConfigMap("parent-backup", nil)
	replica.Namespace = other
	replica.Labels, replica.Annotations = child.Labels, child.Annotations
	backup.Labels, backup.Annotations, backup.OwnerReferences = child.Labels, child.Annotations, child.OwnerReferences
	e.Add(replica, backup)
	kept := map[client.Object]types.UID{replica: replica.UID, backup: backup.UID, made: made.UID}

	e.touch(parent)
	e.warned("parent", "PruneKept", "ConfigMap parent-backup", "Endpoints parent")
	// A child that is no longer declared shows that a later request has pruned.
	former := newConfigMap("former", nil)
	former.Labels, former.OwnerReferences = child.Labels, child.OwnerReferences
	former.Annotations = map[string]string{
		pruneInventory: strings.Replace(child.Annotations[pruneInventory], "/parent/", "/former/", 1),
	}
	e.Add(former)
	e.WaitForDeletion(former)
	for obj, uid := range kept {
		e.Must(e.Read(obj))
		equal(t, fmt.Sprintf("UID of %T %s", obj, obj.GetName()), uid, obj.GetUID())
	}
	equal(t, "writes to Endpoints", "[POST]", fmt.Sprint(e.traffic.of("endpoints")))
}

// generatedName is an owned ConfigMap with a generated name.
func generatedName() reconcilers.SubReconciler[*fixture.Resource] {
	child := owned().(*reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList])
	child.OurChild = func(parent *fixture.Resource, child *corev1.ConfigMap) bool {
		return strings.HasPrefix(child.Name, parent.Name+"-")
	}
	child.DesiredChild = func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, GenerateName: parent.Name + "-"},
		}, nil
	}
	return child
}

// formerly is a setup whose controllers know a former field owner.
func formerly(owner string, s setup) setup {
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		return s(ctx, mgr, c.WithFormerFieldOwners(owner))
	}
}

// A child with a generated name is pruned, and a copy whose name has the same prefix is kept.
func TestPrune_GeneratedName(t *testing.T) {
	e := newEnv(t)
	stop := e.start(pruning(generatedName()))
	parent := newResource("parent", nil)
	e.Add(parent)
	var child corev1.ConfigMap
	e.Eventually(func() error {
		list := &corev1.ConfigMapList{}
		e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace), client.HasLabels{pruneInventory}))
		if len(list.Items) != 1 {
			return fmt.Errorf("%d children", len(list.Items))
		}
		child = list.Items[0]
		return nil
	})
	until(e, parent, func(p *fixture.Resource) error {
		return different("inventory", `{"kinds":["ConfigMap"]}`, p.Annotations[pruneInventory])
	})
	stop()
	equal(t, "writes of the child", "[POST]", fmt.Sprint(e.traffic.of("configmaps")))

	backup := newConfigMap("parent-copy1", nil)
	backup.GenerateName, backup.Labels, backup.Annotations = child.GenerateName, child.Labels, child.Annotations
	backup.OwnerReferences = child.OwnerReferences
	e.Must(func() error {
		backup.Namespace = e.Namespace
		return e.Create(e.Context(), backup, client.FieldOwner("kubectl-create"))
	}())
	e.start(formerly(child.ManagedFields[0].Manager, pruning(secret())))
	e.WaitForDeletion(&child)
	e.warned("parent", "PruneKept", "ConfigMap parent-copy1")
	e.Must(e.Read(backup))
}

// Children that a version without marks has written are pruned: those that the resource controls, and those whose
// label this controller has set.
func TestPrune_WithoutMarks(t *testing.T) {
	e := newEnv(t)
	set := &childSet{namespace: e.anotherNamespace()}
	stop := e.start(pruning(owned(), secret(), set.reconciler()))
	parent := newResource("parent", map[string]string{"a": "1"})
	e.Add(parent)
	e.children(set, map[string]string{"a": "1"})
	unmarked := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "parent"}}
	until(e, unmarked, func(*corev1.Secret) error { return nil })
	e.Eventually(func() error { return different("passes", true, set.passes.Load() > 0) })
	stop()
	member := newConfigMap("parent-a", nil)
	member.Namespace = set.namespace
	for _, obj := range []client.Object{unmarked, member} {
		e.Must(e.Read(obj))
		e.Must(e.Patch(e.Context(), obj, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+pruneInventory+`":null}}}`))))
	}
	backup := newConfigMap("parent-backup", nil)
	backup.Namespace, backup.Labels = set.namespace, member.Labels
	e.Must(e.Create(e.Context(), backup, client.FieldOwner("kubectl-create")))
	manager := member.ManagedFields[0].Manager
	if manager == "" {
		t.Fatal("no managed fields")
	}

	e.start(formerly(manager, pruning(owned())))
	e.WaitForDeletion(unmarked)
	e.WaitForDeletion(member)
	e.warned("parent", "PruneKept", "ConfigMap "+set.namespace+"/parent-backup")
	e.Must(e.Read(backup))
}

// With kubectl delete --cascade=orphan, the garbage collector removes the references of children. They are not pruned.
func TestPrune_CascadeOrphan(t *testing.T) {
	e := newEnv(t)
	set := &childSet{namespace: e.anotherNamespace()}
	stop := e.start(pruning(owned(), set.reconciler()))
	parent := newResource("parent", map[string]string{"a": "1"})
	e.Add(parent)
	e.children(set, map[string]string{"a": "1"})
	child := newConfigMap("parent", nil)
	until(e, child, func(*corev1.ConfigMap) error { return nil })
	until(e, parent, func(p *fixture.Resource) error {
		return different("recorded", true, strings.Contains(p.Annotations[pruneInventory], set.namespace))
	})
	stop()

	e.Must(e.Delete(e.Context(), parent, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	until(e, child, func(cm *corev1.ConfigMap) error { return different("owners", 0, len(cm.OwnerReferences)) })
	e.start(pruning(set.reconciler()))
	e.WaitForDeletion(parent)
	e.children(set, map[string]string{})
	e.Must(e.Read(child))
	if child.DeletionTimestamp != nil {
		t.Error("the child is being deleted")
	}
}

// An annotation that was changed by hand blocks neither a reconcile nor a deletion.
func TestPrune_BrokenInventory(t *testing.T) {
	e := newEnv(t)
	set := &childSet{namespace: e.anotherNamespace()}
	stop := e.start(pruning(owned(), set.reconciler()))
	parent := newResource("parent", map[string]string{"a": "1"})
	e.Add(parent)
	want := `{"kinds":["ConfigMap"],"namespaces":["` + set.namespace + `"],"finalizers":["` + setFinalizer + `"]}`
	recorded := func(p *fixture.Resource) error { return different("inventory", want, p.Annotations[pruneInventory]) }
	until(e, parent, recorded)
	e.children(set, map[string]string{"a": "1"})

	breakIt := func(p *fixture.Resource) { p.Annotations[pruneInventory] = "kinds: ConfigMap" }
	change(e, parent, breakIt)
	until(e, parent, recorded)
	e.events("parent", "InventoryBroken")
	change(e, parent, func(p *fixture.Resource) { p.Spec.Fields["a"] = "2" })
	e.children(set, map[string]string{"a": "2"})

	stop()
	change(e, parent, breakIt)
	e.Must(e.Delete(e.Context(), parent))
	e.start(pruning(owned(), set.reconciler()))
	e.WaitForDeletion(parent)
	e.children(set, map[string]string{})
	e.Eventually(func() error {
		if err := e.Read(newConfigMap("parent", nil)); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.New("the child still exists")
		}
		return nil
	})
}
