// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/readiness"
	"trueup.dev/readiness/cel"
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
