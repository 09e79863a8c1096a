// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/lab"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/reconcilers"
)

// Apply is [Converge] with server-side apply.
type Apply struct{}

// About describes the workload.
func (Apply) About() lab.About {
	about := Converge{}.About()
	about.Name, about.Sizes = "apply", []int{500, 2000}
	about.Text = "parents in one namespace, each with one ConfigMap that is applied, and a status"
	return about
}

// Run measures until all parents have converged, and then the cost of no-op reconciles.
func (w Apply) Run(ctx context.Context, trial *lab.Trial) error {
	setUps := map[string]lab.SetUp{report.HandWritten: setUpApplied, report.Trueup: setUpAppliedTree}
	if err := oneChildEach(ctx, trial, w.About().Noun, setUps); err != nil {
		return err
	}
	return trial.Idle(ctx)
}

const fieldOwner = "widgets"

// applied is the hand-written controller. It applies the child in each reconcile, as most controllers do: the API
// server finds out that nothing changes.
type applied struct{ client.Client }

func setUpApplied(_ context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	r := &applied{mgr.GetClient()}
	bldr := ctrl.NewControllerManagedBy(mgr).For(&api.Widget{}).Owns(&corev1.ConfigMap{})
	wiring.Apply(bldr)
	return r, bldr.Complete(r)
}

func (r *applied) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &api.Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	owner := metav1ac.OwnerReference().WithAPIVersion(api.GroupVersion.String()).WithKind("Widget").WithName(w.Name).
		WithUID(w.UID).WithController(true).WithBlockOwnerDeletion(true)
	child := corev1ac.ConfigMap(w.Name, w.Namespace).WithOwnerReferences(owner).WithData(w.Spec.Data)
	if err := r.Apply(ctx, child, client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if w.Status.Child == w.Name && w.Status.ObservedGeneration == w.Generation {
		return ctrl.Result{}, nil
	}
	w.Status.Child, w.Status.ObservedGeneration = w.Name, w.Generation
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

// setUpAppliedTree sets up the same controller as a tree of reconcilers.
func setUpAppliedTree(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	child := childReconciler()
	child.ChildObjectManager = &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
		FieldOwner: fieldOwner, Conflicts: reconcilers.ForceOnConflict,
	}
	return setUpTree(ctx, mgr, wiring, child)
}
