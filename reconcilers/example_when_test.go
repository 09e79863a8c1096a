// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// run reconciles a resource twice and prints the outcome.
func run(reconciler reconcilers.SubReconciler[*v1.Resource], resource *v1.Resource) {
	for range 2 {
		result, err := reconciler.Reconcile(context.Background(), resource)
		fmt.Printf("again in %s, error: %v\n", result.RequeueAfter.Round(time.Minute), err)
	}
}

func ExampleRetry() {
	run(&reconcilers.Retry[*v1.Resource]{
		InitialDelay: 10 * time.Minute, MaxDelay: time.Hour, Continue: true,
		Reconciler: do("publish", errors.New("the registry is down")),
	}, site())
	// Output:
	// publish
	// again in 10m0s, error: <nil>
	// again in 10m0s, error: <nil>
}

func ExampleErrRetriesExhausted() {
	_, err := (&reconcilers.Retry[*v1.Resource]{
		MaxAttempts: 1, Reconciler: do("publish", errors.New("the name is taken")),
	}).Reconcile(context.Background(), site())

	exhausted := &reconcilers.ErrRetriesExhausted{}
	fmt.Println(errors.As(err, &exhausted), exhausted)
	// Output:
	// publish
	// true gave up after 1 failures: the name is taken
}

func ExampleTimeout() {
	_, err := (&reconcilers.Timeout[*v1.Resource]{
		Name: "Publish", After: time.Millisecond,
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(ctx context.Context, _ *v1.Resource) error {
				<-ctx.Done() // a call that takes too long
				return ctx.Err()
			},
		},
	}).Reconcile(context.Background(), site())
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// Publish did not finish within 1ms: context deadline exceeded
	// true
}

func ExampleErrTimeout() {
	err := error(&reconcilers.ErrTimeout{Step: "Publish", After: time.Minute, Err: errors.New("no answer")})
	exceeded := &reconcilers.ErrTimeout{}
	fmt.Println(errors.As(err, &exceeded), exceeded.Step, exceeded.After)
	// Output:
	// true Publish 1m0s
}

func ExampleRateLimit() {
	run(&reconcilers.RateLimit[*v1.Resource]{
		Runs: 1, Interval: time.Hour, Continue: true, Reconciler: do("request a certificate", nil),
	}, site())
	// Output:
	// request a certificate
	// again in 0s, error: <nil>
	// again in 1h0m0s, error: <nil>
}

func ExamplePeriodic() {
	reconciler := &reconcilers.Periodic[*v1.Resource]{
		Interval: time.Hour, Reconciler: do("compare with the registry", nil),
	}
	resource := site()
	for range 2 {
		result, _ := reconciler.Reconcile(context.Background(), resource)
		fmt.Println("scheduled:", result.RequeueAfter > 0)
	}
	resource.Annotations = map[string]string{reconcilers.AnnotationReconcileAt: "now"}
	_, _ = reconciler.Reconcile(context.Background(), resource)
	// Output:
	// compare with the registry
	// scheduled: true
	// scheduled: true
	// compare with the registry
}

func ExamplePaused() {
	resource := site()
	resource.Annotations = map[string]string{reconcilers.AnnotationPaused: "until Friday"}
	reconciler := &reconcilers.Paused[*v1.Resource]{Reconciler: do("publish", nil)}
	_, err := reconciler.Reconcile(context.Background(), resource)
	fmt.Println(errors.Is(err, reconcilers.ErrRetryAfter))

	resource.Annotations = nil
	_, err = reconciler.Reconcile(context.Background(), resource)
	fmt.Println(err)
	// Output:
	// true
	// publish
	// <nil>
}
