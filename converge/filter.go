// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Filter drops events for the reconciler of New, as a predicate of For, Owns or Watches does.
type Filter struct {
	// Object has the kind of the events. The default is all kinds in For, Owns and Watches.
	Object client.Object
	// Predicate returns false for an event that leads to no request. All runs share it, so that it must have no state.
	// Required.
	Predicate predicate.Predicate
}

type filterOf struct {
	Filter

	// kind is empty for all kinds.
	kind schema.GroupVersionKind
}

// filtersOf returns the predicates for the events of a kind.
func (p *program) filtersOf(kind schema.GroupVersionKind) []predicate.Predicate {
	var predicates []predicate.Predicate
	for _, f := range p.filters {
		if f.kind.Empty() || f.kind == kind {
			predicates = append(predicates, f.Predicate)
		}
	}
	return predicates
}

// drops reports whether a filter drops a change.
func (i *informer) drops(c change) bool {
	for _, p := range i.filters {
		if !i.passes(p, c) {
			return true
		}
	}
	return false
}

func (i *informer) passes(p predicate.Predicate, c change) bool {
	switch {
	case c.after == nil && c.before == nil:
		return false
	case c.after == nil:
		return p.Delete(event.DeleteEvent{Object: i.share(c.before), DeleteStateUnknown: c.unseen})
	case c.before == nil:
		return p.Create(event.CreateEvent{Object: i.share(c.after), IsInInitialList: c.initial})
	default:
		return p.Update(event.UpdateEvent{ObjectOld: i.share(c.before), ObjectNew: i.share(c.after)})
	}
}
