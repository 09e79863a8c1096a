// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// bucketReconciler keeps a bucket for each claim, in an external system.
type bucketReconciler struct {
	client.Client

	Buckets buckets
}

type buckets interface {
	Create(ctx context.Context, name, owner string) error
	Delete(ctx context.Context, name string) error
}

func (r *bucketReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	const finalizer = "example.com/bucket"
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.Get(ctx, req.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name := claim.Namespace + "-" + claim.Name
	if claim.DeletionTimestamp == nil {
		if controllerutil.AddFinalizer(claim, finalizer) {
			if err := r.Update(ctx, claim); err != nil {
				return reconcile.Result{}, err
			}
		}
		err := r.Buckets.Create(ctx, name, claim.Name)
		if errors.Is(err, converge.ErrExists) {
			err = nil
		}
		return reconcile.Result{}, err
	}
	if err := r.Buckets.Delete(ctx, name); err != nil && !errors.Is(err, converge.ErrAbsent) {
		return reconcile.Result{}, err
	}
	if controllerutil.RemoveFinalizer(claim, finalizer) {
		return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, claim))
	}
	return reconcile.Result{}, nil
}

// bucketScenario keeps the buckets in the Cloud of the scenario.
func bucketScenario() converge.Scenario {
	s := converge.Scenario{Scheme: scheme, For: &corev1.PersistentVolumeClaim{}, Steps: converge.Lifecycle(dataClaim)}
	// region converge-cloud
	s.New = func(env converge.Env) reconcile.Reconciler {
		return &bucketReconciler{env.Client, env.Cloud}
	}
	// endregion
	return s
}

// bucketMap is an existing fake of the external system.
type bucketMap map[string]string

func (m bucketMap) Create(_ context.Context, name, owner string) error {
	if _, ok := m[name]; ok {
		return converge.ErrExists
	}
	m[name] = owner
	return nil
}

func (m bucketMap) Delete(_ context.Context, name string) error {
	delete(m, name)
	return nil
}

// region converge-call
// brittleBuckets adds faults to the buckets of a fake.
type brittleBuckets struct {
	env   converge.Env
	inner buckets
}

func (b brittleBuckets) Create(ctx context.Context, name, owner string) error {
	return b.env.Call(ctx, "create bucket "+name, func() error { return b.inner.Create(ctx, name, owner) })
}

// endregion

func (b brittleBuckets) Delete(ctx context.Context, name string) error {
	return b.env.Call(ctx, "delete bucket "+name, func() error { return b.inner.Delete(ctx, name) })
}

// brittleScenario keeps the buckets in a fake, which is empty at the start of each run.
func brittleScenario() converge.Scenario {
	s := bucketScenario()
	// region converge-reset
	stored := bucketMap{}
	s.Reset = func() { clear(stored) }
	s.Outside = func() any { return stored }
	s.New = func(env converge.Env) reconcile.Reconciler {
		return &bucketReconciler{env.Client, brittleBuckets{env, stored}}
	}
	// endregion
	return s
}

// newScenario calls the fixed reconciler without a controller, and sets all options.
func newScenario() converge.Scenario {
	// region converge-new
	scenario := converge.Scenario{
		Scheme: scheme,
		For:    &corev1.PersistentVolumeClaim{},
		Owns:   []client.Object{&batchv1.Job{}},
		New: func(env converge.Env) reconcile.Reconciler {
			return &FixedReconciler{env.Client, env.APIReader}
		},
		Given: []client.Object{dataClaim},
	}
	// endregion
	// region converge-watch
	scenario.Watches = []converge.Watch{{
		Object: &corev1.Node{},
		Requests: func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(dataClaim)}}
		},
	}}
	// endregion
	// region converge-filters
	scenario.Filters = []converge.Filter{
		{Object: &corev1.Node{}, Predicate: predicate.LabelChangedPredicate{}},
		{Predicate: predicate.ResourceVersionChangedPredicate{}}, // for all kinds
	}
	// endregion
	// region converge-desired
	scenario.Desired = func(s converge.State) error {
		jobs := &batchv1.JobList{}
		if err := s.List(jobs, client.InNamespace("default")); err != nil {
			return err
		}
		if s.Get(dataClaim.DeepCopy()) && len(jobs.Items) != 1 {
			return fmt.Errorf("got %d jobs, want 1", len(jobs.Items))
		}
		return nil
	}
	// endregion
	// region converge-masks
	scenario.Masks = []converge.Mask{
		{Object: &batchv1.Job{}, Field: "spec.template.spec.containers.image"}, // of all containers
		{Field: "metadata.annotations[example.com/nonce]"},
	}
	// endregion
	// region converge-without
	scenario.Without = map[converge.Fault]string{
		converge.FaultTaken: "no other client creates Jobs in these namespaces",
	}
	scenario.With = []converge.Fault{converge.FaultDrift}
	// endregion
	// region converge-off
	scenario.Off = map[converge.Oracle]string{
		converge.OracleDeletion: "jobs are kept for an audit",
	}
	// endregion
	// region converge-except
	scenario.Except = []converge.Exception{{
		Fault: converge.FaultChildDeleted, Object: &batchv1.Job{}, Step: 2, Reason: "a volume is formatted only once",
	}}
	// endregion
	scenario.Without[converge.FaultDrift] = "what the guide shows would be found, otherwise"
	scenario.With = nil
	return scenario
}

// stepsScenario has users who do not wait, and another controller.
func stepsScenario() converge.Scenario {
	scenario := newScenario()
	scenario.Given = nil
	// region converge-steps
	scenario.Steps = converge.Steps(
		converge.Apply(dataClaim),
		converge.Settle(),
		converge.Change(dataClaim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Labels = map[string]string{"tier": "fast"}
		}),
		converge.Sleep(time.Minute),
		converge.Do("drop the label", func(ctx context.Context, c client.Client) error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`))
			return c.Patch(ctx, dataClaim.DeepCopy(), patch)
		}),
		converge.Settle(),
		converge.Delete(dataClaim),
		converge.Settle(),
	)
	// endregion
	scenario.Desired = nil // it would count the Job of the other client
	otherJob := formatJob(dataClaim)
	otherJob.Name = "other"
	// region converge-disturbances
	scenario.Disturbances = converge.Steps(
		converge.ChangeOwned(dataClaim, &batchv1.Job{}, "drop the labels", func(job *batchv1.Job) { job.Labels = nil }),
		converge.CreateOwned(dataClaim, otherJob, "kubectl"),
	)
	// The reconciler does not restore them.
	scenario.Masks = []converge.Mask{{Object: &batchv1.Job{}, Field: "metadata.labels"}}
	// endregion
	// region converge-actor
	binder := converge.Actor{
		Name: "binder",
		For:  &corev1.PersistentVolumeClaim{},
		Act: func(ctx context.Context, c client.Client, obj client.Object) error {
			claim := obj.(*corev1.PersistentVolumeClaim)
			if claim.Status.Phase == corev1.ClaimBound || claim.DeletionTimestamp != nil {
				return nil
			}
			claim.Status.Phase = corev1.ClaimBound
			return c.Status().Update(ctx, claim)
		},
	}
	scenario.World = []converge.Actor{binder, converge.Jobs(converge.BecomeReady)}
	// endregion
	return scenario
}

// TestConvergeOptions checks that the scenarios of the guide pass.
func TestConvergeOptions(t *testing.T) {
	for name, s := range map[string]converge.Scenario{
		"cloud": bucketScenario(), "call": brittleScenario(), "new": newScenario(), "steps": stepsScenario(),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := converge.Check(t, s, converge.Options{Seed: 1}) // every single fault, and no combinations
			if err != nil {
				t.Fatal(err)
			}
			if report.Failure != nil {
				t.Errorf("the scenario fails:\n%s", report.Failure)
			}
		})
	}
}
