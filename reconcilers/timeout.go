// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*Timeout[client.Object])(nil)

// Timeout runs a sub reconciler with a deadline on its context. If the sub reconciler fails after the deadline, the
// error is an [ErrTimeout], and the controller retries the request with back-off. A sub reconciler that ignores its
// context is not interrupted, and one that succeeds after the deadline has succeeded.
//
// The root writes the status afterwards without the deadline.
type Timeout[Type client.Object] struct {
	// Name identifies this reconciler in logs and in the error. Defaults to `Timeout`.
	Name string

	// After is the time that Reconciler may take. Required.
	After time.Duration

	// Reconciler is the sub reconciler to run. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
}

// ErrTimeout is the error of a [Timeout]. [errors.Is] matches it with [context.DeadlineExceeded] and with the error of
// the nested reconciler.
type ErrTimeout struct {
	// Step is the name of the Timeout.
	Step string
	// After is the time that the nested reconciler was allowed to take.
	After time.Duration
	// Err is the error of the nested reconciler, or nil before it has returned.
	Err error
}

func (err *ErrTimeout) Error() string {
	text := fmt.Sprintf("%s did not finish within %s", err.Step, err.After)
	if err.Err == nil {
		return text
	}
	return text + ": " + err.Err.Error()
}

// Unwrap returns [context.DeadlineExceeded] and the error of the nested reconciler.
func (err *ErrTimeout) Unwrap() []error {
	return append([]error{context.DeadlineExceeded}, nonNil(err.Err)...)
}

func (r *Timeout[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Timeout"
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler.
func (r *Timeout[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *Timeout[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Timeout[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Timeout[T]) describe(d *description) {
	r.init()
	d.is("Timeout", r.Name)
	d.require(r.After > 0, "must define a positive After, got %s", r.After)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Reconciler with the deadline.
func (r *Timeout[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Timeout[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	exceeded := &ErrTimeout{Step: r.Name, After: r.After}
	limited, cancel := context.WithTimeoutCause(ctx, r.After, exceeded)
	defer cancel()
	result, err := r.Reconciler.Reconcile(limited, resource)
	if err == nil || isQuiet(err) || context.Cause(limited) != error(exceeded) { //nolint:errorlint // this deadline only
		return result, err
	}
	if errors.Is(err, exceeded) {
		return result, err
	}
	return result, &ErrTimeout{Step: r.Name, After: r.After, Err: err}
}
