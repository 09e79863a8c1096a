// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// sharedField stores the current object in a field that all workers share.
var sharedField = Entry{
	Name: "c15-object-in-a-field", Class: "C15", Faults: 1,
	About: "The object of the reconcile is stored in a field of the reconciler, which all workers share: one worker " +
		"creates the child of another one's object.",
	Source: "controller-runtime, controller.Options.MaxConcurrentReconciles: Reconcile is called by several workers at " +
		"once, for different objects. " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/controller#TypedOptions",
	Buggy:   withSetup(twoOfThem, twoWorkers(func(r *seedReconciler, _ *Widget) *Widget { return r.widget })),
	Correct: withSetup(twoOfThem, twoWorkers(func(_ *seedReconciler, w *Widget) *Widget { return w })),
}

// twoOfThem are two widgets that are created at the same time.
func twoOfThem() converge.Scenario {
	left, right := widget("left", WidgetSpec{Data: map[string]string{"seed": "1"}}), widget("right", WidgetSpec{
		Data: map[string]string{"seed": "2"},
	})
	return converge.Scenario{
		For: &Widget{},
		Steps: converge.Steps(
			converge.Apply(left), converge.Apply(right), converge.Settle(), converge.Delete(left), converge.Delete(right),
			converge.Settle(),
		),
	}
}

func twoWorkers(of func(r *seedReconciler, w *Widget) *Widget) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).WithOptions(controller.Options{
			MaxConcurrentReconciles: 2,
		}).
			Complete(&seedReconciler{Client: mgr.GetClient(), of: of})
	}
}

// seedReconciler records the data of a widget once, and never changes it.
type seedReconciler struct {
	client.Client

	of func(r *seedReconciler, w *Widget) *Widget
	// widget is the one that any worker read last.
	widget *Widget
}

func (r *seedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.widget = w
	err := r.Get(ctx, req.NamespacedName, &corev1.ConfigMap{})
	if !apierrs.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	seed := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name), Data: r.of(r, w).Spec.Data}
	if err := controllerutil.SetControllerReference(w, seed, r.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Create(ctx, seed)
}
