// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/lab"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/reconcilers"
)

// Tracking has many parents that depend on one object that none of them owns. When it changes, each parent must be
// reconciled exactly once.
type Tracking struct{}

const sourceName = "shared"

// About describes the workload.
func (Tracking) About() lab.About {
	return lab.About{
		Name:  "tracking",
		Text:  "parents in one namespace that all depend on one ConfigMap, which changes once",
		Noun:  "parents",
		Sizes: []int{1000, 10000},
	}
}

// Run measures until all parents have seen the ConfigMap, then its change, and then the cost of no-op reconciles.
func (w Tracking) Run(ctx context.Context, trial *lab.Trial) error {
	source := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: sourceName}, Data: map[string]string{"color": "red"},
	}
	if err := trial.Live.Create(ctx, source); err != nil {
		return err
	}
	if err := trial.Create(ctx, trial.Size, func(i int) client.Object {
		w := parent(i)
		w.Spec.Source = sourceName
		return w
	}); err != nil {
		return err
	}
	if err := trial.Converge(ctx, lab.Plan{
		Parents: trial.Size,
		SetUp: map[string]lab.SetUp{
			report.HandWritten: setUpIndexed,
			report.Trueup:      setUpTracked,
		},
		Converged: func(w *api.Widget) bool {
			return w.Status.Child == sourceName && w.Status.ObservedGeneration == w.Generation
		},
		Verify: func(ctx context.Context) error { return verifySeen(ctx, trial.Live, trial.Size) },
	}, lab.Writes(w.About().Noun)); err != nil {
		return err
	}
	if err := trial.Fanout(ctx, trial.Size, func(ctx context.Context) error {
		source.Data["color"] = "green"
		return trial.Live.Update(ctx, source)
	}); err != nil {
		return err
	}
	return trial.Idle(ctx)
}

// indexed is the hand-written controller. It finds the parents of a ConfigMap with an index.
type indexed struct{ client.Client }

const sourceField = ".spec.source"

func setUpIndexed(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &api.Widget{}, sourceField, func(obj client.Object) []string {
		return []string{obj.(*api.Widget).Spec.Source}
	}); err != nil {
		return nil, err
	}
	r := &indexed{mgr.GetClient()}
	bldr := ctrl.NewControllerManagedBy(mgr).For(&api.Widget{}).
		Watches(&corev1.ConfigMap{}, wiring.Timed(handler.EnqueueRequestsFromMapFunc(r.dependents)))
	wiring.Apply(bldr)
	return r, bldr.Complete(r)
}

func (r *indexed) dependents(ctx context.Context, source client.Object) []reconcile.Request {
	list := &api.WidgetList{}
	if err := r.List(ctx, list, client.InNamespace(source.GetNamespace()), client.MatchingFields{
		sourceField: source.GetName(),
	}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "unable to list dependents")
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}

func (r *indexed) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &api.Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	source := &corev1.ConfigMap{}
	if err := r.Get(ctx, sourceKey(w), source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.Child == source.Name && w.Status.ObservedGeneration == w.Generation {
		return ctrl.Result{}, nil
	}
	w.Status.Child, w.Status.ObservedGeneration = source.Name, w.Generation
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

func sourceKey(w *api.Widget) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.Source}
}

// setUpTracked sets up the same controller as a tree of reconcilers, with a tracker instead of the index.
func setUpTracked(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	return setUpTree(ctx, mgr, wiring, &reconcilers.SyncReconciler[*api.Widget]{
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, wiring.Timed(reconcilers.EnqueueTracked(ctx)))
			return nil
		},
		Sync: func(ctx context.Context, w *api.Widget) error {
			source := &corev1.ConfigMap{}
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, sourceKey(w), source); err != nil {
				return client.IgnoreNotFound(err)
			}
			w.Status.Child = source.Name
			return nil
		},
	})
}
