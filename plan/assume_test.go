// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/plan"
	"trueup.dev/readiness"
)

// waiting is a controller that creates an object and, when that is ready, a Secret.
func waiting(object client.Object) plan.SetUp {
	return func(_ context.Context, mgr ctrl.Manager) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(object).Complete(
			reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				parent := &corev1.ConfigMap{}
				if err := c.Get(ctx, request.NamespacedName, parent); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				child := object.DeepCopyObject().(client.Object)
				child.SetNamespace(request.Namespace)
				child.SetName(request.Name)
				stored := object.DeepCopyObject().(client.Object)
				if err := c.Get(ctx, client.ObjectKeyFromObject(child), stored); client.IgnoreNotFound(err) != nil {
					return reconcile.Result{}, err
				} else if err != nil {
					if err := ctrl.SetControllerReference(parent, child, mgr.GetScheme()); err != nil {
						return reconcile.Result{}, err
					}
					return reconcile.Result{}, c.Create(ctx, child)
				}
				if !readiness.Of(stored).IsReady() {
					return reconcile.Result{}, nil
				}
				after := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
				return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, after))
			}),
		)
	}
}

func TestPlan_AssumeReady(t *testing.T) {
	labels := map[string]string{"app": "a"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	job := template.DeepCopy()
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	for kind, object := range map[string]client.Object{
		"Deployment": &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector, Template: template},
		},
		"StatefulSet": &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
		"ReplicaSet":  &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		"DaemonSet":   &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		"Job":         &batchv1.Job{Spec: batchv1.JobSpec{Template: *job}},
		"Pod":         &corev1.Pod{Spec: template.Spec},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}},
		"Service": &corev1.Service{Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
		}},
	} {
		for assumed, want := range map[bool][]string{false: {kind}, true: {kind, "Secret"}} {
			planner, err := plan.New(t.Context(), newCluster(), waiting(object), plan.Options{AssumeReady: assumed})
			if err != nil {
				t.Fatal(err)
			}
			made, err := planner.Plan(t.Context(), plan.Request{Namespace: "default", Name: "one"})
			planner.Close()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range made.Changes {
				got = append(got, c.Kind)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, ready is assumed: %v (-want +got):\n%s\n%s", kind, assumed, diff, made.Text())
			}
		}
	}
}
