// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/step"
)

// TestIsItLooping_plainReconciler calls reconcilers without steps 400 times, at once after each other unless they
// requeue.
func TestIsItLooping_plainReconciler(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "a"}
	write := func(ctx context.Context, c client.Client, value string) error {
		config := &corev1.ConfigMap{}
		if err := c.Get(ctx, key, config); err != nil {
			return err
		}
		config.Data = map[string]string{"value": value}
		return c.Update(ctx, config)
	}
	loop := func(repeats ...string) []LoopFound { return []LoopFound{{Reconciles: 101, Repeats: repeats}} }
	for _, tc := range []struct {
		reason    string
		reconcile func(ctx context.Context, c client.Client, n int) (reconcile.Result, error)
		want      []LoopFound
	}{
		{
			"each run writes", func(ctx context.Context, c client.Client, n int) (reconcile.Result, error) {
				return reconcile.Result{}, write(ctx, c, strconv.Itoa(n))
			}, loop("updates ConfigMap default/a"),
		},
		{
			"each run requeues at once", func(context.Context, client.Client, int) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Millisecond}, nil
			}, loop("returns RequeueAfter 1ms"),
		},
		{
			"each run polls", func(ctx context.Context, c client.Client, n int) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Second}, write(ctx, c, strconv.Itoa(n))
			}, nil,
		},
		{
			"the second run writes nothing", func(ctx context.Context, c client.Client, n int) (reconcile.Result, error) {
				if n%2 == 0 {
					return reconcile.Result{}, nil
				}
				return reconcile.Result{}, write(ctx, c, strconv.Itoa(n))
			}, nil,
		},
		{
			"failures back off", func(ctx context.Context, c client.Client, n int) (reconcile.Result, error) {
				return reconcile.Result{}, errors.Join(write(ctx, c, strconv.Itoa(n)), errors.New("broken"))
			}, nil,
		},
		{
			"a dry run", func(ctx context.Context, c client.Client, n int) (reconcile.Result, error) {
				return reconcile.Result{}, write(ctx, client.NewDryRunClient(c), strconv.Itoa(n))
			}, nil,
		},
		{
			"steps find their loops", func(ctx context.Context, c client.Client, n int) (reconcile.Result, error) {
				startStep(ctx)
				return reconcile.Result{}, write(ctx, c, strconv.Itoa(n))
			}, nil,
		},
		{
			"every second run has steps", func(ctx context.Context, c client.Client, n int) (reconcile.Result, error) {
				if n%2 == 0 {
					startStep(ctx)
					return reconcile.Result{}, nil
				}
				return reconcile.Result{}, write(ctx, c, strconv.Itoa(n))
			}, nil,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var found []LoopFound
				hub := &Hub{}
				hub.Add(Func(func(_ context.Context, event Event) {
					if e, ok := event.(*LoopFound); ok {
						found = append(found, LoopFound{Reconciles: e.Reconciles, Repeats: e.Repeats})
					}
				}))
				// A tracker without managed fields is faster.
				tracker := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
				stored := fake.NewClientBuilder().WithObjectTracker(tracker).Build()
				config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
				if err := stored.Create(t.Context(), config); err != nil {
					t.Fatal(err)
				}
				n, c := 0, NewClient(stored, nil, hub)
				o := &controllerObserver{hub: hub, kind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}
				o.reconciler = reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
					n++
					return tc.reconcile(ctx, c, n)
				})
				for range 400 {
					result, _ := o.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
					time.Sleep(max(time.Millisecond, result.RequeueAfter))
				}
				if diff := cmp.Diff(tc.want, found); diff != "" {
					t.Errorf("loops (-want +got):\n%s", diff)
				}
				// A loop that lasts is reported again.
				time.Sleep(loopAgain)
				_, _ = o.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
				if want := 2 * len(tc.want); len(found) != want {
					t.Errorf("%d reports after %s, want %d", len(found), loopAgain, want)
				}
			})
		})
	}
}

// startStep starts a step in the run of a context.
func startStep(ctx context.Context) {
	runningFrom(ctx).StepStarted(ctx, step.Started{Path: []string{"root"}})
}
