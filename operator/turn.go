// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/reconcilers"
)

// turn is the decision for a resource: to handle an action, to do nothing, or to wait.
type turn[Type client.Object] struct {
	action   ReconcileAction
	resource Type
	// absent reports whether the resource no longer exists.
	absent   bool
	previous client.Object
	// snapshot is the resource in the form that the ledger keeps.
	snapshot client.Object
	listed   bool
	resynced bool
	attempt  int
	state    map[string]any
	// wait is the time to wait for the pending call. If it is positive, nothing else happens.
	wait    time.Duration
	pending *pending
	// changed reports whether the resource differs from the state that was handled.
	changed bool
}

// replaced returns an earlier resource of the same name that no longer exists and whose deletion was not handled.
func (r *WithEdge[T]) replaced(resource T) (T, bool) {
	var replaced client.Object
	r.ledger.with(client.ObjectKeyFromObject(resource), func(rec *record) {
		if rec.known != nil && rec.known.GetUID() != resource.GetUID() && !olderThan(resource, rec.known) {
			replaced = rec.tombstone()
		}
	})
	typed, ok := replaced.(T)
	return typed, ok
}

// begin decides what to do about a resource, and records that the handler is running. The action is unknown if nothing
// is to be done.
func (r *WithEdge[T]) begin(resource T, absent bool) turn[T] {
	t := turn[T]{resource: resource, absent: absent}
	r.ledger.with(client.ObjectKeyFromObject(resource), func(rec *record) {
		t.resynced, rec.resynced = rec.resynced, false
		if !absent && rec.finished != resource.GetUID() && !rec.has(rec.finished) {
			rec.finished = ""
		}
		switch {
		case absent || rec.known == nil:
		case olderThan(resource, rec.known):
			return
		case rec.known.GetUID() != resource.GetUID():
			// Its deletion was tried and given up.
			rec.forget()
		}
		if t.action = ReconcileActionDeleted; !absent {
			t.action = r.actionFor(rec, resource, t.resynced)
		}
		if t.action == ReconcileActionUnknown {
			return
		}
		t.changed = rec.acked != nil && r.React.differs(rec.acked, resource)
		t.listed, t.previous = rec.listed, rec.acked
		if r.PreviousState == PreviousNone {
			t.previous = nil
		}
		if rec.pending != nil && !r.resume(rec, &t) {
			return
		}
		t.snapshot = r.snapshot(rec, resource)
		rec.known = t.snapshot
		rec.busy = true
	})
	return t
}

func (r *WithEdge[T]) actionFor(rec *record, resource T, resynced bool) ReconcileAction {
	unchanged := ReconcileActionUnknown
	if !r.OnlyChanges {
		unchanged = ReconcileActionResynced
	}
	switch {
	case rec.finished != "" && rec.finished == resource.GetUID():
		return unchanged
	case isDeleting(resource) && slices.ContainsFunc(resource.GetFinalizers(), r.isOurFinalizer):
		return ReconcileActionDeleted
	case isDeleting(resource) && (len(r.Finalizers) > 0 || rec.acked == nil):
		// If the resource was handled before, its deletion is handled once it no longer exists.
		return unchanged
	case rec.acked == nil:
		if rec.pending != nil {
			return rec.pending.action
		}
		if r.Handled != nil && r.Handled(resource) {
			return ReconcileActionResynced
		}
		return ReconcileActionCreated
	case r.React.differs(rec.acked, resource):
		return ReconcileActionUpdated
	case rec.pending != nil:
		return rec.pending.action
	case resynced && r.Resync:
		return ReconcileActionResynced
	}
	return unchanged
}

func (r *WithEdge[T]) isOurFinalizer(name string) bool {
	return slices.Contains(r.Finalizers, name)
}

// resume continues the pending call, or drops it because the resource has changed. It returns false if the call is not
// due.
func (r *WithEdge[T]) resume(rec *record, t *turn[T]) bool {
	p := rec.pending
	if t.resource.GetUID() != p.object.GetUID() || t.resource.GetGeneration() != p.object.GetGeneration() {
		p.state = nil
	}
	if r.supersedes(p, t) || p.exhausted && (t.resynced || t.absent) {
		p.attempt, p.exhausted, p.due, p.quietUntil = 0, false, time.Time{}, time.Time{}
	}
	t.wait = time.Until(p.due)
	if !sameState(p.object, t.resource) {
		t.wait = max(t.wait, time.Until(p.quietUntil))
	}
	if r.OnlyChanges && (p.exhausted || t.wait > 0) {
		t.pending = p
		return false
	}
	t.wait, t.attempt, t.state = 0, p.attempt, p.state
	return true
}

// supersedes reports whether a change of the resource replaces the pending call.
func (r *WithEdge[T]) supersedes(p *pending, t *turn[T]) bool {
	if t.action == ReconcileActionDeleted && p.action != ReconcileActionDeleted {
		return true
	}
	if sameState(p.object, t.resource) {
		return false
	}
	if p.acked && t.changed {
		// The pending call is a requested one, not a retry.
		return true
	}
	if r.RetryDequeuePolicy != nil {
		if r.RetryDequeuePolicy(ResourceActionFromReconcileAction(t.action), t.resource,
			ResourceActionFromReconcileAction(p.action), p.object, p.err) {
			return true
		}
		if t.action == p.action {
			return false
		}
		// The policy keeps the retry of one action, and does not delay another one.
	}
	return r.React.supersedes(p.object, t.resource)
}

// snapshot returns the form of a handled resource that the ledger keeps.
func (r *WithEdge[T]) snapshot(rec *record, resource T) client.Object {
	if r.PreviousState == PreviousFull {
		return rec.held(resource)
	}
	return r.part(resource)
}

// part returns the part of a resource that is kept if PreviousState is not PreviousFull.
func (r *WithEdge[T]) part(resource client.Object) client.Object {
	part := empty.Like(resource)
	part.SetNamespace(resource.GetNamespace())
	part.SetName(resource.GetName())
	part.SetUID(resource.GetUID())
	part.SetResourceVersion(resource.GetResourceVersion())
	part.SetGeneration(resource.GetGeneration())
	part.SetCreationTimestamp(resource.GetCreationTimestamp())
	part.SetDeletionTimestamp(resource.GetDeletionTimestamp())
	if r.PreviousState == PreviousMetadata || r.React.metadataCounts() {
		copied := resource.DeepCopyObject().(client.Object)
		part.SetLabels(copied.GetLabels())
		part.SetAnnotations(copied.GetAnnotations())
		part.SetFinalizers(copied.GetFinalizers())
		part.SetOwnerReferences(copied.GetOwnerReferences())
	}
	return part
}

// settle records the outcome of a turn.
func (r *WithEdge[T]) settle(t turn[T], absent bool, outcome outcome) {
	r.ledger.with(client.ObjectKeyFromObject(t.resource), func(rec *record) {
		rec.busy = false
		switch {
		case outcome.again != nil && outcome.again.exhausted && absent:
			// A deleted resource cannot change, so no retry follows.
			rec.finish(t.resource.GetUID(), absent)
		case outcome.again != nil:
			rec.pending = outcome.again
			if outcome.acked && t.action != ReconcileActionDeleted {
				rec.acked, rec.known = t.snapshot, t.snapshot
			}
		case !outcome.acked:
		case t.action == ReconcileActionDeleted:
			rec.finish(t.resource.GetUID(), absent)
		default:
			rec.acked, rec.known, rec.pending = t.snapshot, t.snapshot, nil
		}
		if !r.place.handlesAbsent && rec.deleted != nil && rec.deleted.GetUID() == t.resource.GetUID() {
			// It was deleted during the call, and no request will follow.
			rec.forget()
			rec.finished = ""
		}
	})
}

// outcome is the result of a turn.
type outcome struct {
	// acked reports whether the call succeeded.
	acked bool
	// again is the next call, nil if there is none.
	again  *pending
	result reconcilers.Result
	err    error
}
