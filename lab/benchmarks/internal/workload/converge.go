// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/lab"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/reconcilers"
)

// Converge is the task of most controllers: every parent gets a child and a status.
type Converge struct{}

// About describes the workload.
func (Converge) About() lab.About {
	return lab.About{
		Name:  "converge",
		Text:  "parents in one namespace, each with one ConfigMap that it owns, and a status",
		Noun:  "parents",
		Sizes: []int{500, 2000, 5000, 20000},
	}
}

// Run measures until all parents have converged, and then the cost of no-op reconciles.
func (w Converge) Run(ctx context.Context, trial *lab.Trial) error {
	if err := oneChildEach(ctx, trial, w.About().Noun, withOneChild); err != nil {
		return err
	}
	return trial.Idle(ctx)
}

// withOneChild are the controllers of [Converge].
var withOneChild = map[string]lab.SetUp{report.HandWritten: setUpOneChild, report.Trueup: setUpOneChildTree}

func oneChildEach(ctx context.Context, trial *lab.Trial, noun string, setUps map[string]lab.SetUp) error {
	if err := trial.Create(ctx, trial.Size, parentObject); err != nil {
		return err
	}
	return trial.Converge(ctx, planOneChild(trial, setUps), lab.Writes(noun))
}

func planOneChild(trial *lab.Trial, setUps map[string]lab.SetUp) lab.Plan {
	return lab.Plan{
		Parents: trial.Size,
		SetUp:   setUps,
		Converged: func(w *api.Widget) bool {
			return w.Status.Child == w.Name && w.Status.ObservedGeneration == w.Generation
		},
		Verify: func(ctx context.Context) error { return verifyChildren(ctx, trial.Live, trial.Size, childName) },
	}
}

// childName returns the name of the only child of a widget.
func childName(w *api.Widget) []string { return []string{w.Name} }

// oneChild is the hand-written controller. It uses the helpers of controller-runtime.
type oneChild struct{ client.Client }

func setUpOneChild(_ context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	r := &oneChild{mgr.GetClient()}
	bldr := ctrl.NewControllerManagedBy(mgr).For(&api.Widget{}).Owns(&corev1.ConfigMap{})
	wiring.Apply(bldr)
	return r, bldr.Complete(r)
}

func (r *oneChild) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &api.Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = w.Spec.Data
		return controllerutil.SetControllerReference(w, child, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	if w.Status.Child == child.Name && w.Status.ObservedGeneration == w.Generation {
		return ctrl.Result{}, nil
	}
	w.Status.Child, w.Status.ObservedGeneration = child.Name, w.Generation
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

// setUpOneChildTree sets up the same controller as a tree of reconcilers.
func setUpOneChildTree(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	child := childReconciler()
	child.MergeBeforeUpdate = func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
	return setUpTree(ctx, mgr, wiring, child)
}

// childReconciler is a reconciler of the child, without its object manager.
func childReconciler() *reconcilers.ChildReconciler[*api.Widget, *corev1.ConfigMap, *corev1.ConfigMapList] {
	return &reconcilers.ChildReconciler[*api.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, w *api.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Data: w.Spec.Data}, nil
		},
		ReflectChildStatusOnParent: func(_ context.Context, w *api.Widget, child *corev1.ConfigMap, _ error) {
			if child != nil {
				w.Status.Child = child.Name
			}
		},
	}
}

func setUpTree(
	ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring, reconciler reconcilers.SubReconciler[*api.Widget],
) (reconcile.Reconciler, error) {
	r := &reconcilers.ResourceReconciler[*api.Widget]{
		Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			wiring.Apply(bldr)
			return nil
		},
		Reconciler: reconciler,
		Config:     reconcilers.NewConfig(mgr, &api.Widget{}, syncPeriod),
	}
	return r, r.SetupWithManager(ctx, mgr)
}
