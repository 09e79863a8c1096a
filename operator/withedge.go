// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

var (
	_ reconcilers.SubReconciler[client.Object] = (*WithEdge[client.Object])(nil)
	_ validation.Validator                     = (*WithEdge[client.Object])(nil)
)

// WithEdge derives the action since the nested reconciler last succeeded, and passes it on: see [EdgeFrom] and
// [PreviousFrom]. It compares the state of the resource with the state that it remembers. Therefore no change is lost
// or handled twice when events are lost or repeated. The actions are:
//
//   - Created: the resource has not been handled.
//   - Resynced: this process has not handled the resource, but Handled reports that an earlier one has. Or the
//     resource is unchanged, and the cache was resynced (Resync) or OnlyChanges is false.
//   - Updated: the resource differs from the state that was last handled, in a field that React selects.
//   - Deleted: the resource is being deleted and has one of Finalizers. Or it no longer exists and its deletion was
//     not handled, which only a [Controller] detects. A resource that another replica has taken over is not deleted: it
//     is forgotten, see Shard of [reconcilers.Config]. If another resource of the same name replaces it, the deletion
//     is handled first and the creation second. A tree of reconcilers sees a deletion timestamp on a resource that
//     no longer exists.
//
// An action stays the same until it succeeds: a resource whose creation failed is still Created if it changes
// afterwards. RetryPolicy decides when to retry after an error; the retry uses the state that the resource has by
// then. A state that is older than the one that was handled is ignored.
//
// Memory: a record of about 200 bytes for each resource, and a previous state for each resource that has changed since
// it was handled.
//
// Events on the resource: Warning HandlerFailed if a retry follows, Warning RetriesExhausted if none follows. In the
// latter case a condition is also set, if the status has conditions.
type WithEdge[Type client.Object] struct {
	// Name identifies this reconciler in logs and metrics. Defaults to `WithEdge`.
	Name string

	// Reconciler is called with the edge on the context. Required.
	Reconciler reconcilers.SubReconciler[Type]

	// OnlyChanges calls the Reconciler only if the resource has changed. Defaults to false, for reconcilers that also
	// depend on other objects.
	OnlyChanges bool

	// React selects the changes that count. Defaults to [ReactAny].
	React React

	// Resync calls the Reconciler after a resync of the cache, see the SyncPeriod of the manager's cache. Defaults to
	// false.
	Resync bool

	// Finalizers keep the resource until its deletion is handled. WithEdge does not add or remove them: use
	// [Opinionated], or a [reconcilers.WithFinalizer] around this reconciler. Without Finalizers, a deletion timestamp
	// is an update, and the deletion is handled when the resource no longer exists.
	Finalizers []string

	// Handled reports whether an earlier process has handled a resource that this process does not know. By default no
	// resource counts as handled.
	Handled func(resource Type) bool

	// RetryPolicy decides when to retry after an error. By default the controller's rate limiter retries, without a
	// limit.
	RetryPolicy RetryPolicy

	// RetryDequeuePolicy decides whether a change replaces a retry. Defaults to [OpinionatedRetryDequeuePolicy], which
	// also counts labels and annotations if React does.
	RetryDequeuePolicy RetryDequeuePolicy

	// OnError is called for every failed attempt, whether it is retried or not. Optional.
	OnError func(ctx context.Context, resource Type, err error)

	// OnExhausted is called when RetryPolicy gives up, or the error is a terminal error. After that, only a change of
	// the resource, a resync or a restart leads to another attempt. Optional.
	OnExhausted func(ctx context.Context, resource Type, err error)

	// PreviousState is how much of the handled state is kept in memory. Defaults to [PreviousFull].
	PreviousState PreviousState

	lazyInit sync.Once
	// hub receives events. It is nil before the set-up.
	hub     *observe.Hub
	cluster string
	listens bool
	ledger  ledger
	place   place
}

// place describes the root that a handler runs below.
type place struct {
	// handlesAbsent reports whether the root calls Absent for resources that do not exist.
	handlesAbsent bool
	// patchesStatus reports whether the handler must write its changes of the status itself.
	patchesStatus bool
	// foreignStatus reports whether the status belongs to another controller.
	foreignStatus bool
	// gaveUp reports whether any handler of the same root has given up on a resource.
	gaveUp func(key types.NamespacedName) bool
}

// PreviousState is how much of a resource is kept in memory. Keeping less saves memory only if no cache in memory
// holds the resources: for objects of a cache, only the pointer is kept.
type PreviousState int

// What to keep.
const (
	// PreviousFull keeps everything.
	PreviousFull PreviousState = iota
	// PreviousMetadata keeps the metadata: the spec and status of a previous state are empty. For kinds without
	// generations, and for the status, any change of the resource then counts as one that React selects.
	PreviousMetadata
	// PreviousNone keeps only what identifies a state: handlers receive no previous state. In all other respects it
	// works like PreviousMetadata.
	PreviousNone
)

func (r *WithEdge[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "WithEdge"
		}
		if r.React == 0 {
			r.React = ReactAny
		}
		r.ledger.partly = r.PreviousState != PreviousFull
		r.ledger.resized = func(change int) {
			r.events().Observe(context.Background(), &observe.HandlerMemory{
				Handler: r.Name, Cluster: r.cluster, Change: change,
			})
		}
	})
}

// events returns the hub of the manager, or that of what belongs to no manager.
func (r *WithEdge[T]) events() *observe.Hub {
	if r.hub == nil {
		return metrics.Enable(nil)
	}
	return r.hub
}

// SetupWithManager records the events of the resource's kind, and sets up the nested reconciler.
func (r *WithEdge[T]) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	r.init()
	if config, err := reconcilers.RetrieveOriginalConfig(ctx); err == nil {
		r.hub = config.Hub()
	}
	r.cluster = observe.ClusterOf(mgr)
	r.ledger.resized(0)
	validating, pass := setupcheck.Begin(ctx)
	if err := r.Validate(validating); err != nil {
		return err
	}
	r.listen(ctx, bldr)
	if err := setUpHandler(ctx, mgr, bldr, r.Reconciler); err != nil {
		return err
	}
	var errs []error
	for _, problem := range pass.Rest() {
		errs = append(errs, fmt.Errorf("%s: %w", problem.Prefix, problem.Err))
	}
	return errors.Join(errs...)
}

// Validate checks the required fields and, when ctx asks for recursion, the nested reconciler.
func (r *WithEdge[T]) Validate(ctx context.Context) error {
	r.init()
	var errs []error
	if r.Reconciler == nil {
		errs = append(errs, fmt.Errorf("WithEdge %q must define Reconciler", r.Name))
	}
	if slices.Contains(r.Finalizers, "") {
		errs = append(errs, fmt.Errorf("WithEdge %q must not have an empty name in Finalizers", r.Name))
	}
	if ctx, v := setupcheck.Part(ctx, r.Reconciler, "WithEdge %q must have a valid Reconciler", r.Name); v != nil {
		if err := v.Validate(ctx); err != nil {
			errs = append(errs, fmt.Errorf("WithEdge %q must have a valid Reconciler: %w", r.Name, err))
		}
	}
	return errors.Join(errs...)
}

// under configures the reconciler for the root that it runs below.
func (r *WithEdge[T]) under(p place) { r.place = p }

// writesStatus reports whether changes of the status must be written. It returns false if the nested reconciler is a
// handler, which sees only copies of the resource.
func (r *WithEdge[T]) writesStatus() bool {
	_, copies := r.Reconciler.(*leaf[T])
	return !copies
}

// recordIntent records the action for a resource that was never handled. The action stays the same even if Handled
// returns another result later.
func (r *WithEdge[T]) recordIntent(resource T, action ReconcileAction) {
	r.ledger.with(client.ObjectKeyFromObject(resource), func(rec *record) {
		if rec.known == nil && (rec.pending == nil || rec.pending.object.GetUID() != resource.GetUID()) {
			rec.pending = &pending{action: action, object: r.snapshot(rec, resource)}
		}
	})
}

// knows reports whether the deletion of the resource is still to be handled.
func (r *WithEdge[T]) knows(key types.NamespacedName) (known bool) {
	r.ledger.with(key, func(rec *record) { known = rec.known != nil })
	return known
}

// isAcked reports whether the present state of the resource, or an equivalent one, was handled successfully.
func (r *WithEdge[T]) isAcked(resource T) (acked bool) {
	r.ledger.with(client.ObjectKeyFromObject(resource), func(rec *record) {
		acked = rec.acked != nil && rec.acked.GetUID() == resource.GetUID() &&
			rec.acked.GetGeneration() == resource.GetGeneration() &&
			(rec.pending == nil || rec.pending.acked)
	})
	return acked
}

// Reconcile calls the nested reconciler if the resource has an action to handle.
func (r *WithEdge[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *WithEdge[T]) reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	if result, err := r.handleReplaced(ctx, resource); err != nil {
		return result, err
	}
	return r.attempt(ctx, resource, false)
}

// handleReplaced calls the nested reconciler for the deletion of an earlier resource of the same name, if that was not
// handled yet. It returns an error until the call has succeeded, or was given up.
func (r *WithEdge[T]) handleReplaced(ctx context.Context, resource T) (reconcilers.Result, error) {
	replaced, ok := r.replaced(resource)
	if !ok {
		return reconcilers.Result{}, nil
	}
	result, err := r.attempt(ctx, replaced, true)
	if isTerminal(err) {
		err = nil
	}
	return result, err
}

// Absent handles a resource that does not exist. It calls the nested reconciler for the deletion if it has handled the
// resource before.
func (r *WithEdge[T]) Absent(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
	r.init()
	last, certain := r.ledger.absent(req.NamespacedName)
	resource, ok := last.(T)
	if !ok {
		return reconcilers.Result{}, nil
	}
	if divided := isDivided(ctx); !certain || divided {
		exists, err := isStored(ctx, resource)
		if exists && certain {
			r.ledger.moved(resource)
		}
		if exists || err != nil {
			return reconcilers.Result{}, err
		}
	}
	return step.Run(ctx, step.Node{Name: r.Name}, resource, func(
		ctx context.Context, resource T,
	) (reconcilers.Result, error) {
		return r.attempt(ctx, resource, true)
	})
}
