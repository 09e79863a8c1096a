// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"strconv"

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

// ChildSet has one parent with many children. A reconcile visits all of them.
type ChildSet struct{}

// About describes the workload.
func (ChildSet) About() lab.About {
	return lab.About{
		Name:  "childset",
		Text:  "one parent that owns all these ConfigMaps; a reconcile visits every one",
		Noun:  "children",
		Sizes: []int{500, 1000},
	}
}

// Run measures until all children exist, and then the cost of no-op reconciles.
func (w ChildSet) Run(ctx context.Context, trial *lab.Trial) error {
	count := int32(trial.Size)
	if err := trial.Create(ctx, 1, func(i int) client.Object {
		w := parent(i)
		w.Spec.Children = count
		return w
	}); err != nil {
		return err
	}
	if err := trial.Converge(ctx, lab.Plan{
		Parents: 1,
		SetUp: map[string]lab.SetUp{
			report.HandWritten: setUpManyChildren,
			report.Trueup:      setUpManyChildrenTree,
		},
		Converged: func(w *api.Widget) bool {
			return w.Status.Children == count && w.Status.ObservedGeneration == w.Generation
		},
		Verify: func(ctx context.Context) error { return verifyChildren(ctx, trial.Live, 1, childNames) },
	}, lab.Writes(w.About().Noun)); err != nil {
		return err
	}
	return trial.Idle(ctx)
}

// numberLabel is the index of a child among its siblings.
const numberLabel = "benchmarks.trueup.dev/number"

func childNames(w *api.Widget) []string {
	names := []string{}
	for _, child := range desiredChildren(w) {
		names = append(names, child.Name)
	}
	return names
}

func desiredChildren(w *api.Widget) []*corev1.ConfigMap {
	children := make([]*corev1.ConfigMap, w.Spec.Children)
	for i := range children {
		children[i] = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Namespace, Name: fmt.Sprintf("%s-%04d", w.Name, i), Labels: map[string]string{
					numberLabel: strconv.Itoa(i),
				},
			},
			Data: w.Spec.Data,
		}
	}
	return children
}

// manyChildren is the hand-written controller. It updates every child and deletes the superfluous ones, which it finds
// with an index.
type manyChildren struct{ client.Client }

const ownerField = ".metadata.controller"

func setUpManyChildren(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, ownerField, func(obj client.Object) []string {
		if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "Widget" {
			return []string{owner.Name}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	r := &manyChildren{mgr.GetClient()}
	bldr := ctrl.NewControllerManagedBy(mgr).For(&api.Widget{}).Owns(&corev1.ConfigMap{})
	wiring.Apply(bldr)
	return r, bldr.Complete(r)
}

func (r *manyChildren) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &api.Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	wanted := map[string]bool{}
	for _, desired := range desiredChildren(w) {
		wanted[desired.Name] = true
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: desired.Namespace, Name: desired.Name}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
			child.Labels, child.Data = desired.Labels, desired.Data
			return controllerutil.SetControllerReference(w, child, r.Scheme())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	existing := &corev1.ConfigMapList{}
	if err := r.List(ctx, existing, client.InNamespace(w.Namespace), client.MatchingFields{
		ownerField: w.Name,
	}); err != nil {
		return ctrl.Result{}, err
	}
	for i := range existing.Items {
		if child := &existing.Items[i]; !wanted[child.Name] {
			if err := client.IgnoreNotFound(r.Delete(ctx, child)); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	count := int32(len(wanted))
	if w.Status.Children == count && w.Status.ObservedGeneration == w.Generation {
		return ctrl.Result{}, nil
	}
	w.Status.Children, w.Status.ObservedGeneration = count, w.Generation
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

// setUpManyChildrenTree sets up the same controller as a tree of reconcilers.
func setUpManyChildrenTree(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	children := &reconcilers.ChildSetReconciler[*api.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChildren: func(_ context.Context, w *api.Widget) ([]*corev1.ConfigMap, error) {
			return desiredChildren(w), nil
		},
		IdentifyChild: func(child *corev1.ConfigMap) string { return child.Labels[numberLabel] },
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels, current.Data = desired.Labels, desired.Data
		},
		ReflectChildrenStatusOnParent: func(
			_ context.Context, w *api.Widget, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
			w.Status.Children = int32(len(result.Children))
		},
	}
	return setUpTree(ctx, mgr, wiring, children)
}
