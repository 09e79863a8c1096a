// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const inventory = "fixture.trueup.dev/inventory"

// prunes is a root over a Prune over reconcilers.
func prunes(t *testing.T, allowStale bool, inner ...sub) func(mgr ctrl.Manager) error {
	return func(mgr ctrl.Manager) error {
		config := reconcilers.NewConfig(mgr, nil, time.Hour)
		config.AllowStaleReads = allowStale
		root := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Config: config,
			Reconciler: &reconcilers.Prune[*fixture.Resource]{
				Inventory: inventory, Reconciler: reconcilers.Sequence[*fixture.Resource](inner),
			},
		}
		return root.SetupWithManager(t.Context(), mgr)
	}
}

// renamedChild is a reconciler of a ConfigMap whose name is in the spec. It does not recognize it by another name.
func renamedChild() *child {
	c := newChild(fixedName)
	desired := c.DesiredChild
	c.DesiredChild = func(ctx context.Context, resource *fixture.Resource) (*corev1.ConfigMap, error) {
		child, err := desired(ctx, resource)
		if child != nil {
			child.Name = "child-" + resource.Spec.Fields["name"]
		}
		return child, err
	}
	return c
}

// secretChild is a Secret beside the ConfigMap. In another namespace, a finalizer protects it.
func secretChild(namespace string) sub {
	c := &reconcilers.ChildReconciler[*fixture.Resource, *corev1.Secret, *corev1.SecretList]{
		DesiredChild: func(_ context.Context, resource *fixture.Resource) (*corev1.Secret, error) {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "secret"},
				StringData: map[string]string{"value": resource.Spec.Fields["value"]},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.StringData = desired.StringData },
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *fixture.Resource, _ *corev1.Secret, err error,
		) error {
			return err
		},
	}
	if namespace != metav1.NamespaceDefault {
		c.Finalizer = finalizer
		c.OurChild = func(_ *fixture.Resource, child *corev1.Secret) bool { return child.Name == "secret" }
		c.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption {
			return []client.ListOption{client.InNamespace(namespace)}
		}
	}
	return c
}

// TestPrune_Renamed proves that a child is replaced by one with another name, and that the inventory is not an
// obstacle.
func TestPrune_Renamed(t *testing.T) {
	for name, allowStale := range map[string]bool{"guard": false, "stale reads": true} {
		t.Run(name, func(t *testing.T) {
			resource := newResource("one")
			setField("name", "x")(resource)
			prove(t, converge.Scenario{
				Scheme: scheme, For: &fixture.Resource{}, Setup: prunes(t, allowStale, renamedChild()),
				Steps: converge.Lifecycle(resource, setField("name", "y"), setField("value", "two"), setField("childless", "yes")),
			})
		})
	}
}

// TestPrune_Branch proves that the child on a branch exists while the branch is taken.
func TestPrune_Branch(t *testing.T) {
	for name, namespace := range map[string]string{"owned": metav1.NamespaceDefault, "finalizer": metav1.NamespaceSystem} {
		t.Run(name, func(t *testing.T) {
			prove(t, converge.Scenario{
				Scheme: scheme, For: &fixture.Resource{},
				Setup: prunes(t, false, newChild(fixedName), &reconcilers.IfThen[*fixture.Resource]{
					If: func(_ context.Context, resource *fixture.Resource) bool {
						return resource.Spec.Fields["value"] == "one"
					},
					Then: secretChild(namespace),
				}),
				Steps: converge.Lifecycle(newResource("one"), setField("value", "two"), setField("value", "one")),
			})
		})
	}
}

// TestPrune_Upgrade proves that a version without a reconciler deletes what the version before has created.
func TestPrune_Upgrade(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("tries thousands of schedules, without the race detector: with -short, TestPrune_Renamed remains")
	}
	for name, namespace := range map[string]string{"owned": metav1.NamespaceDefault, "finalizer": metav1.NamespaceSystem} {
		for guarded, allowStale := range map[string]bool{"guard": false, "stale reads": true} {
			t.Run(name+", "+guarded, func(t *testing.T) {
				t.Parallel()
				current := converge.Scenario{
					Scheme: scheme, For: &fixture.Resource{}, Setup: prunes(t, allowStale, newChild(fixedName)),
					Steps: converge.Lifecycle(newResource("one"), setField("value", "two")),
				}
				old := current
				old.Setup = prunes(t, allowStale, newChild(fixedName), secretChild(namespace))
				converge.Upgrade(t, old, current)
			})
		}
	}
}
