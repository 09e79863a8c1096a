// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/lab"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/reconcilers"
)

// healthyName is the name of the parent that is changed.
const healthyName = "healthy"

// Storm has parents that fail, and a healthy one whose changes must not wait for them.
type Storm struct {
	// Latency is added to every request.
	Latency time.Duration
}

// About describes the workload.
func (w Storm) About() lab.About {
	return lab.About{
		Name: "storm",
		Text: "parents whose reconcile fails, and a healthy one in the same namespace that is changed again and again, " +
			"with " + w.Latency.String() + " latency on every request to the API",
		Noun:  "failing parents",
		Sizes: []int{1000},
	}
}

// Run measures the changes of the healthy parent: before the others exist, during their first attempts, and after.
func (w Storm) Run(ctx context.Context, trial *lab.Trial) error {
	trial.Latency = w.Latency
	r, err := startHealthy(ctx, trial, lab.Namespace, map[string]lab.SetUp{
		report.HandWritten: setUpOneChildAfterSource, report.Trueup: setUpOneChildTreeAfterSource,
	})
	if err != nil {
		return err
	}
	if err := trial.Create(ctx, trial.Size, func(i int) client.Object {
		w := parent(i)
		w.Spec.Source = "missing"
		return w
	}); err != nil {
		return err
	}
	first := 3 * trial.Size // two attempts each, and the events of status updates
	if err := r.While(ctx, lab.Outbreak, func(reconciles int) bool { return reconciles >= first }); err != nil {
		return err
	}
	return r.While(ctx, lab.Busy, func(int) bool { return false })
}

// Tenants has many parents in one namespace, and one in another namespace whose changes must not wait for them.
type Tenants struct {
	// Latency is added to every request.
	Latency time.Duration
}

// About describes the workload.
func (w Tenants) About() lab.About {
	return lab.About{
		Name: "tenants",
		Text: "parents that are created in one namespace, and one in another namespace that is changed again and again, " +
			"with " + w.Latency.String() + " latency on every request to the API; the namespaces take turns in the queue of " +
			"trueup",
		Noun:  "parents",
		Sizes: []int{1000, 10000, 50000},
	}
}

const quietNamespace = lab.Namespace + "-quiet"

// Run measures the changes of the parent in the quiet namespace, before the others exist and while they converge.
func (w Tenants) Run(ctx context.Context, trial *lab.Trial) error {
	trial.Latency = w.Latency
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: quietNamespace}}
	if err := client.IgnoreAlreadyExists(trial.Live.Create(ctx, namespace)); err != nil {
		return err
	}
	r, err := startHealthy(ctx, trial, quietNamespace, map[string]lab.SetUp{
		report.HandWritten: setUpOneChildAfterSource,
		report.Trueup: func(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
			wiring.TakeTurns()
			return setUpOneChildTreeAfterSource(ctx, mgr, wiring)
		},
	})
	if err != nil {
		return err
	}
	if err := trial.Create(ctx, trial.Size, parentObject); err != nil {
		return err
	}
	return r.While(ctx, lab.Busy, func(reconciles int) bool { return reconciles >= trial.Size })
}

// startHealthy creates the healthy parent and starts the controller.
func startHealthy(
	ctx context.Context, trial *lab.Trial, namespace string, setUps map[string]lab.SetUp,
) (*lab.Responder, error) {
	healthy := parent(0)
	healthy.Namespace, healthy.Name = namespace, healthyName
	for _, former := range []client.Object{healthy.DeepCopy(), &corev1.ConfigMap{ObjectMeta: healthy.ObjectMeta}} {
		if err := client.IgnoreNotFound(trial.Live.Delete(ctx, former)); err != nil {
			return nil, err
		}
	}
	if err := trial.Live.Create(ctx, healthy); err != nil {
		return nil, err
	}
	return trial.StartBusy(ctx, setUps, client.ObjectKeyFromObject(healthy))
}

// readSource reads the object that a widget depends on, if it depends on one. It reads from the API server, as it would
// from a service outside of the cluster.
func readSource(ctx context.Context, live client.Reader, w *api.Widget) error {
	if w.Spec.Source == "" {
		return nil
	}
	return live.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.Source}, &corev1.ConfigMap{})
}

// oneChildAfterSource is the hand-written controller.
type oneChildAfterSource struct {
	oneChild
	live client.Reader
}

func setUpOneChildAfterSource(
	_ context.Context, mgr ctrl.Manager, wiring *lab.Wiring,
) (reconcile.Reconciler, error) {
	r := &oneChildAfterSource{oneChild{mgr.GetClient()}, mgr.GetAPIReader()}
	bldr := ctrl.NewControllerManagedBy(mgr).For(&api.Widget{}).Owns(&corev1.ConfigMap{})
	wiring.Apply(bldr)
	return r, bldr.Complete(r)
}

func (r *oneChildAfterSource) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &api.Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := readSource(ctx, r.live, w); err != nil {
		return ctrl.Result{}, err
	}
	return r.oneChild.Reconcile(ctx, req)
}

// setUpOneChildTreeAfterSource sets up the same controller as a tree of reconcilers.
func setUpOneChildTreeAfterSource(
	ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring,
) (reconcile.Reconciler, error) {
	child := childReconciler()
	child.MergeBeforeUpdate = func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
	return setUpTree(ctx, mgr, wiring, reconcilers.Sequence[*api.Widget]{
		&reconcilers.SyncReconciler[*api.Widget]{Sync: func(ctx context.Context, w *api.Widget) error {
			return readSource(ctx, reconcilers.RetrieveConfigOrDie(ctx).APIReader, w)
		}},
		child,
	})
}
