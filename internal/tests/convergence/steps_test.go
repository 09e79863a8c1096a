// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// inOrder is an object manager of Deployments. It fails the test if it deletes the child of a resource that is being
// deleted while the Deployments that depend on the child exist.
type inOrder struct {
	reconcilers.ObjectManager[*appsv1.Deployment]
	t        *testing.T
	neededBy string
}

func (m *inOrder) Manage(
	ctx context.Context, resource client.Object, actual, desired *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	exists := actual != nil && actual.UID != "" && actual.DeletionTimestamp == nil
	if m.neededBy != "" && exists && desired == nil && resource.GetDeletionTimestamp() != nil {
		key := client.ObjectKey{Namespace: resource.GetNamespace(), Name: m.neededBy}
		err := reconcilers.RetrieveConfigOrDie(ctx).APIReader.Get(ctx, key, &appsv1.Deployment{})
		if err == nil {
			m.t.Errorf("Deployment %q is deleted before %q", actual.Name, m.neededBy)
		}
	}
	return m.ObjectManager.Manage(ctx, resource, actual, desired)
}

// deploymentStep returns a step with a Deployment of its name, unless the resource has the name in the field "without".
func deploymentStep(t *testing.T, name, dependsOn, neededBy string) reconcilers.Step[*fixture.Resource] {
	labels := map[string]string{"app": name}
	step := reconcilers.Step[*fixture.Resource]{
		Name: name,
		Wanted: func(_ context.Context, resource *fixture.Resource) bool {
			return !strings.Contains(resource.Spec.Fields["without"], name)
		},
		Reconciler: &reconcilers.ChildReconciler[*fixture.Resource, *appsv1.Deployment, *appsv1.DeploymentList]{
			Name:     name,
			OurChild: func(_ *fixture.Resource, child *appsv1.Deployment) bool { return child.Name == name },
			DesiredChild: func(_ context.Context, resource *fixture.Resource) (*appsv1.Deployment, error) {
				return &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: name},
					Spec: appsv1.DeploymentSpec{
						Selector: &metav1.LabelSelector{MatchLabels: labels},
						Template: corev1.PodTemplateSpec{
							ObjectMeta: metav1.ObjectMeta{Labels: labels},
							Spec: corev1.PodSpec{
								Containers: []corev1.Container{{Name: "main", Image: resource.Spec.Fields["value"]}},
							},
						},
					},
				}, nil
			},
			ChildObjectManager: &inOrder{
				t: t, neededBy: neededBy,
				ObjectManager: &reconcilers.UpdatingObjectManager[*appsv1.Deployment]{
					MergeBeforeUpdate: func(current, desired *appsv1.Deployment) { current.Spec.Template = desired.Spec.Template },
				},
			},
			ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *appsv1.Deployment, _ error) {
				report(parent, name, "")
				if child != nil {
					report(parent, name, child.Spec.Template.Spec.Containers[0].Image)
				}
			},
		},
	}
	if dependsOn != "" {
		step.DependsOn = []string{dependsOn}
	}
	return step
}

// Three Deployments become ready over time, are updated in order, and are removed in the reverse order.
func TestSteps(t *testing.T) {
	for name, allowStale := range map[string]bool{"guard": false, "stale reads": true} {
		t.Run(name, func(t *testing.T) {
			s := under(t, nil)
			s.Setup = func(mgr ctrl.Manager) error {
				config := reconcilers.NewConfig(mgr, nil, time.Hour)
				config.AllowStaleReads = allowStale
				root := &reconcilers.ResourceReconciler[*fixture.Resource]{
					Config: config,
					Reconciler: &reconcilers.Steps[*fixture.Resource]{
						Finalizer: finalizer,
						Steps: []reconcilers.Step[*fixture.Resource]{
							deploymentStep(t, "web", "app", ""), deploymentStep(t, "app", "db", "web"), deploymentStep(t, "db", "", "app"),
						},
					},
				}
				return root.SetupWithManager(t.Context(), mgr)
			}
			s.World = []converge.Actor{converge.Deployments(converge.BecomeReady)}
			s.Steps = converge.Lifecycle(
				newResource("one"), setField("value", "two"), setField("without", "app web"), setField("without", ""),
			)
			prove(t, s)
		})
	}
}
