// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// polling requeues at once, forever.
var polling = Entry{
	Name: "c09-comes-back-at-once", Class: "C9",
	About: "Each reconcile requeues after a millisecond, even when everything is up to date.",
	Source: "controller-runtime, reconcile.Result: RequeueAfter is for who has to look again after some time. " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/reconcile#Result",
	Buggy: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
		return &pollingReconciler{env.Client, time.Millisecond}
	}),
	Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
		return &pollingReconciler{env.Client, 10 * time.Minute}
	}),
}

type pollingReconciler struct {
	client.Client

	interval time.Duration
}

func (r *pollingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.interval}, nil
}
