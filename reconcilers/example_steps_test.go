// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/readiness"
	"trueup.dev/reconcilers"
)

// database returns a reconciler of a Deployment.
func database() reconcilers.SubReconciler[*v1.Resource] {
	return &reconcilers.ChildReconciler[*v1.Resource, *appsv1.Deployment, *appsv1.DeploymentList]{
		DesiredChild: func(_ context.Context, r *v1.Resource) (*appsv1.Deployment, error) {
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "db"}}, nil
		},
		MergeBeforeUpdate: func(_, _ *appsv1.Deployment) {},
		ReflectChildStatusOnParentWithError: func(_ context.Context, _ *v1.Resource, _ *appsv1.Deployment, err error) error {
			return err
		},
	}
}

func ExampleSteps() {
	steps := &reconcilers.Steps[*v1.Resource]{Steps: []reconcilers.Step[*v1.Resource]{
		{Name: "db", Reconciler: database()},
		{Name: "restore", DependsOn: []string{"db"}, Reconciler: do("restore the backup", nil)},
		{Name: "network", Reconciler: do("configure the network", nil)},
	}}
	reconcile(clusterWith(site()), reconcilers.Sequence[*v1.Resource]{
		steps,
		&reconcilers.SyncReconciler[*v1.Resource]{Sync: func(_ context.Context, r *v1.Resource) error {
			condition := r.Status.GetCondition("Ready")
			message, _, _ := strings.Cut(condition.Message, ", since ") // the time follows
			fmt.Println(condition.Status, condition.Reason, message)
			return nil
		}},
	})
	// Output:
	// event: Normal Created: Created Deployment "db"
	// configure the network
	// Unknown WaitingForStep step db: Deployment default/db: 0 of 1 replicas are updated
}

func ExampleStep() {
	step := reconcilers.Step[*v1.Resource]{
		Name: "restore", DependsOn: []string{"db"}, Reconciler: do("restore the backup", nil),
		Wanted: func(_ context.Context, r *v1.Resource) bool { return r.Spec.Fields["backup"] != "" },
		Ready:  readiness.Exists,
	}
	steps := &reconcilers.Steps[*v1.Resource]{Steps: []reconcilers.Step[*v1.Resource]{step}}
	fmt.Println(steps.Validate(context.Background()))
	// Output:
	// Steps "Steps" must define all steps: step "restore" depends on "db", which is not defined
}

func ExampleMustRemove() {
	resource := site()
	fmt.Println(reconcilers.MustRemove(context.Background(), resource))
	resource.DeletionTimestamp = &metav1.Time{}
	fmt.Println(reconcilers.MustRemove(context.Background(), resource))
	// Output:
	// false
	// true
}
