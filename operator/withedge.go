// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/setupcheck"
	"trueup.dev/internal/step"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

var (
	_ reconcilers.SubReconciler[client.Object] = (*WithEdge[client.Object])(nil)
	_ validation.Validator                     = (*WithEdge[client.Object])(nil)
)

// WithEdge tells the reconciler below it what has happened to the resource since that reconciler was last successful:
// see [EdgeFrom] and [PreviousFrom]. It derives that from the state of the resource and from what it remembers, so that
// nothing is lost or told twice because events are:
//
//   - Created: the resource has not been handled.
//   - Resynced: it has not been handled by this process, and has a mark of having been handled before (Handled). Or it
//     has not changed, and the cache is resynced (Resync) or OnlyChanges is false.
//   - Updated: it differs from what was last handled, in what React selects.
//   - Deleted: it is being deleted and has one of Finalizers; or it is gone without that having been told, which only a
//     [Controller] notices. Another resource of the same name is a deletion first and then a creation. Trees of
//     reconcilers see a resource that is gone with a deletion timestamp.
//
// An action is the same until it succeeds: what could not be created is still to be created when it has changed since.
// An error is retried as RetryPolicy says, with the resource as it is by then. A resource that is older than what was
// handled already is not handled.
//
// Memory: a record of about 200 bytes for each resource, and a former state for those that have changed since they were
// handled.
//
// Events on the resource: Warning HandlerFailed when a retry is due, Warning RetriesExhausted when there is none; that
// is also a condition of the status, if the status has conditions.
type WithEdge[Type client.Object] struct {
	// Name identifies this reconciler in logs and metrics. Defaults to `WithEdge`.
	Name string

	// Reconciler is called with the edge on the context. Required.
	Reconciler reconcilers.SubReconciler[Type]

	// OnlyChanges calls the Reconciler only if something has happened to the resource. Defaults to false, for reconcilers
	// that look at other things, too.
	OnlyChanges bool

	// React selects what counts as a change. Defaults to [ReactAny].
	React React

	// Resync makes a resync of the cache, see the SyncPeriod of the manager's cache, something that has happened. Defaults
	// to false.
	Resync bool

	// Finalizers are those that keep the resource until its deletion was handled. Something else has to set and clear
	// them: [Opinionated], or a [reconcilers.WithFinalizer] around this reconciler. Without any, a resource that is being
	// deleted has changed, and is deleted when it is gone.
	Finalizers []string

	// Handled tells whether a resource that this process does not know was handled by an earlier one. Defaults to never.
	Handled func(resource Type) bool

	// RetryPolicy tells when to try again after an error. By default the controller's rate limiter does, without end.
	RetryPolicy RetryPolicy

	// RetryDequeuePolicy tells whether a change replaces a retry. Defaults to [OpinionatedRetryDequeuePolicy], which also
	// counts labels and annotations if React does.
	RetryDequeuePolicy RetryDequeuePolicy

	// OnError is called for every attempt that has failed, whether it is tried again or not. Optional.
	OnError func(ctx context.Context, resource Type, err error)

	// OnExhausted is called when RetryPolicy has given up, or the error is a terminal one. Then only a change of the
	// resource, a resync or a restart lead to another attempt. Optional.
	OnExhausted func(ctx context.Context, resource Type, err error)

	// PreviousState is how much is remembered of what was handled. Defaults to [PreviousFull].
	PreviousState PreviousState

	lazyInit sync.Once
	listens  bool
	ledger   ledger
	place    place
}

// place is where a handler is.
type place struct {
	// asksAbsent is true below a root that asks what to do about resources that are gone.
	asksAbsent bool
	// patchesStatus is true when nobody else writes what is changed in the status.
	patchesStatus bool
	// foreignStatus is true when the status is none of the controller's business.
	foreignStatus bool
	// gaveUp tells whether any handler of the same root has given up on a resource.
	gaveUp func(key types.NamespacedName) bool
}

// PreviousState is how much of a resource is remembered. Less than everything saves memory only where the resources are
// not in the memory of a cache anyway: what a cache holds is kept by its pointer.
type PreviousState int

// What to remember.
const (
	// PreviousFull is everything.
	PreviousFull PreviousState = iota
	// PreviousMetadata is the metadata: spec and status of a previous state are empty. For kinds without generations, and
	// for the status, any change of the resource counts then as one that React selects.
	PreviousMetadata
	// PreviousNone is just what tells one state from another: there is no previous state. Otherwise it is as
	// PreviousMetadata.
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
		r.ledger.size = remembered.WithLabelValues(r.Name)
	})
}

// SetupWithManager has the events of the resource's kind noted, and sets up the nested reconciler.
func (r *WithEdge[T]) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	r.init()
	validating, pass := setupcheck.Begin(ctx)
	if err := r.Validate(validating); err != nil {
		return err
	}
	r.listen(ctx, bldr)
	if err := r.Reconciler.SetupWithManager(ctx, mgr, bldr); err != nil {
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

// notes is a predicate that lets all events pass and notes those of resources.
func (r *WithEdge[T]) notes(resourceType client.Object) predicate.Predicate {
	kind := resourceType.GetObjectKind().GroupVersionKind().GroupKind()
	ours := func(obj client.Object) bool {
		if have := obj.GetObjectKind().GroupVersionKind().GroupKind(); !have.Empty() && !kind.Empty() {
			return have == kind
		}
		return reflect.TypeOf(obj) == reflect.TypeOf(resourceType)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if ours(e.Object) {
				r.ledger.appeared(r.noted(e.Object), e.IsInInitialList)
			}
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if ours(e.ObjectNew) {
				r.ledger.changed(e.ObjectOld, r.noted(e.ObjectNew))
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			if ours(e.Object) {
				r.ledger.vanished(e.Object, r.place.asksAbsent)
			}
			return true
		},
	}
}

// listen has the events of the resource's kind noted. Predicates are asked before the request is queued: what they note
// is there when the request is worked on. Those of an author that leave events out must not be asked before.
func (r *WithEdge[T]) listen(ctx context.Context, bldr *reconcilers.Builder) {
	r.init()
	if !r.listens {
		r.listens = true
		bldr.WithEventFilter(r.notes(reconcilers.RetrieveOriginalResourceType(ctx)))
	}
}

// noted is what the ledger keeps of an object of the cache: the object itself, which costs nothing, or less if the
// cache may not keep objects in memory either.
func (r *WithEdge[T]) noted(obj client.Object) client.Object {
	if r.PreviousState == PreviousFull {
		return obj
	}
	return r.part(obj)
}

// under has the reconciler work below a root that helps it.
func (r *WithEdge[T]) under(p place) { r.place = p }

// writesStatus is true unless the nested reconciler is a handler that sees only copies of the resource.
func (r *WithEdge[T]) writesStatus() bool {
	_, copies := r.Reconciler.(*leaf[T])
	return !copies
}

// intend notes what a resource that was never handled is to be handled as, whatever else may say so from now on.
func (r *WithEdge[T]) intend(resource T, action ReconcileAction) {
	r.ledger.with(client.ObjectKeyFromObject(resource), func(rec *record) {
		if rec.known == nil && (rec.pending == nil || rec.pending.object.GetUID() != resource.GetUID()) {
			rec.pending = &pending{action: action, object: r.snapshot(rec, resource)}
		}
	})
}

// knows is true for a resource whose deletion is still to be told.
func (r *WithEdge[T]) knows(key types.NamespacedName) (known bool) {
	r.ledger.with(key, func(rec *record) { known = rec.known != nil })
	return known
}

// isAcked is true for a resource whose present state, or one that differs in nothing that counts, was handled with
// success.
func (r *WithEdge[T]) isAcked(resource T) (acked bool) {
	r.ledger.with(client.ObjectKeyFromObject(resource), func(rec *record) {
		acked = rec.acked != nil && rec.acked.GetUID() == resource.GetUID() &&
			rec.acked.GetGeneration() == resource.GetGeneration() &&
			(rec.pending == nil || rec.pending.acked)
	})
	return acked
}

// Reconcile calls the nested reconciler if there is something to tell it.
func (r *WithEdge[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *WithEdge[T]) reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	if result, err := r.bury(ctx, resource); err != nil {
		return result, err
	}
	return r.attempt(ctx, resource, false)
}

// bury tells the nested reconciler of the deletion of another resource of the same name, if it has not been told yet.
// Until that has succeeded, or was given up, there is an error.
func (r *WithEdge[T]) bury(ctx context.Context, resource T) (reconcilers.Result, error) {
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

// Absent is for a resource that does not exist: the nested reconciler is told of its deletion, if it knows of the
// resource.
func (r *WithEdge[T]) Absent(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
	r.init()
	gone, certain := r.ledger.absent(req.NamespacedName)
	resource, ok := gone.(T)
	if !ok {
		return reconcilers.Result{}, nil
	}
	if !certain {
		if exists, err := isStored(ctx, resource); exists || err != nil {
			return reconcilers.Result{}, err
		}
	}
	return step.Run(ctx, step.Node{Name: r.Name}, resource, func(
		ctx context.Context, resource T,
	) (reconcilers.Result, error) {
		return r.attempt(ctx, resource, true)
	})
}
