// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

var errFlaky = errors.New("not this time")

// flaky calls fails with the number of each call, returns an error if it reports true, and writes the result of the
// call to the status.
func flaky(fails func(attempt int64) bool, attempts *atomic.Int64) reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.SuppressTransientErrors[*fixture.Resource, *fixture.ResourceList]{
		Reconciler: &reconcilers.TryCatch[*fixture.Resource]{
			Try: &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(context.Context, *fixture.Resource) error {
					if fails(attempts.Add(1)) {
						return errFlaky
					}
					return nil
				},
			},
			Catch: func(
				_ context.Context, resource *fixture.Resource, result reconcilers.Result, err error,
			) (reconcilers.Result, error) {
				resource.Status.Fields = map[string]string{"result": fmt.Sprint(err)}
				return result, err
			},
		},
	}
}

func resultIs(want string) func(*fixture.Resource) error {
	return func(got *fixture.Resource) error {
		if got.Status.Fields["result"] != want {
			return fmt.Errorf("result = %q, want %q", got.Status.Fields["result"], want)
		}
		return nil
	}
}

func TestSuppressTransientErrors(t *testing.T) {
	e := newEnv(t)
	var attempts atomic.Int64
	e.start(root(flaky(func(attempt int64) bool { return attempt <= 2 }, &attempts)))
	resource := newResource("it", nil)
	e.Add(resource)
	until(e, resource, resultIs("<nil>"))
	if diff := cmp.Diff([]string{"PUT"}, e.traffic.of("resources/status")); diff != "" {
		t.Errorf("writes of the status (-want +got):\n%s", diff)
	}
}

func TestSuppressTransientErrors_untilTheyPersist(t *testing.T) {
	e := newEnv(t)
	var attempts atomic.Int64
	var works atomic.Bool
	e.start(root(flaky(func(int64) bool { return !works.Load() }, &attempts)))
	resource := newResource("it", nil)
	e.Add(resource)
	until(e, resource, resultIs(errFlaky.Error()))
	if got := attempts.Load(); got < 3 {
		t.Errorf("the status contains the error after %d attempts", got)
	}
	works.Store(true)
	until(e, resource, resultIs("<nil>"))
}

// The predicate drops the event of the controller's own write of the status. Only the error, and then the result,
// triggers the next reconcile.
func TestGenerationChangedPredicate(t *testing.T) {
	e := newEnv(t)
	const failures, requeues = 3, 3
	var attempts atomic.Int64
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		return (&reconcilers.ResourceReconciler[*fixture.Resource]{
			SetupForOptions: []builder.ForOption{builder.WithPredicates(predicate.GenerationChangedPredicate{})},
			Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
				SyncWithResult: func(_ context.Context, resource *fixture.Resource) (reconcilers.Result, error) {
					attempt := attempts.Add(1)
					resource.Status.Fields = map[string]string{"result": fmt.Sprint(attempt)} // each reconcile writes the status
					switch {
					case attempt <= failures:
						return reconcilers.Result{}, errFlaky
					case attempt <= failures+requeues:
						return reconcilers.Result{RequeueAfter: time.Millisecond}, nil
					default:
						return reconcilers.Result{}, nil
					}
				},
			},
			Config: c,
		}).SetupWithManager(ctx, mgr)
	})
	resource := newResource("it", nil)
	e.Add(resource)
	until(e, resource, resultIs(fmt.Sprint(failures+requeues+1)))

	change(e, resource, func(r *fixture.Resource) { r.Spec.Fields = map[string]string{"new": "generation"} })
	until(e, resource, resultIs(fmt.Sprint(failures+requeues+2)))
}
