// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

var (
	// readyForEver never resets the condition.
	readyForEver = Entry{
		Name: "c12-ready-for-ever", Class: "C12", Faults: 1,
		About: "Ready is set when the deployment becomes available, and stays when it becomes unavailable.",
		Source: "Kubernetes API conventions, Typical status properties: conditions tell the latest observations of the " +
			"state. " + apiConventions,
		Buggy: with(
			steadyWorld, readyWhen(func(w *Widget, d *appsv1.Deployment) bool { return isReady(w) || fullyRolledOut(d) }),
		),
		Correct: with(steadyWorld, readyWhen(func(_ *Widget, d *appsv1.Deployment) bool { return fullyRolledOut(d) })),
	}
	// readyByOldNumbers sets the condition for an older rollout.
	readyByOldNumbers = Entry{
		Name: "c12-ready-by-old-numbers", Class: "C12",
		About: "Ready is set for a new generation based on the replicas of the old one, because the deployment's " +
			"observedGeneration is ignored.",
		Source: "kubectl rollout status, which looks at it first. " +
			"https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go",
		Buggy:   with(workloadWorld, readyWhen(func(_ *Widget, d *appsv1.Deployment) bool { return available(d) })),
		Correct: with(workloadWorld, readyWhen(func(_ *Widget, d *appsv1.Deployment) bool { return fullyRolledOut(d) })),
	}
)

// steadyWorld has a widget with a deployment.
func steadyWorld() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}}, World: []converge.Actor{
			converge.Deployments(converge.BecomeReady),
		},
		Given: []client.Object{widget("a", WidgetSpec{Image: "one", Replicas: 2})},
	}
}

// workloadWorld has a widget whose deployment gets another image.
func workloadWorld() converge.Scenario {
	s := steadyWorld()
	s.Given, s.Steps = nil, converge.Lifecycle(widget("a", WidgetSpec{Image: "one", Replicas: 2}), func(w *Widget) {
		w.Spec.Image = "two"
	})
	return s
}

// readyWhen has a deployment for each widget, whose readiness a function determines.
func readyWhen(ready func(w *Widget, d *appsv1.Deployment) bool) func(converge.Env) reconcile.Reconciler {
	return func(env converge.Env) reconcile.Reconciler { return &runReconciler{env.Client, ready} }
}

type runReconciler struct {
	client.Client

	ready func(w *Widget, d *appsv1.Deployment) bool
}

func (r *runReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment, err := applyDeployment(ctx, r.Client, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	setReady(w, r.ready(w, deployment), "Rollout", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}
