// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// mirror copies Secrets to a system outside of the cluster.
type mirror struct {
	vault interface {
		Put(ctx context.Context, name string, data map[string][]byte) error
		Drop(ctx context.Context, name string) error
	}
}

func (m mirror) Add(ctx context.Context, secret *corev1.Secret) error {
	return m.vault.Put(ctx, secret.Name, secret.Data)
}

func (m mirror) Update(ctx context.Context, _, secret *corev1.Secret) error {
	return m.vault.Put(ctx, secret.Name, secret.Data)
}

func (m mirror) Delete(ctx context.Context, secret *corev1.Secret) error {
	return m.vault.Drop(ctx, secret.Name)
}

// Sync handles changes that were made while no process ran.
func (m mirror) Sync(ctx context.Context, secret *corev1.Secret) error {
	return m.vault.Put(ctx, secret.Name, secret.Data)
}

var (
	mgr ctrl.Manager
	ctx = context.Background()
)

// A controller calls a watcher for all Secrets. A finalizer keeps deleted Secrets until the watcher has handled the
// deletion.
func ExampleController() {
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	controller := &operator.Controller[*corev1.Secret]{
		Handlers: []reconcilers.SubReconciler[*corev1.Secret]{operator.OpinionatedWatcher("example.com/mirror", mirror{})},
		Config:   config,
	}
	if err := controller.SetupWithManager(ctx, mgr); err != nil {
		log.Fatal(err)
	}
}

// The handler of an OpinionatedWatcher has fields for the retry policy and for the changes to react to.
func ExampleOpinionatedWatcher() {
	secrets := operator.OpinionatedWatcher("example.com/mirror", mirror{})
	secrets.Aliases = []string{"example.com/old-mirror"}
	secrets.Handler.React |= operator.ReactLabels
	secrets.Handler.RetryPolicy = operator.DefaultRetryPolicy
}

func ExampleNewOpinionated() {
	handler := &operator.TypedReconciler[*corev1.Secret]{
		ReconcileFunc: func(
			_ context.Context, req operator.TypedReconcileRequest[*corev1.Secret],
		) (operator.ReconcileResult, error) {
			fmt.Println(operator.ResourceActionFromReconcileAction(req.Action), req.Object.Name)
			return operator.ReconcileResult{RequeueAfter: time.Hour}, nil
		},
	}
	secrets := operator.NewOpinionated[*corev1.Secret]("example.com/mirror", handler)
	secrets.InProgressFinalizer = "example.com/mirror-in-progress"
}

// Use a watcher in a tree of reconcilers.
func ExampleWatcherReconciler() {
	watcher := operator.WatcherReconciler(mirror{})
	watcher.Finalizers = []string{"example.com/mirror"}
	_ = &reconcilers.ResourceReconciler[*corev1.Secret]{
		Reconciler: &reconcilers.WithFinalizer[*corev1.Secret]{
			Finalizer:  "example.com/mirror",
			Reconciler: reconcilers.Sequence[*corev1.Secret]{watcher},
		},
		Config: reconcilers.NewConfig(mgr, nil, time.Hour),
	}
}

// The state carries data from one attempt to the next.
func ExampleAsSubReconciler() {
	upload := &operator.TypedReconciler[*corev1.ConfigMap]{
		ReconcileFunc: func(
			_ context.Context, req operator.TypedReconcileRequest[*corev1.ConfigMap],
		) (operator.ReconcileResult, error) {
			job, started := req.State["job"].(string)
			if !started {
				job = "job of " + req.Object.Name
				return operator.ReconcileResult{RequeueAfter: time.Second, State: map[string]any{"job": job}}, nil
			}
			fmt.Println(job, "is under way")
			return operator.ReconcileResult{}, nil
		},
	}
	_ = operator.AsSubReconciler[*corev1.ConfigMap](upload)
}

// Use a tree of reconcilers as a Reconciler.
func ExampleAsReconciler() {
	reconciler := operator.AsReconciler(reconcilers.Sequence[*corev1.ConfigMap]{
		&reconcilers.SyncReconciler[*corev1.ConfigMap]{Sync: func(context.Context, *corev1.ConfigMap) error { return nil }},
	})
	_ = operator.NewOpinionated[*corev1.ConfigMap]("example.com/tree", reconciler)
}

// audit is a watcher for objects of any type.
type audit struct{}

func (audit) Add(_ context.Context, object resource.Object) error {
	fmt.Println("added", object.GetName())
	return nil
}

func (audit) Update(_ context.Context, previous, object resource.Object) error {
	fmt.Println("updated", object.GetName(), "from", previous.GetResourceVersion())
	return nil
}

func (audit) Delete(_ context.Context, object resource.Object) error {
	fmt.Println("deleted", object.GetName())
	return nil
}

func ExampleUntyped() {
	_ = operator.FanOut[*corev1.ConfigMap]{
		operator.WatcherReconciler(operator.Untyped[*corev1.ConfigMap](audit{})),
		operator.WatcherReconciler(operator.Untyped[*corev1.ConfigMap](audit{})),
	}
}

// Any reconciler below a WithEdge can read the action.
func ExampleWithEdge() {
	_ = &operator.WithEdge[*corev1.ConfigMap]{
		React: operator.ReactSpec,
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{Sync: func(
			ctx context.Context, configMap *corev1.ConfigMap,
		) error {
			if operator.EdgeFrom(ctx).Action != operator.ReconcileActionUpdated {
				return nil
			}
			if previous, ok := operator.PreviousFrom[*corev1.ConfigMap](ctx); ok {
				fmt.Println("changed from", previous.Data, "to", configMap.Data)
			}
			operator.RetryState(ctx)["seen"] = true
			return nil
		}},
	}
}

// A watcher that must wait returns RequeueAfter as its error.
func ExampleRequeueAfter() {
	ready := false
	add := func() error {
		if !ready {
			return operator.RequeueAfter(10 * time.Second)
		}
		return nil
	}
	fmt.Println(add())
	// Output: call again after 10s
}

func ExampleExponentialBackoffRetryPolicy() {
	policy := operator.ExponentialBackoffRetryPolicy(5*time.Second, 2)
	for attempt := range 4 {
		fmt.Println(policy(errors.New("out of order"), attempt))
	}
	// Output:
	// true 5s
	// true 10s
	// true 20s
	// false 0s
}

func ExampleBackoffPolicy() {
	policy := operator.BackoffPolicy{Initial: time.Second, Max: 3 * time.Second, Jitter: -1}.Policy()
	for attempt := range 4 {
		fmt.Println(policy(errors.New("out of order"), attempt))
	}
	// Output:
	// true 1s
	// true 2s
	// true 3s
	// true 3s
}
