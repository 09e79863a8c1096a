// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/plan"
)

// doing is a controller of ConfigMaps.
func doing(do func(ctx context.Context, c client.Client, r reconcile.Request) (reconcile.Result, error)) plan.SetUp {
	return func(_ context.Context, mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(
			reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				return do(ctx, mgr.GetClient(), r)
			}),
		)
	}
}

// Which texts does a plan with a fake client have, without namespaces and defaults of an API server?
func TestRun_FakeClient(t *testing.T) {
	secret := func(namespace string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made"}}
	}
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	requeue := reconcile.Result{Requeue: true} //nolint:staticcheck // reconcilers may still set it
	for name, c := range map[string]struct {
		given []client.Object
		do    func(ctx context.Context, c client.Client, r reconcile.Request) (reconcile.Result, error)
		want  string
	}{
		"no namespace": {
			do: func(ctx context.Context, c client.Client, _ reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret("default")))
			},
			want: "+ Secret default/made\nPlan: 1 to create, nothing to delete.\n",
		},
		"a namespace that the fake does not have": {
			given: []client.Object{namespace("default")},
			do: func(ctx context.Context, c client.Client, _ reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret("other")))
			},
			want: "+ Secret other/made\nPlan: 1 to create, nothing to delete.\n",
		},
		"a namespace that is created": {
			do: func(ctx context.Context, c client.Client, _ reconcile.Request) (reconcile.Result, error) {
				if err := c.Create(ctx, namespace("default")); err != nil {
					return reconcile.Result{}, err
				}
				return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret("default")))
			},
			want: "+ Namespace default\n+ Secret default/made\nPlan: 2 to create, nothing to delete.\n",
		},
		"a namespace that a server does not have": {
			given: []client.Object{namespace("kube-system")},
			do: func(ctx context.Context, c client.Client, _ reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret("default")))
			},
			want: "! error of configmap default/one: namespaces \"default\" not found\nNo changes.\n",
		},
		"Requeue without a write": {
			do: func(context.Context, client.Client, reconcile.Request) (reconcile.Result, error) {
				return requeue, nil
			},
			want: "? unknown: what happens after configmap default/one, which requests another reconcile without a write\n" +
				"No changes.\n",
		},
		"Requeue after a write": {
			do: func(ctx context.Context, c client.Client, _ reconcile.Request) (reconcile.Result, error) {
				if c.Create(ctx, secret("default")) == nil {
					return requeue, nil
				}
				return reconcile.Result{}, nil
			},
			want: "+ Secret default/made\nPlan: 1 to create, nothing to delete.\n",
		},
		"a panic": {
			do: func(context.Context, client.Client, reconcile.Request) (reconcile.Result, error) {
				return panics(nil)
			},
			want: "! error of configmap default/one: panic: runtime error: invalid memory address or nil pointer dereference " +
				"(in plan_test.panics, fake_test.go:119)\nNo changes.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
				WithObjects(append(c.given, given("one"))...).Build()
			made, err := plan.Run(t.Context(), cluster, doing(c.do), plan.Request{Namespace: "default", Name: "one"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, made.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func panics(request *reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, errors.New(request.Name)
}

// Can each object be changed that a fake client stores without defaults?
func TestRun_ObjectsWithoutDefaults(t *testing.T) {
	labels := map[string]string{"app": "a"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	job := template.DeepCopy()
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	for kind, object := range map[string]client.Object{
		"Secret":      &corev1.Secret{},
		"Deployment":  &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
		"StatefulSet": &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
		"Job":         &batchv1.Job{Spec: batchv1.JobSpec{Template: *job}},
		"CronJob": &batchv1.CronJob{Spec: batchv1.CronJobSpec{
			Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: *job}},
		}},
		"NetworkPolicy":       &networkingv1.NetworkPolicy{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}},
	} {
		t.Run(kind, func(t *testing.T) {
			object.SetNamespace("default")
			object.SetName("one")
			cluster := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(object, given("one")).Build()
			edits := doing(func(ctx context.Context, c client.Client, r reconcile.Request) (reconcile.Result, error) {
				found := object.DeepCopyObject().(client.Object)
				if err := c.Get(ctx, r.NamespacedName, found); err != nil {
					return reconcile.Result{}, err
				}
				found.SetAnnotations(map[string]string{"edited": "true"})
				return reconcile.Result{}, c.Update(ctx, found)
			})
			made, err := plan.Run(t.Context(), cluster, edits, plan.Request{Namespace: "default", Name: "one"})
			if err != nil {
				t.Fatal(err)
			}
			value := `"true"`
			if kind == "Secret" {
				value = "•••"
			}
			want := "~ " + kind + " default/one\n    metadata.annotations[edited] = " + value +
				"\nPlan: 1 to update, nothing to delete.\n"
			if diff := cmp.Diff(want, made.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
