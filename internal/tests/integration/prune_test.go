// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const pruneInventory = "integration.trueup.dev/inventory"

// pruning is a controller with a Prune over reconcilers.
func pruning(inner ...reconcilers.SubReconciler[*fixture.Resource]) setup {
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		root := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Config: c,
			Reconciler: &reconcilers.Prune[*fixture.Resource]{
				Inventory: pruneInventory, Reconciler: reconcilers.Sequence[*fixture.Resource](inner),
			},
		}
		return root.SetupWithManager(ctx, mgr)
	}
}

// owned is a ConfigMap with the name of its parent.
func owned() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		OurChild: func(parent *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name == parent.Name },
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
			child := newConfigMap(parent.Name, parent.Spec.Fields)
			child.Namespace = parent.Namespace
			return child, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *fixture.Resource, _ *corev1.ConfigMap, err error,
		) error {
			return err
		},
	}
}

// secret is an owned Secret.
func secret() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *corev1.Secret, *corev1.SecretList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.Secret, error) {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name}}, nil
		},
		MergeBeforeUpdate: func(_, _ *corev1.Secret) {},
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *fixture.Resource, _ *corev1.Secret, err error,
		) error {
			return err
		},
	}
}

// A release without two reconcilers deletes what they have made, here and in another namespace, and nothing else.
func TestPrune_DroppedReconcilers(t *testing.T) {
	e := newEnv(t)
	set := &childSet{namespace: e.anotherNamespace()}
	parent := newResource("parent", map[string]string{"a": "1"})
	parent.Namespace = e.Namespace
	child := newConfigMap("parent", nil)
	child.Namespace = e.Namespace
	bystander := newConfigMap("bystander", nil)
	bystander.Namespace, bystander.Labels = set.namespace, map[string]string{pruneInventory: "another"}
	e.Add(bystander)

	stop := e.start(pruning(owned(), secret(), set.reconciler()))
	e.Add(parent)
	e.children(set, map[string]string{"a": "1"})
	until(e, parent, func(p *fixture.Resource) error {
		want := `{"kinds":["ConfigMap","Secret"],"namespaces":["` + set.namespace + `"],"finalizers":["` + setFinalizer + `"]}`
		return different("inventory", want, p.Annotations[pruneInventory])
	})
	until(e, child, func(cm *corev1.ConfigMap) error {
		return different("label", string(parent.UID), cm.Labels[pruneInventory])
	})
	until(e, &corev1.Secret{ObjectMeta: child.ObjectMeta}, func(*corev1.Secret) error { return nil })
	before := child.UID
	stop()

	e.start(pruning(owned()))
	e.children(set, map[string]string{})
	e.Eventually(func() error {
		secrets := &corev1.SecretList{}
		e.Must(e.List(e.Context(), secrets, client.InNamespace(e.Namespace), client.HasLabels{pruneInventory}))
		return different("number of Secrets", 0, len(secrets.Items))
	})
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(child), child))
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(bystander), bystander))
	if child.UID != before {
		t.Error("the child was created again")
	}
}

func different[V comparable](what string, want, got V) error {
	if want != got {
		return fmt.Errorf("%s is %v, want %v", what, got, want)
	}
	return nil
}
