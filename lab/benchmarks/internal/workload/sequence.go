// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
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

// Sequence is a controller with many steps. It shows the cost of a step that has nothing to do.
type Sequence struct{}

// steps is the number of steps.
const steps = 20

// roles are the steps, by index, that manage a child and a condition. The other steps only check and find nothing to
// do.
var roles = map[int]string{4: "Config", 9: "Routes", 14: "Policy"}

const roleLabel = "benchmarks.trueup.dev/role"

// About describes the workload.
func (Sequence) About() lab.About {
	return lab.About{
		Name:  "sequence",
		Text:  "parents in one namespace, reconciled in 20 steps, of which three manage a ConfigMap and a condition",
		Noun:  "parents",
		Sizes: []int{500, 2000},
	}
}

// Run measures until all parents have converged, and then the cost of no-op reconciles.
func (w Sequence) Run(ctx context.Context, trial *lab.Trial) error {
	if err := trial.Create(ctx, trial.Size, parentObject); err != nil {
		return err
	}
	if err := trial.Converge(ctx, lab.Plan{
		Parents: trial.Size,
		SetUp: map[string]lab.SetUp{
			report.HandWritten: setUpSteps,
			report.Trueup:      setUpStepsTree,
		},
		Converged: func(w *api.Widget) bool {
			return len(w.Status.Conditions) == len(roles) && w.Status.ObservedGeneration == w.Generation
		},
		Verify: func(ctx context.Context) error { return verifyChildren(ctx, trial.Live, trial.Size, roleNames) },
	}, lab.Writes(w.About().Noun)); err != nil {
		return err
	}
	return trial.Idle(ctx)
}

func roleNames(w *api.Widget) []string {
	names := []string{}
	for _, role := range roles {
		names = append(names, roleChild(w, role).Name)
	}
	return names
}

func roleChild(w *api.Widget, role string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: w.Name + "-" + roleSuffixes[role], Labels: map[string]string{roleLabel: role},
		},
		Data: w.Spec.Data,
	}
}

var roleSuffixes = map[string]string{"Config": "config", "Routes": "routes", "Policy": "policy"}

// inspect is a step with nothing to do.
func inspect(w *api.Widget) error {
	if len(w.Spec.Data) == 0 {
		return errors.New("no data")
	}
	return nil
}

func reflectRole(w *api.Widget, role string) {
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: role + "Ready", Status: metav1.ConditionTrue, Reason: "Stored", ObservedGeneration: w.Generation,
	})
}

// manySteps is the hand-written controller: functions called one after the other.
type manySteps struct {
	client.Client
	steps []func(ctx context.Context, w *api.Widget) error
}

func setUpSteps(_ context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	r := &manySteps{Client: mgr.GetClient()}
	for i := range steps {
		if role, ok := roles[i]; ok {
			r.steps = append(r.steps, r.child(role))
		} else {
			r.steps = append(r.steps, func(_ context.Context, w *api.Widget) error { return inspect(w) })
		}
	}
	bldr := ctrl.NewControllerManagedBy(mgr).For(&api.Widget{}).Owns(&corev1.ConfigMap{})
	wiring.Apply(bldr)
	return r, bldr.Complete(r)
}

func (r *manySteps) child(role string) func(ctx context.Context, w *api.Widget) error {
	return func(ctx context.Context, w *api.Widget) error {
		desired := roleChild(w, role)
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: desired.Namespace, Name: desired.Name}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
			child.Labels, child.Data = desired.Labels, desired.Data
			return controllerutil.SetControllerReference(w, child, r.Scheme())
		}); err != nil {
			return err
		}
		reflectRole(w, role)
		return nil
	}
}

func (r *manySteps) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &api.Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := w.Status.DeepCopy()
	for _, step := range r.steps {
		if err := step(ctx, w); err != nil {
			return ctrl.Result{}, err
		}
	}
	w.Status.ObservedGeneration = w.Generation
	if equality.Semantic.DeepEqual(before, &w.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

// setUpStepsTree sets up the same controller as a tree of reconcilers.
func setUpStepsTree(ctx context.Context, mgr ctrl.Manager, wiring *lab.Wiring) (reconcile.Reconciler, error) {
	sequence := reconcilers.Sequence[*api.Widget]{}
	for i := range steps {
		if role, ok := roles[i]; ok {
			sequence = append(sequence, roleReconciler(role))
		} else {
			sequence = append(sequence, &reconcilers.SyncReconciler[*api.Widget]{
				Sync: func(_ context.Context, w *api.Widget) error { return inspect(w) },
			})
		}
	}
	return setUpTree(ctx, mgr, wiring, sequence)
}

func roleReconciler(role string) reconcilers.SubReconciler[*api.Widget] {
	return &reconcilers.ChildReconciler[*api.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name:         role,
		OurChild:     func(_ *api.Widget, child *corev1.ConfigMap) bool { return child.Labels[roleLabel] == role },
		DesiredChild: func(_ context.Context, w *api.Widget) (*corev1.ConfigMap, error) { return roleChild(w, role), nil },
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels, current.Data = desired.Labels, desired.Data
		},
		ReflectChildStatusOnParent: func(_ context.Context, w *api.Widget, child *corev1.ConfigMap, _ error) {
			if child != nil {
				reflectRole(w, role)
			}
		},
	}
}
