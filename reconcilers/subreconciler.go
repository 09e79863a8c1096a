// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/stash"
	"trueup.dev/validation"
)

// Aliases for names from other packages that most reconcilers use.
type (
	// Builder is controller-runtime's builder of controllers.
	Builder = builder.Builder
	// Manager is controller-runtime's manager.
	Manager = manager.Manager
	// Request names the resource to reconcile.
	Request = reconcile.Request
	// Result is the result of a reconcile. It specifies when to reconcile again.
	Result = reconcile.Result
	// Defaulter is a resource that sets its own defaults.
	Defaulter = validation.Defaulter
	// StashKey names a value in the stash.
	StashKey = stash.Key
	// Stasher stores and retrieves one typed value in the stash.
	Stasher[T any] = stash.Stasher[T]
)

// NewStasher returns a [Stasher] for the values stored under key.
func NewStasher[T any](key stash.Key) stash.Stasher[T] {
	return stash.New[T](key)
}

// The API of package stash, with the names of earlier versions.
var (
	WithStash                  = stash.WithContext
	StashValue                 = stash.StoreValue
	RetrieveValue              = stash.RetrieveValue
	HasValue                   = stash.HasValue
	ClearValue                 = stash.ClearValue
	ErrStashValueNotFound      = stash.ErrValueNotFound
	ErrStashValueNotAssignable = stash.ErrValueNotAssignable
)

// SubReconciler reconciles a part of a resource. All reconcilers below a root reconciler are sub reconcilers. Most of
// them are composed of other sub reconcilers.
type SubReconciler[Type client.Object] interface {
	// SetupWithManager registers the watches and indexes that the reconciler needs. It is called once, before the
	// manager starts. The context contains the config of the root reconciler.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconcile reconciles the resource and may change it in memory. The root reconciler writes changes to the status,
	// but no other changes. An error stops the reconcilers that follow. See [ErrHaltSubReconcilers] and [ErrQuiet] for
	// errors with a special meaning.
	Reconcile(ctx context.Context, resource Type) (Result, error)
}

// AggregateResults combines results. It returns the shortest non-zero RequeueAfter, Requeue if any result sets it, and
// the highest Priority.
func AggregateResults(results ...Result) Result {
	aggregate := Result{}
	for _, result := range results {
		if result.RequeueAfter != 0 && (aggregate.RequeueAfter == 0 || result.RequeueAfter < aggregate.RequeueAfter) {
			aggregate.RequeueAfter = result.RequeueAfter
		}
		if result.Priority != nil && (aggregate.Priority == nil || *result.Priority > *aggregate.Priority) {
			aggregate.Priority = result.Priority
		}
		aggregate.Requeue = aggregate.Requeue || result.Requeue //nolint:staticcheck // users' sub reconcilers may still set it
	}
	return aggregate
}

// MergeMaps returns a new map with the entries of all maps. Later entries replace earlier ones. The result is never
// nil.
func MergeMaps(maps ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			merged[k] = v
		}
	}
	return merged
}
