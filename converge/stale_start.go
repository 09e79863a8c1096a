// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"trueup.dev/internal/memapi"
)

// staleStart is a cache that starts with an old list.
type staleStart struct {
	kind schema.GroupVersionKind
	// back is the number of events of the kind that it lacks.
	back int
}

func (s staleStart) begin(r *run, i *informer) {
	events := r.world.eventsOf(s.kind)
	if len(events) < s.back {
		return
	}
	at := len(events) - s.back
	i.objects = nil
	clear(i.selected)
	for n, e := range events {
		e, ok := i.shows(e)
		switch {
		case ok && n < at:
			i.store(e.Type, e.Key, e.Object)
		case ok:
			i.coming = append(i.coming, e)
		}
	}
	i.position = events[at].Version - 1
	i.held = &hold{fault: FaultLagReconcile, reconcile: r.trace.reconciles}
}

// meaning classifies the watch events before which a cache may start.
type meaning int

const (
	ordinary meaning = iota
	// creation is the creation of an object.
	creation
	// deletion is the start or the end of the deletion of an object, and earlierLife that of one of the same name as an
	// object that was created later.
	deletion
	earlierLife
	// generation is a change of the generation of a primary object.
	generation
)

// staleMoments lists how many events behind a cache may start: so that it lacks one of the last events, or everything
// since an event that decisions depend on. It has momentsEach of each kind, the most recent ones, in ascending order.
func staleMoments(events []memapi.Event, primary bool) []int {
	const momentsEach = 3
	var moments []int
	created, found := map[types.NamespacedName]bool{}, map[meaning]int{}
	for back := 1; back <= len(events); back++ {
		e := events[len(events)-back]
		m := meaningOf(e, primary)
		if m == deletion && created[e.Key] {
			m = earlierLife
		}
		if m == creation {
			created[e.Key] = true
		}
		if m != ordinary {
			found[m]++
		}
		if back <= momentsEach || m != ordinary && found[m] <= momentsEach {
			moments = append(moments, back)
		}
	}
	return moments
}

func meaningOf(e memapi.Event, primary bool) meaning {
	switch {
	case e.Type == watch.Added:
		return creation
	case e.Type == watch.Deleted, e.Object.GetDeletionTimestamp() != nil && e.Old.GetDeletionTimestamp() == nil:
		return deletion
	case primary && e.Object.GetGeneration() != e.Old.GetGeneration():
		return generation
	}
	return ordinary
}
