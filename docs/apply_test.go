// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// region apply-child
func AppliedDeployment() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *appsv1.Deployment, *appsv1.DeploymentList]{
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*appsv1.Deployment, error) {
			labels := map[string]string{websitev1.LabelWebsite: site.Name}
			return &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name},
				Spec: appsv1.DeploymentSpec{
					Replicas: site.Spec.Replicas,
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: site.Spec.Image}}},
					},
				},
			}, nil
		},
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*appsv1.Deployment]{
			FieldOwner: "website-controller",
			// A HorizontalPodAutoscaler may own the number of replicas.
			ConflictsAt: map[string]reconcilers.ConflictPolicy{"spec.replicas": reconcilers.GiveWayOnConflict},
		},
		ReflectChildStatusOnParent: func(_ context.Context, site *websitev1.Website, child *appsv1.Deployment, err error) {
			if err == nil && child != nil {
				site.Status.ReadyReplicas = child.Status.ReadyReplicas
			}
		},
	}
}

// endregion

// region apply-former
var moved = &reconcilers.ApplyingObjectManager[*appsv1.Deployment]{
	FieldOwner:   "website-controller",
	FormerOwners: []string{"manager"}, // managedFields[*].manager of existing objects
}

// endregion

var _ = moved

// appliedCase returns a given object and the expected applies of a case.
func appliedCase(desired *appsv1.Deployment, scheme *runtime.Scheme) (*appsv1.Deployment, []rtesting.ApplyRef) {
	// region apply-test
	stored := rtesting.AppliedBy("website-controller", desired, scheme)
	expected := []rtesting.ApplyRef{rtesting.NewApplyRefFromObject(desired, scheme)}
	// endregion
	return stored, expected
}

var _ = appliedCase
