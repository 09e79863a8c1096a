// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"trueup.dev/apis"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/readiness"
	"trueup.dev/readiness/cel"
	"trueup.dev/reconcilers"
)

// region readiness-reflect
func ReflectRollout(ctx context.Context, site *websitev1.Website, child *appsv1.Deployment) {
	conditions := site.Status.ConditionManager(ctx)
	switch rollout := readiness.Of(child); rollout.State {
	case readiness.Ready:
		conditions.MarkTrue(websitev1.ConditionDeploymentReady, rollout.Reason, "%s", rollout.Message)
	case readiness.Failed: // for example ProgressDeadlineExceeded
		conditions.MarkFalse(websitev1.ConditionDeploymentReady, rollout.Reason, "%s", rollout.Message)
	default: // 2 of 3 replicas are available
		conditions.MarkUnknown(websitev1.ConditionDeploymentReady, rollout.Reason, "%s", rollout.Message)
	}
}

// endregion

// region readiness-cel
var backupStored = &cel.Rule{
	Ready:   `object.status.phase == "Stored"`,
	Failed:  `object.status.phase in ["Failed", "Lost"]`,
	Message: `"phase is " + object.status.phase`,
}

// endregion

// region readiness-steps
// StackReconciler starts the web servers when the cache is ready, and deletes them before the cache.
func StackReconciler(
	cache, servers reconcilers.SubReconciler[*websitev1.Website],
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.Steps[*websitev1.Website]{
		Finalizer: "websites.example.com/stack",
		Condition: websitev1.ConditionDeploymentReady,
		Conditions: func(ctx context.Context, site *websitev1.Website) apis.ConditionManager {
			return site.Status.ConditionManager(ctx)
		},
		Steps: []reconcilers.Step[*websitev1.Website]{
			{Name: "servers", DependsOn: []string{"cache"}, Reconciler: servers, ProgressDeadline: 10 * time.Minute},
			{
				Name: "cache", Reconciler: cache,
				Wanted: func(_ context.Context, site *websitev1.Website) bool { return len(site.Spec.Pages) > 1 },
			},
		},
	}
}

// endregion

func Example_steps() {
	site := newSite()
	site.Finalizers = []string{"websites.example.com/stack"}
	site.Spec.Pages = append(site.Spec.Pages, site.Spec.Pages...)
	cache := &reconcilers.ChildReconciler[*websitev1.Website, *appsv1.Deployment, *appsv1.DeploymentList]{
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*appsv1.Deployment, error) {
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: "cache"}}, nil
		},
		MergeBeforeUpdate: func(_, _ *appsv1.Deployment) {},
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *websitev1.Website, _ *appsv1.Deployment, err error,
		) error {
			return err
		},
	}
	servers := &reconcilers.SyncReconciler[*websitev1.Website]{
		Sync: func(context.Context, *websitev1.Website) error {
			fmt.Println("servers")
			return nil
		},
	}
	shows := &reconcilers.SyncReconciler[*websitev1.Website]{
		Sync: func(_ context.Context, site *websitev1.Website) error {
			condition := site.Status.GetCondition(websitev1.ConditionDeploymentReady)
			message, since, _ := strings.Cut(condition.Message, ", since ")
			_, err := time.Parse(time.RFC3339, since)
			fmt.Println(condition.Status, condition.Reason, message)
			return err
		},
	}
	reconcileOnce(newCluster(site), reconcilers.Sequence[*websitev1.Website]{StackReconciler(cache, servers), shows})
	// Output:
	// event: Normal Created: Created Deployment "cache"
	// Unknown WaitingForStep step cache: Deployment default/cache: 0 of 1 replicas are updated
}

func Example_readiness() {
	site := newSite()
	ReflectRollout(context.Background(), site, &appsv1.Deployment{})
	condition := site.Status.GetCondition(websitev1.ConditionDeploymentReady)
	fmt.Println(condition.Status, condition.Reason, condition.Message)

	backup := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Lost"}}}
	fmt.Println(backupStored.Validate(context.Background()), backupStored.Of(backup))
	// Output:
	// Unknown Updating 0 of 1 replicas are updated
	// <nil> Failed: phase is Lost
}
