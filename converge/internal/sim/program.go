// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/access"
	"trueup.dev/graph/rbac"
)

// Program is what a process runs: the parts of a valid scenario that the authors of controllers write.
type Program struct {
	// Index is the index among the programs of the scenario. name is empty for the first one, that of New or Setup.
	Index int
	Name  string
	// Client is the name of the client of its processes. Events have it.
	Client string

	// Build is set for scenarios with New, and setup for those with Setup.
	Build   func(*Process) reconcile.Reconciler
	Setup   func(manager.Manager) error
	Indexes func(client.FieldIndexer) error

	Owns     []schema.GroupVersionKind
	Watches  []WatchOf
	Filters  []FilterOf
	Uncached map[schema.GroupVersionKind]bool
	// Webhooks are those that configurations name.
	Webhooks []Webhook
	// Roles are what its processes may do. Nil allows everything.
	Roles []access.Role
	// Recorder records what its processes need. Optional.
	Recorder *rbac.Recorder
	// Assigned reports whether a primary object is assigned to the program. Optional.
	Assigned func(client.Object) bool
}

// WatchOf is a kind whose changes lead to requests: one of both functions returns these.
type WatchOf struct {
	Kind        schema.GroupVersionKind
	Requests    handler.MapFunc
	NewRequests func(*Process) handler.MapFunc
}

// who names the processes of the program in timelines.
func (p *Program) who() string {
	if p.Name == "" {
		return "process"
	}
	return p.Name
}

// reconcileName names the n-th reconcile of a run in timelines.
func (p *Program) reconcileName(n int) string {
	if p.Name == "" {
		return "reconcile " + strconv.Itoa(n)
	}
	return "reconcile " + strconv.Itoa(n) + " of " + p.Name
}

// FilterOf drops events of a kind, or of all kinds if that is empty.
type FilterOf struct {
	Kind      schema.GroupVersionKind
	Predicate predicate.Predicate
}

// filtersOf returns the predicates for the events of a kind.
func (p *Program) filtersOf(kind schema.GroupVersionKind) []predicate.Predicate {
	var predicates []predicate.Predicate
	for _, f := range p.Filters {
		if f.Kind.Empty() || f.Kind == kind {
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
