// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/reconcilers"
)

// listen makes the ledger record the watch events of the resource's kind. An event takes this path:
//
//	cache -> ledgerPredicate -> the user's predicates -> queue -> Reconcile
//
// The ledger must record an event before the queue receives its request, so that the request sees the event, and must
// also record the events that the user's predicates drop. Only a predicate before the predicates of the user is at that
// place: the builder does not accept another event handler for the resource itself, and a second handler of the cache
// would run concurrently with the one that fills the queue.
func (r *WithEdge[T]) listen(ctx context.Context, bldr *reconcilers.Builder) {
	r.init()
	if !r.listens {
		r.listens = true
		bldr.WithEventFilter(r.ledgerPredicate(reconcilers.RetrieveOriginalResourceType(ctx)))
	}
}

// ledgerPredicate returns a predicate that filters nothing. It passes the events of the resource's kind to the ledger.
// A controller may also watch other kinds, and the predicate receives their events too.
func (r *WithEdge[T]) ledgerPredicate(resourceType client.Object) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if isKindOf(e.Object, resourceType) {
				r.ledger.appeared(r.kept(e.Object), e.IsInInitialList)
			}
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if isKindOf(e.ObjectNew, resourceType) {
				r.ledger.changed(e.ObjectOld, r.kept(e.ObjectNew))
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			if isKindOf(e.Object, resourceType) {
				r.ledger.vanished(e.Object, r.place.handlesAbsent)
			}
			return true
		},
	}
}

// isKindOf reports whether an object has the kind of resourceType. Objects of a cache may not carry their kind; then
// the Go types are compared.
func isKindOf(obj, resourceType client.Object) bool {
	kind := resourceType.GetObjectKind().GroupVersionKind().GroupKind()
	if have := obj.GetObjectKind().GroupVersionKind().GroupKind(); !have.Empty() && !kind.Empty() {
		return have == kind
	}
	return reflect.TypeOf(obj) == reflect.TypeOf(resourceType)
}

// kept returns what the ledger keeps of an object of the cache: the object itself, which needs no additional memory,
// or the part that PreviousState allows.
func (r *WithEdge[T]) kept(obj client.Object) client.Object {
	if r.PreviousState == PreviousFull {
		return obj
	}
	return r.part(obj)
}
