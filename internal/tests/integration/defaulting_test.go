// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// deployment is a child whose desired spec replaces the whole spec, without the dozen fields that the API server
// defaults.
func deployment(passes *atomic.Int64) reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *appsv1.Deployment, *appsv1.DeploymentList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*appsv1.Deployment, error) {
			labels := map[string]string{"app": parent.Name}
			return &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name, Labels: labels},
				Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec: corev1.PodSpec{Containers: []corev1.Container{{
							Name: "web", Image: parent.Spec.Fields["image"], Ports: []corev1.ContainerPort{{ContainerPort: 80}},
						}}},
					},
				},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Labels, current.Spec = desired.Labels, desired.Spec
		},
		ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *appsv1.Deployment, err error) {
			parent.Status.Fields = map[string]string{"ready": "no"}
			if err == nil && child.Status.ReadyReplicas == 1 && child.Status.ObservedGeneration == child.Generation {
				parent.Status.Fields["ready"] = "yes"
			}
			passes.Add(1)
		},
	}
}

func TestServerDefaultsAreNotDrift(t *testing.T) {
	e := newEnv(t)
	var passes atomic.Int64
	ready := func(r *fixture.Resource) error {
		if r.Status.Fields["ready"] != "yes" || r.Status.ObservedGeneration != r.Generation {
			return fmt.Errorf("not ready: %+v", r.Status)
		}
		return nil
	}
	again := func(resource *fixture.Resource, times int64) {
		t.Helper()
		for range times {
			before := passes.Load()
			e.touch(resource)
			e.Eventually(func() error {
				if passes.Load() == before {
					return fmt.Errorf("no reconcile for a change of the resource")
				}
				return nil
			})
		}
	}
	wrote := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, e.traffic.of("deployments")); diff != "" {
			t.Errorf("writes %s (-want +got):\n%s", when, diff)
		}
	}

	stop := e.start(root(deployment(&passes)))
	resource := newResource("web", map[string]string{"image": "one"})
	e.Add(resource)
	until(e, resource, ready)
	again(resource, 5)
	wrote("when nothing has changed", "POST")

	change(e, resource, func(r *fixture.Resource) { r.Spec.Fields["image"] = "two" })
	until(e, resource, ready)
	again(resource, 5)
	wrote("after one change", "POST", "PUT")

	// A new process has not seen the defaults of the server, and knows them nevertheless.
	child := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	e.Must(e.Read(child))
	stop()
	e.start(root(deployment(&passes)))
	again(resource, 5)
	wrote("after a restart", "POST", "PUT")

	// Every change by hand is repaired, in fields with and without a default.
	e.Must(e.Patch(e.Context(), child, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"replicas":3,"template":{"spec":{"hostNetwork":true,"nodeSelector":{"by":"hand"}}}}}`))))
	until(e, child, func(d *appsv1.Deployment) error {
		if pod := d.Spec.Template.Spec; *d.Spec.Replicas != 1 || pod.HostNetwork || pod.NodeSelector != nil {
			return fmt.Errorf(
				"not repaired: %d replicas, host network %v, node selector %v", *d.Spec.Replicas, pod.HostNetwork, pod.NodeSelector,
			)
		}
		return nil
	})
	again(resource, 3)
	wrote("after a change by hand", "POST", "PUT", "PUT")
}
