// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// turn is what to do about a resource: an action, or nothing, or to wait.
type turn[Type client.Object] struct {
	action   ReconcileAction
	resource Type
	// gone is true for a resource that is there no more.
	gone     bool
	previous client.Object
	// snapshot is the resource as it is remembered.
	snapshot client.Object
	listed   bool
	resynced bool
	attempt  int
	state    map[string]any
	// wait is how long to wait for what is pending, instead of doing anything.
	wait    time.Duration
	pending *pending
	// changed is true when the resource differs from what was handled.
	changed bool
}

// replaced returns another resource of the same name that is gone, without its deletion having been handled.
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

// begin decides what to do about a resource, and notes that it is being done. The action unknown is for nothing.
func (r *WithEdge[T]) begin(resource T, gone bool) turn[T] {
	t := turn[T]{resource: resource, gone: gone}
	r.ledger.with(client.ObjectKeyFromObject(resource), func(rec *record) {
		t.resynced, rec.resynced = rec.resynced, false
		if !gone && rec.finished != resource.GetUID() && !rec.has(rec.finished) {
			rec.finished = ""
		}
		switch {
		case gone || rec.known == nil:
		case olderThan(resource, rec.known):
			return
		case rec.known.GetUID() != resource.GetUID():
			// Its deletion was tried, and was given up.
			rec.forget()
		}
		if t.action = ReconcileActionDeleted; !gone {
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
		// It is told of when it is gone, if it was handled before.
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

// resume takes up what is pending, or drops it because the resource has changed. It returns false when there is nothing
// to do yet.
func (r *WithEdge[T]) resume(rec *record, t *turn[T]) bool {
	p := rec.pending
	if t.resource.GetUID() != p.object.GetUID() || t.resource.GetGeneration() != p.object.GetGeneration() {
		p.state = nil
	}
	if r.supersedes(p, t) || p.exhausted && (t.resynced || t.gone) {
		p.attempt, p.exhausted, p.due, p.calm = 0, false, time.Time{}, time.Time{}
	}
	t.wait = time.Until(p.due)
	if !sameState(p.object, t.resource) {
		t.wait = max(t.wait, time.Until(p.calm))
	}
	if r.OnlyChanges && (p.exhausted || t.wait > 0) {
		t.pending = p
		return false
	}
	t.wait, t.attempt, t.state = 0, p.attempt, p.state
	return true
}

// supersedes tells whether a change of the resource replaces what is pending.
func (r *WithEdge[T]) supersedes(p *pending, t *turn[T]) bool {
	if t.action == ReconcileActionDeleted && p.action != ReconcileActionDeleted {
		return true
	}
	if sameState(p.object, t.resource) {
		return false
	}
	if p.acked && t.changed {
		// It waits for nothing but another call.
		return true
	}
	if r.RetryDequeuePolicy != nil {
		return r.RetryDequeuePolicy(ResourceActionFromReconcileAction(t.action), t.resource,
			ResourceActionFromReconcileAction(p.action), p.object, p.err)
	}
	return r.React.supersedes(p.object, t.resource)
}

// snapshot is what to remember of a resource that is handled.
func (r *WithEdge[T]) snapshot(rec *record, resource T) client.Object {
	if r.PreviousState == PreviousFull {
		return rec.held(resource)
	}
	return r.part(resource)
}

// part is what is remembered of a resource when not everything is.
func (r *WithEdge[T]) part(resource client.Object) client.Object {
	part := blankLike(resource)
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

// settle notes how a turn has ended, and returns what the reconciler is to return. What cannot be handled is reported
// by the caller.
func (r *WithEdge[T]) settle(t turn[T], gone bool, outcome outcome) {
	r.ledger.with(client.ObjectKeyFromObject(t.resource), func(rec *record) {
		rec.busy = false
		switch {
		case outcome.again != nil && outcome.again.exhausted && gone:
			// There is nothing that could change any more.
			rec.finish(t.resource.GetUID(), gone)
		case outcome.again != nil:
			rec.pending = outcome.again
			if outcome.acked && t.action != ReconcileActionDeleted {
				rec.acked, rec.known = t.snapshot, t.snapshot
			}
		case !outcome.acked:
		case t.action == ReconcileActionDeleted:
			rec.finish(t.resource.GetUID(), gone)
		default:
			rec.acked, rec.known, rec.pending = t.snapshot, t.snapshot, nil
		}
		if !r.place.asksAbsent && rec.gone != nil && rec.gone.GetUID() == t.resource.GetUID() {
			// It has gone meanwhile, and nobody will ask.
			rec.forget()
			rec.finished = ""
		}
	})
}

// outcome is how a turn has ended.
type outcome struct {
	// acked is true for a success.
	acked bool
	// again is what to do again, if anything.
	again  *pending
	result reconcilers.Result
	err    error
}
