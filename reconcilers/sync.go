// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*SyncReconciler[client.Object])(nil)

// SyncReconciler runs the user's functions, for example to look up reference data, to call APIs outside of Kubernetes,
// or for any task that no other reconciler covers.
//
// If the resource is being deleted, or the reconciler is part of a step of [Steps] that is removed, Finalize is called
// instead of Sync. State that must be cleaned up needs a
// finalizer: wrap the SyncReconciler in [WithFinalizer].
//
// RBAC: the permissions that the functions need. To derive them, set Describe.
type SyncReconciler[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `SyncReconciler`.
	Name string

	// Setup registers watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SyncDuringFinalization also calls Sync while the resource is being deleted, before Finalize. Defaults to false.
	SyncDuringFinalization bool

	// Sync reconciles a resource that is not being deleted. Exactly one of Sync and SyncWithResult is required.
	Sync func(ctx context.Context, resource Type) error

	// SyncWithResult is like Sync and returns a result.
	SyncWithResult func(ctx context.Context, resource Type) (Result, error)

	// Finalize cleans up while the resource is being deleted. It cannot be combined with FinalizeWithResult. Optional.
	Finalize func(ctx context.Context, resource Type) error

	// FinalizeWithResult is like Finalize and returns a result.
	FinalizeWithResult func(ctx context.Context, resource Type) (Result, error)

	// Describe adds what the functions read and write to the graph of reconcilers, from which permissions are derived.
	// Kinds that Setup watches are known without it. Optional.
	Describe func(n *graph.Node)

	lazyInit sync.Once
}

func (r *SyncReconciler[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "SyncReconciler"
		}
	})
}

// SetupWithManager validates the reconciler and calls Setup.
func (r *SyncReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the combination of functions.
func (r *SyncReconciler[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer]. It calls Describe.
func (r *SyncReconciler[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *SyncReconciler[T]) describe(d *description) {
	r.init()
	d.is("SyncReconciler", r.Name)
	d.require(r.Sync != nil || r.SyncWithResult != nil, "must implement Sync or SyncWithResult")
	d.require(r.Sync == nil || r.SyncWithResult == nil, "may not implement both Sync and SyncWithResult")
	d.require(r.Finalize == nil || r.FinalizeWithResult == nil, "may not implement both Finalize and FinalizeWithResult")
	d.setsUp(r.Setup)
	if r.Describe != nil {
		d.accesses(r.Describe)
	}
}

// Reconcile calls Sync, Finalize or both. An error from Sync skips Finalize.
func (r *SyncReconciler[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *SyncReconciler[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	deleting := MustRemove(ctx, resource)
	result := Result{}
	if !deleting || r.SyncDuringFinalization {
		synced, err := call(ctx, resource, r.Sync, r.SyncWithResult)
		result = AggregateResults(result, synced)
		if err != nil {
			logUnlessQuiet(ctx, err, "unable to sync")
			return result, err
		}
	}
	if deleting {
		finalized, err := call(ctx, resource, r.Finalize, r.FinalizeWithResult)
		result = AggregateResults(result, finalized)
		if err != nil {
			logUnlessQuiet(ctx, err, "unable to finalize")
			return result, err
		}
	}
	return result, nil
}

// call calls the form of a function that is set.
func call[T client.Object](
	ctx context.Context, resource T,
	plain func(context.Context, T) error, withResult func(context.Context, T) (Result, error),
) (Result, error) {
	switch {
	case withResult != nil:
		return withResult(ctx, resource)
	case plain != nil:
		return Result{}, plain(ctx, resource)
	default:
		return Result{}, nil
	}
}

func logUnlessQuiet(ctx context.Context, err error, message string, values ...any) {
	if errors.Is(err, ErrHaltSubReconcilers) {
		waitsFrom(ctx).halted(ctx)
	}
	if !isSilent(ctx, err) {
		logr.FromContextOrDiscard(ctx).Error(err, message, values...)
	}
}
