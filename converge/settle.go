// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// stayTime is how much later all objects are reconciled again.
const stayTime = 61 * time.Second

// settle waits until the controller is idle, injects the faults of that moment, and lets the oracles check the state.
func (r *run) settle() {
	r.trace.user(Settle(), nil)
	r.scheduler.startSettle()
	clear(r.scheduler.waited)
	r.work(time.Time{})
	if r.failed() {
		return
	}
	if r.disturb() {
		r.work(time.Time{})
	}
	r.waitForPolling()
	if r.failed() {
		return
	}
	s := r.world.snapshot()
	r.faults.off = true
	r.oracles.settled(s, r.users.skipped, func() []*informer { return r.process.informers }, r.reconcileAll)
	r.faults.off = false
	r.requested = nil
	r.users.settled()
	r.trace.settle(s)
}

// disturb injects the faults of an idle controller, and reports whether it has injected one.
func (r *run) disturb() bool {
	disturbed := false
	step := types.NamespacedName{Name: fmt.Sprint("step ", r.trace.step+1)}
	if r.faults.at(site{"quiet", "", step}, setOf(FaultRestart)) == FaultRestart {
		r.trace.fault("process", "ends", FaultRestart)
		r.crash()
		disturbed = true
	}
	for _, i := range slices.Clone(r.process.informers) {
		var moments []int
		if r.plan.faults.has(FaultStaleStart) {
			moments = staleMoments(r.world.eventsOf(i.kind), i.kind == r.plan.primary)
		}
		for _, back := range moments {
			at := site{"quiet", i.kind.Kind, types.NamespacedName{Namespace: step.Name, Name: fmt.Sprint(back, " back")}}
			if r.faults.at(at, setOf(FaultStaleStart)) == FaultStaleStart {
				r.trace.fault(
					"process", fmt.Sprintf("ends; the cache of %s starts %s behind", i.kind.Kind, plural(back, "event")),
					FaultStaleStart,
				)
				r.crash()
				r.stale = append(r.stale, staleStart{i.kind, back})
				disturbed = true
			}
		}
	}
	return r.others.disturb() || disturbed
}

// waitForPolling lets time pass for requests that poll, and for work that handlers have delayed.
func (r *run) waitForPolling() {
	for range maxWaits {
		if r.failed() || r.process.queue.empty() && r.process.manager == nil {
			return
		}
		changes := r.trace.changes
		time.Sleep(stayTime)
		r.scheduler.startSettle()
		r.work(time.Time{})
		if r.trace.changes == changes {
			return
		}
	}
}

// reconcileAll reconciles all objects again.
func (r *run) reconcileAll() {
	r.trace.note("checks", "reconciles all objects again")
	for _, i := range r.process.informers {
		if i.kind == r.plan.primary {
			i.resync = true
		}
	}
	time.Sleep(stayTime) // for work that depends on the time of day
	// Predicates may drop a resync.
	for _, req := range r.requested {
		r.process.ask(req)
	}
	r.scheduler.startSettle()
	r.work(time.Time{})
}

// sortedKeys returns the sorted keys of a map.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
