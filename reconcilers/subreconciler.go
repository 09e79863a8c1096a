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

// Names from other packages that nearly every reconciler mentions.
type (
	// Builder is controller-runtime's builder of controllers.
	Builder = builder.Builder
	// Manager is controller-runtime's manager.
	Manager = manager.Manager
	// Request names the resource to reconcile.
	Request = reconcile.Request
	// Result tells when to reconcile again.
	Result = reconcile.Result
	// Defaulter is a resource that can fill in its own defaults.
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

// The stash, under the names it has always had here. See package stash.
var (
	WithStash                  = stash.WithContext
	StashValue                 = stash.StoreValue
	RetrieveValue              = stash.RetrieveValue
	HasValue                   = stash.HasValue
	ClearValue                 = stash.ClearValue
	ErrStashValueNotFound      = stash.ErrValueNotFound
	ErrStashValueNotAssignable = stash.ErrValueNotAssignable
)

// SubReconciler is a part of the reconciliation of a resource. All reconcilers below a root reconciler are sub
// reconcilers, and most are composed of others.
type SubReconciler[Type client.Object] interface {
	// SetupWithManager registers watches and indexes the reconciler needs. It is called once, before the manager starts,
	// with a context that holds the config of the root reconciler.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconcile works on the resource, which it may change in memory: changes to its status are written by the root
	// reconciler, changes to anything else are not. An error stops the reconcilers that follow; see
	// [ErrHaltSubReconcilers] and [ErrQuiet] for the errors with a meaning of their own.
	Reconcile(ctx context.Context, resource Type) (Result, error)
}

// AggregateResults combines results: the earliest non-zero RequeueAfter, Requeue when any asks for it, and the highest
// Priority.
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

// MergeMaps returns a new map with the entries of all maps, later ones winning. It is never nil.
func MergeMaps(maps ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			merged[k] = v
		}
	}
	return merged
}
