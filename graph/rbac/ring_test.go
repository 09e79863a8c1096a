// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	"trueup.dev/reconcilers"
)

// ringGraph is a program with a kind that has two kinds of children, and with a resource that cannot be divided.
func ringGraph() *graph.Graph {
	return graph.Of(
		&reconcilers.ResourceReconciler[*resource]{
			SkipStatusUpdate: true, Config: inMemory(),
			Reconciler: reconcilers.Sequence[*resource]{
				&reconcilers.ChildReconciler[*resource, *corev1.Secret, *corev1.SecretList]{
					MergeBeforeUpdate: func(_, _ *corev1.Secret) {},
				},
				&reconcilers.ChildReconciler[*resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
					MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
				},
				&reconcilers.WithConfig[*resource]{
					Config: func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
					Reconciler: &reconcilers.ChildReconciler[*resource, *corev1.Pod, *corev1.PodList]{
						MergeBeforeUpdate: func(_, _ *corev1.Pod) {},
					},
				},
			},
		},
		&reconcilers.AggregateReconciler[*corev1.Namespace]{
			Config: inMemory(), MergeBeforeUpdate: func(_, _ *corev1.Namespace) {},
		},
	)
}

func ExampleNewControllerRing() {
	ring, err := rbac.NewControllerRing("resources", ringGraph(), rbac.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	manifest, _ := yaml.Marshal(ring)
	fmt.Print(string(manifest))
	// Output:
	// apiVersion: sharding.timebertt.dev/v1alpha1
	// kind: ControllerRing
	// metadata:
	//   name: resources
	// spec:
	//   resources:
	//   - controlledResources:
	//     - resource: configmaps
	//     - resource: secrets
	//     group: fixture.trueup.dev
	//     resource: resources
}

func TestDeclared_Shards(t *testing.T) {
	without, err := rbac.Declared(ringGraph(), rbac.Options{})
	if err != nil {
		t.Fatal(err)
	}
	with, err := rbac.Declared(ringGraph(), rbac.Options{Shards: true})
	if err != nil {
		t.Fatal(err)
	}
	for p := range without {
		delete(with, p)
	}
	const leases = "coordination.k8s.io"
	want := rbac.Of(
		rbac.Permission{Group: leases, Resource: "leases", Verb: "get"},
		rbac.Permission{Group: leases, Resource: "leases", Verb: "create"},
		rbac.Permission{Group: leases, Resource: "leases", Verb: "update"},
		rbac.Permission{Group: "fixture.trueup.dev", Resource: "resources", Verb: "patch"},
	)
	if diff := cmp.Diff(want, with); diff != "" {
		t.Errorf("permissions that Shards adds (-want +got):\n%s", diff)
	}
}

func TestControllerRing_SharderRole(t *testing.T) {
	ring, err := rbac.NewControllerRing("resources", ringGraph(), rbac.Options{})
	if err != nil {
		t.Fatal(err)
	}
	role := ring.SharderRole()
	want := `- apiGroups:
  - ""
  resources:
  - configmaps
  - secrets
  verbs:
  - list
  - patch
- apiGroups:
  - fixture.trueup.dev
  resources:
  - resources
  verbs:
  - list
  - patch
`
	rules, err := yaml.Marshal(role.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(rules)); diff != "" {
		t.Errorf("rules of the sharder (-want +got):\n%s", diff)
	}
}
