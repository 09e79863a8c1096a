// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/manifest"
	"trueup.dev/readiness"
	"trueup.dev/reconcilers"
)

// DeploymentReconciler manages the web servers.
func DeploymentReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *appsv1.Deployment, *appsv1.DeploymentList]{
		Name: "Deployment",
		DesiredChild: func(ctx context.Context, site *websitev1.Website) (*appsv1.Deployment, error) {
			return manifest.Deployment(site, filesStash.RetrieveOrDie(ctx)), nil
		},
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
			// kubectl rollout restart works through an annotation here: it stays.
			annotations := reconcilers.MergeMaps(current.Spec.Template.Annotations, desired.Spec.Template.Annotations)
			current.Spec.Replicas, current.Spec.Template = desired.Spec.Replicas, desired.Spec.Template
			current.Spec.Template.Annotations = annotations
		},
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, child *appsv1.Deployment, err error) {
			if err != nil {
				markChildError(ctx, site, websitev1.ConditionDeploymentReady, err)
				return
			}
			site.Status.ReadyReplicas = child.Status.ReadyReplicas
			reflectRollout(ctx, site, child)
		},
	}
}

func reflectRollout(ctx context.Context, site *websitev1.Website, child *appsv1.Deployment) {
	conditions := site.Status.ConditionManager(ctx)
	switch rollout := readiness.Of(child); rollout.State {
	case readiness.Ready:
		conditions.MarkTrue(websitev1.ConditionDeploymentReady, "RolledOut", "")
	case readiness.Failed:
		conditions.MarkFalse(websitev1.ConditionDeploymentReady, rollout.Reason, "%s", rollout.Message)
	default:
		conditions.MarkUnknown(
			websitev1.ConditionDeploymentReady, "RollingOut", "waiting for web servers with the current content",
		)
	}
}
