// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// do returns a subreconciler that prints a message and returns err.
func do(what string, err error) *reconcilers.SyncReconciler[*v1.Resource] {
	return &reconcilers.SyncReconciler[*v1.Resource]{
		Name: what,
		Sync: func(context.Context, *v1.Resource) error {
			fmt.Println(what)
			return err
		},
	}
}

func ExampleAlways() {
	// The certificate does not depend on the pages, so an error of the pages does not block it.
	reconcile(clusterWith(site()), reconcilers.Always[*v1.Resource]{
		do("pages", errors.New("no space left")),
		do("certificate", nil),
	})
	// Output:
	// pages
	// certificate
	// error: no space left
}

func ExampleAdvice() {
	reconcile(clusterWith(site()), &reconcilers.Advice[*v1.Resource]{
		Reconciler: do("publish", errors.New("slow down")),
		Before: func(_ context.Context, resource *v1.Resource) (context.Context, reconcilers.Result, error) {
			fmt.Println("about to publish", resource.Name)
			return nil, reconcilers.Result{}, nil
		},
		Around: func(
			ctx context.Context, resource *v1.Resource, reconciler reconcilers.SubReconciler[*v1.Resource],
		) (reconcilers.Result, error) {
			result, err := reconciler.Reconcile(ctx, resource)
			if err != nil {
				fmt.Println("once more")
				result, err = reconciler.Reconcile(ctx, resource)
			}
			return result, err
		},
		After: func(_ context.Context, _ *v1.Resource, _ reconcilers.Result, err error) (reconcilers.Result, error) {
			fmt.Println("later:", err)
			return reconcilers.Result{RequeueAfter: time.Minute}, nil
		},
	})
	// Output:
	// about to publish blog
	// publish
	// once more
	// publish
	// later: slow down
}

func ExampleIfThen() {
	reconciler := &reconcilers.IfThen[*v1.Resource]{
		If: func(_ context.Context, resource *v1.Resource) bool {
			return resource.Spec.Fields["private"] == "true"
		},
		Then: do("ask for a password", nil),
		Else: do("let everybody in", nil),
	}
	reconcile(clusterWith(site()), reconciler)
	private := site()
	private.Spec.Fields["private"] = "true"
	reconcile(clusterWith(private), reconciler)
	// Output:
	// let everybody in
	// ask for a password
}

func ExampleWhileServed() {
	monitor := &unstructured.Unstructured{}
	monitor.SetAPIVersion("monitoring.coreos.com/v1")
	monitor.SetKind("ServiceMonitor")
	reconcile(clusterWith(site()), &reconcilers.WhileServed[*v1.Resource]{
		Kinds:      []client.Object{monitor},
		Reconciler: do("create a ServiceMonitor", nil),
		Else: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(ctx context.Context, _ *v1.Resource) error {
				fmt.Println("not served:", reconcilers.RetrieveNotServed(ctx)[0].Kind)
				return nil
			},
		},
	})
	// Output:
	// not served: ServiceMonitor
}

func ExampleWhile() {
	pages := 0
	reconcile(clusterWith(site()), &reconcilers.While[*v1.Resource]{
		Condition: func(context.Context, *v1.Resource) bool { return pages < 3 },
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(context.Context, *v1.Resource) error {
				pages++
				fmt.Println("page", pages)
				return nil
			},
		},
		MaxIterations: new(10),
	})
	// Output:
	// page 1
	// page 2
	// page 3
}

func ExampleErrMaxIterations() {
	_, err := (&reconcilers.While[*v1.Resource]{
		Condition:     func(context.Context, *v1.Resource) bool { return true },
		Reconciler:    do("again", nil),
		MaxIterations: new(2),
	}).Reconcile(context.Background(), site())

	exceeded := &reconcilers.ErrMaxIterations{}
	fmt.Println(errors.As(err, &exceeded), exceeded.Iterations)
	// Output:
	// again
	// again
	// true 2
}

func ExampleRetrieveIteration() {
	reconcile(clusterWith(site()), &reconcilers.While[*v1.Resource]{
		Condition: func(ctx context.Context, _ *v1.Resource) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(ctx context.Context, _ *v1.Resource) error {
				fmt.Println("iteration", reconcilers.RetrieveIteration(ctx))
				return nil
			},
		},
	})
	fmt.Println("outside of a loop:", reconcilers.RetrieveIteration(context.Background()))
	// Output:
	// iteration 0
	// iteration 1
	// outside of a loop: -1
}

func ExampleForEach() {
	type mirror struct{ Region string }
	reconcile(clusterWith(site()), &reconcilers.ForEach[*v1.Resource, mirror]{
		Items: func(context.Context, *v1.Resource) ([]mirror, error) {
			return []mirror{{"east"}, {"west"}}, nil
		},
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(ctx context.Context, _ *v1.Resource) error {
				cursor := reconcilers.CursorStasher[mirror]().RetrieveOrDie(ctx)
				fmt.Printf("mirror %d of %d: %s\n", cursor.Index+1, cursor.Length, cursor.Item.Region)
				return nil
			},
		},
	})
	// Output:
	// mirror 1 of 2: east
	// mirror 2 of 2: west
}

func ExampleCursorStasher() {
	languages := func(context.Context, *v1.Resource) ([]string, error) { return []string{"de", "en"}, nil }
	sizes := func(context.Context, *v1.Resource) ([]int, error) { return []int{1, 2}, nil }
	// Loops over items of different types have separate cursors.
	reconcile(clusterWith(site()), &reconcilers.ForEach[*v1.Resource, string]{
		Items: languages,
		Reconciler: &reconcilers.ForEach[*v1.Resource, int]{
			Items: sizes,
			Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
				Sync: func(ctx context.Context, _ *v1.Resource) error {
					language := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item
					size := reconcilers.CursorStasher[int]().RetrieveOrDie(ctx).Item
					fmt.Println(language, size)
					return nil
				},
			},
		},
	})
	// Output:
	// de 1
	// de 2
	// en 1
	// en 2
}

func ExampleTryCatch() {
	errBusy := errors.New("busy")
	reconcile(clusterWith(site()), &reconcilers.TryCatch[*v1.Resource]{
		Try: do("publish", errBusy),
		Catch: func(_ context.Context, _ *v1.Resource, result reconcilers.Result, err error) (reconcilers.Result, error) {
			if errors.Is(err, errBusy) {
				fmt.Println("not now")
				return reconcilers.Result{RequeueAfter: time.Minute}, nil
			}
			return result, err
		},
		Finally: do("close the connection", nil),
	})
	// Output:
	// publish
	// not now
	// close the connection
}

func ExampleOverrideSetup() {
	pages := &reconcilers.SyncReconciler[*v1.Resource]{
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
			fmt.Println("watch every page")
			return nil
		},
		Sync: func(context.Context, *v1.Resource) error {
			fmt.Println("pages")
			return nil
		},
	}
	reconciler := &reconcilers.OverrideSetup[*v1.Resource]{
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
			fmt.Println("watch the index only")
			return nil
		},
		Reconciler: pages,
	}
	if err := reconciler.SetupWithManager(context.Background(), nil, nil); err != nil {
		fmt.Println(err)
	}
	reconcile(clusterWith(site()), reconciler)
	// Output:
	// watch the index only
	// pages
}

func ExampleSuppressTransientErrors() {
	reconciler := &reconcilers.SuppressTransientErrors[*v1.Resource, *v1.ResourceList]{
		Threshold:  2,
		Reconciler: do("publish", errors.New("connection reset")),
	}
	cluster := clusterWith(site())
	reconcile(cluster, reconciler) // The error is suppressed and retried.
	reconcile(cluster, reconciler)
	// Output:
	// publish
	// publish
	// error: connection reset
}
