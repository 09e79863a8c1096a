// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// newDeployment returns a Deployment of one replica, whose pods are ready after runPods.
func newDeployment(namespace, name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:     []corev1.Container{{Name: "main", Image: image}},
					ReadinessGates: []corev1.PodReadinessGate{{ConditionType: readinessGate}},
				},
			},
		},
	}
}

// deploymentStep returns a step with a Deployment of its name.
func deploymentStep(name string, dependsOn ...string) reconcilers.Step[*fixture.Resource] {
	return reconcilers.Step[*fixture.Resource]{
		Name: name, DependsOn: dependsOn,
		Reconciler: &reconcilers.ChildReconciler[*fixture.Resource, *appsv1.Deployment, *appsv1.DeploymentList]{
			Name:     name,
			OurChild: func(_ *fixture.Resource, child *appsv1.Deployment) bool { return child.Name == name },
			DesiredChild: func(_ context.Context, resource *fixture.Resource) (*appsv1.Deployment, error) {
				return newDeployment(resource.Namespace, name, resource.Spec.Fields["image"]), nil
			},
			MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
				current.Spec.Template.Spec.Containers[0].Image = desired.Spec.Template.Spec.Containers[0].Image
			},
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *appsv1.Deployment, error) {},
		},
	}
}

// The controllers of Kubernetes report the progress of Deployments. Their events start the next step, and the deletion
// of one Deployment the deletion of the next one.
func TestSteps(t *testing.T) {
	e := newEnv(t)
	e.start(root(&reconcilers.Steps[*fixture.Resource]{
		Finalizer: finalizer,
		Steps:     []reconcilers.Step[*fixture.Resource]{deploymentStep("web", "db"), deploymentStep("db")},
	}))
	resource := newResource("it", map[string]string{"image": "one"})
	untilReady := func(want string) {
		t.Helper()
		until(e, resource, func(r *fixture.Resource) error {
			c := r.Status.GetCondition(apis.ConditionReady)
			if c == nil || !strings.HasPrefix(string(c.Status)+": "+c.Message, want) {
				return fmt.Errorf("condition Ready is %v, want %s", c, want)
			}
			return nil
		})
	}
	deployments := func(want ...string) {
		t.Helper()
		list := &appsv1.DeploymentList{}
		e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace)))
		got := []string{}
		for _, d := range list.Items {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Deployments: want %v, got %v", want, got)
		}
	}
	e.Add(resource)
	waits := func(name string) string {
		return fmt.Sprintf(
			"Unknown: step %s: Deployment %s/%s: 0 of 1 replicas are available, since ", name, e.Namespace, name,
		)
	}
	untilReady(waits("db"))
	deployments("db")
	runPods(e, map[string]string{"app": "db"})
	untilReady(waits("web"))
	runPods(e, map[string]string{"app": "web"})
	untilReady("True: ")

	change(e, resource, func(r *fixture.Resource) { r.Spec.Fields["image"] = "two" })
	untilReady(fmt.Sprintf("Unknown: step db: Deployment %s/db: 1 old replicas are still running", e.Namespace))
	web := newDeployment(e.Namespace, "web", "")
	e.Must(e.Read(web))
	if image := web.Spec.Template.Spec.Containers[0].Image; image != "one" {
		t.Errorf("web is updated to %s before db", image)
	}

	change(e, web, func(d *appsv1.Deployment) { d.Finalizers = []string{finalizer} })
	e.Must(e.Delete(e.Context(), resource))
	until(e, web, func(d *appsv1.Deployment) error {
		if d.DeletionTimestamp == nil {
			return fmt.Errorf("web is not being deleted")
		}
		return nil
	})
	deployments("db", "web")
	change(e, web, func(d *appsv1.Deployment) { d.Finalizers = nil })
	e.WaitForDeletion(resource)
	deployments()
}
