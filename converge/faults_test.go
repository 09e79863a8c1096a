// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
)

// faultyScenario has points for all faults: requests of all kinds, an actor, an external system, and caches that may
// start with an old list.
func faultyScenario() Scenario {
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			secret := &corev1.Secret{}
			if err := e.APIReader.Get(ctx, req.NamespacedName, secret); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if !secret.DeletionTimestamp.IsZero() {
				if err := e.Cloud.Delete(ctx, secret.Name); err != nil && !strings.Contains(err.Error(), ErrAbsent.Error()) {
					return reconcile.Result{}, err
				}
				if controllerutil.RemoveFinalizer(secret, "example.com/cloud") {
					return reconcile.Result{}, client.IgnoreNotFound(e.Client.Update(ctx, secret))
				}
				return reconcile.Result{}, nil
			}
			if controllerutil.AddFinalizer(secret, "example.com/cloud") {
				return reconcile.Result{}, e.Client.Update(ctx, secret)
			}
			if err := e.Cloud.Put(ctx, secret.Name, string(secret.Data["value"])); err != nil {
				return reconcile.Result{}, err
			}
			deployment := &appsv1.Deployment{}
			switch err := e.Client.Get(ctx, req.NamespacedName, deployment); {
			case apierrs.IsNotFound(err):
				return reconcile.Result{}, e.Client.Create(ctx, deploymentOf(secret))
			case err != nil:
				return reconcile.Result{}, err
			case !metav1.IsControlledBy(deployment, secret):
				return reconcile.Result{}, apierrs.NewConflict(appsv1.Resource("deployments"), req.Name, nil)
			}
			configMap := &corev1.ConfigMap{}
			switch err := e.Client.Get(ctx, req.NamespacedName, configMap); {
			case apierrs.IsNotFound(err):
				return reconcile.Result{}, e.Client.Create(ctx, configMapOf(secret, true))
			case err != nil:
				return reconcile.Result{}, err
			case !metav1.IsControlledBy(configMap, secret):
				return reconcile.Result{}, apierrs.NewConflict(corev1.Resource("configmaps"), req.Name, nil)
			case configMap.Data["value"] == string(secret.Data["value"]):
				return reconcile.Result{}, nil
			}
			configMap.Data = map[string]string{"value": string(secret.Data["value"])}
			return reconcile.Result{}, e.Client.Update(ctx, configMap)
		})
	}
	s.World = []Actor{
		Deployments(BecomeReady),
		actorOn("watcher", &corev1.ConfigMap{}, func(context.Context, client.Client, *corev1.ConfigMap) error { return nil }),
	}
	s.Owns = append(s.Owns, &appsv1.Deployment{})
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	s.Disturbances = Steps(CreateOwned(nil, other, "kubectl"))
	s.Consistency = TimeTravel
	s.With = []Fault{FaultDrift, FaultTakenUnnoticed, FaultQuota, FaultForbidden, FaultPause}
	return s
}

// deploymentOf returns a deployment with the name of a secret, which is its owner.
func deploymentOf(secret *corev1.Secret) *appsv1.Deployment {
	labels := map[string]string{"app": secret.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		},
	}
	_ = controllerutil.SetControllerReference(secret, deployment, scheme.Scheme)
	return deployment
}

// TestEachFault injects each fault, checks that the timeline marks it, and that the reconciler converges.
func TestEachFault(t *testing.T) {
	p, reference := referred(t, faultyScenario())
	// A reconciler without retries does not recover from these faults.
	harmful := []Fault{FaultTakenUnnoticed}
	for _, fault := range inject.All {
		if fault == FaultOvertaken || fault == FaultKindRemoved {
			continue // requires two concurrent reconciles, or a custom kind
		}
		t.Run(string(fault), func(t *testing.T) {
			at := slices.IndexFunc(reference.Points, func(m inject.Injectable) bool { return m.Faults.Has(fault) })
			if at < 0 {
				t.Fatal("no point for the fault")
			}
			s := inject.Schedule{{Point: reference.Points[at].Point, Fault: fault}}
			log := &explain.Timeline{}
			o := p.execute(t, s, p.usual(), log)
			if o.Injected != 1 {
				t.Errorf("injected %d times, want once", o.Injected)
			}
			if v, violated := o.First(); violated && !slices.Contains(harmful, fault) {
				t.Errorf("%s\n%s", v, log.Full())
			}
			// Neither the order of lists nor the steps of users are marked in lines.
			marked := slices.ContainsFunc(log.Entries, func(e explain.Entry) bool { return e.Mark != "" })
			if !marked && fault != FaultListOrder && fault != FaultMeanwhile {
				t.Errorf("no line is marked:\n%s", log.Full())
			}
		})
	}
}

func TestDisabledFaults(t *testing.T) {
	s := faultyScenario()
	s.With = nil
	s.Without = map[Fault]string{FaultRestart: "the process never ends"}
	s.Consistency = None
	p := mustPlan(t, s)
	reference, _ := p.refer(t)
	for _, m := range reference.Points {
		for _, fault := range []Fault{
			FaultRestart, FaultDrift, FaultTakenUnnoticed, FaultStaleStart, FaultQuota, FaultForbidden, FaultPause,
		} {
			if m.Faults.Has(fault) {
				t.Errorf("%s applies at %s", fault, m.Point)
			}
		}
	}
}
