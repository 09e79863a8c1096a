// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// desired returns what Scenario.Desired finds wrong with the state, or why it could not read the state.
func (r *run) desired() error {
	var failures []error
	err := r.plan.Desired(State{run: r, failures: &failures})
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	return err
}

// checkState compares the state to what it should be.
func (r *run) checkState(s *snapshot) {
	if r.plan.Desired != nil {
		if err := r.desired(); err != nil {
			r.violate(Violation{Oracle: OracleEndState, Cause: CauseNotDesired, Message: err.Error()})
		}
		return
	}
	if r.plan.reference == nil {
		return
	}
	found := r.plan.differences(r.plan.reference.at(r.step), s, r.plan.reference.masked)
	for _, step := range r.skipped {
		// What users change before it was acted on may as well never have been.
		if quick := r.plan.reference.quick[step]; quick != nil {
			found = notIn(found, r.plan.differences(quick.at(r.step), s, r.plan.reference.masked))
		}
	}
	if len(found) == 0 {
		return
	}
	// What there is too much of tells more than what is otherwise.
	slices.SortStableFunc(found, func(a, b difference) int { return cmp.Compare(a.rank(), b.rank()) })
	v := Violation{
		Oracle: OracleEndState, Cause: found[0].cause, About: found[0].name, Message: found[0].lines[0],
		Details: found[0].lines[1:],
	}
	for _, d := range found[1:] {
		v.Details = append(v.Details, d.lines...)
	}
	switch {
	case found[0].cause == CauseUnexpected && r.leftOver(v.About):
		v.Oracle = OracleDeletion
	case found[0].extra:
		v.Oracle, v.Cause = OracleDuplicates, CauseDuplicate
	}
	r.violate(v)
}

// notIn returns the differences of objects that are not as they would be otherwise, either.
func notIn(found, otherwise []difference) []difference {
	return slices.DeleteFunc(found, func(d difference) bool {
		return !slices.ContainsFunc(otherwise, func(o difference) bool { return o.name == d.name })
	})
}

// leftOver is true for what the run without faults has deleted by now.
func (r *run) leftOver(name string) bool {
	for _, s := range r.plan.reference.settled {
		if _, ok := r.plan.flatten(s)[name]; ok {
			return true
		}
	}
	return false
}

// checkGone looks for what is left over after all primary objects have gone.
func (r *run) checkGone(s *snapshot) {
	if len(r.server.List(r.plan.primary)) > 0 || r.step < len(r.plan.Steps)-1 || r.plan.Desired != nil {
		// What is still going before the end may wait for what users do next.
		for _, obj := range r.server.List(r.plan.primary) {
			if obj.GetDeletionTimestamp() != nil && r.step == len(r.plan.Steps)-1 {
				name := r.plan.primary.Kind + " " + nameOf(client.ObjectKeyFromObject(obj))
				r.violate(Violation{
					Oracle: OracleDeletion, Cause: CauseNotDeleted, About: name,
					Message: fmt.Sprintf("%s still exists; finalizers: %s", name, strings.Join(obj.GetFinalizers(), ", ")),
				})
				return
			}
		}
		return
	}
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			if r.own[obj.GetUID()] {
				name := thingOf(kind, obj).String()
				r.violate(Violation{
					Oracle:  OracleDeletion,
					Cause:   CauseLeftOver,
					About:   name,
					Message: name + " is left over: its owner no longer exists",
				})
				return
			}
		}
	}
	for _, key := range sortedKeys(s.cloud) {
		r.violate(Violation{
			Oracle: OracleDeletion, Cause: CauseLeftOver, About: "cloud " + key,
			Message: "cloud " + key + " is left over: its owner no longer exists",
		})
		return
	}
}

// checkObserved looks whether the status of primary objects is of their last generation.
func (r *run) checkObserved() {
	for _, obj := range r.server.List(r.plan.primary) {
		if obj.GetDeletionTimestamp() != nil {
			continue // which is another generation, and may be held by others
		}
		status := statusOf(obj)
		name := r.plan.primary.Kind + " " + nameOf(client.ObjectKeyFromObject(obj))
		if status.observed != 0 && status.observed != obj.GetGeneration() {
			r.violate(Violation{
				Oracle: OracleStatus,
				Cause:  CauseObservedGeneration,
				About:  name,
				Message: fmt.Sprintf(
					"%s: observedGeneration is %d, of generation %d",
					name,
					status.observed,
					obj.GetGeneration(),
				),
			})
			return
		}
		for _, condition := range status.conditions {
			if condition.ObservedGeneration != 0 && condition.ObservedGeneration != obj.GetGeneration() {
				r.violate(
					Violation{
						Oracle: OracleStatus,
						Cause:  CauseObservedGeneration,
						About:  name,
						Message: fmt.Sprintf("%s: condition %s: observedGeneration is "+
							"%d, of generation %d",
							name, condition.Type, condition.ObservedGeneration, obj.GetGeneration()),
					},
				)
				return
			}
		}
	}
}

// stayTime is how much later everything is reconciled again.
const stayTime = 61 * time.Second

// checkStay reconciles everything once more, or twice: that must not change anything.
func (r *run) checkStay() {
	r.checking = true
	defer func() { r.checking = false }()
	rounds := 1
	if r.twice {
		rounds = 2
	}
	for range rounds {
		effects, idle := r.effects, r.idle
		r.again()
		if r.failed() {
			return
		}
		if effect := r.lastEffect; r.effects != effects {
			v := Violation{
				Oracle: OracleIdempotence, Cause: CauseRedundantWrite, About: effect,
				Message: "another reconcile, without any change, writes: " + effect,
			}
			if _, off := r.plan.Off[OracleIdempotence]; off {
				continue
			}
			written := r.effects
			r.again()
			if !r.failed() && r.effects == written {
				v.Cause = CauseMissedWork
				v.Message += ", which was due before"
			}
			r.violations = nil // this came first
			r.violate(v)
			return
		}
		if r.idle != idle && r.plan.Strict {
			r.violate(Violation{
				Oracle: OracleAdvice, Cause: CauseNoOpWrite,
				Message: plural(r.idle-idle, "request") + " without an effect when all objects are reconciled again",
			})
		}
	}
}

// again reconciles everything.
func (r *run) again() {
	r.log.note(r, "checks", "reconciles everything again")
	for _, i := range r.process.informers {
		if i.kind == r.plan.primary {
			i.resync = true
		}
	}
	time.Sleep(stayTime) // for what depends on the time of day
	// Predicates may take a resync for nothing.
	for _, req := range r.requested {
		r.process.ask(req)
	}
	r.recent, r.quietAt = 0, time.Now()
	r.work(time.Time{})
}

// checkShared looks for objects of the cache that were changed.
func (r *run) checkShared() {
	for _, i := range r.process.informers {
		for _, s := range i.shared {
			if !reflect.DeepEqual(s.given, s.stored) {
				name := i.kind.Kind + " " + nameOf(client.ObjectKeyFromObject(s.stored))
				r.violate(Violation{
					Oracle:  OracleSharedObjects,
					Cause:   CauseCacheModified,
					About:   name,
					Message: name + " of the cache was modified",
				})
				return
			}
		}
	}
}

// checkCounts compares what was created and deleted in the whole run.
func (r *run) checkCounts() {
	if r.plan.reference == nil || r.failed() || r.between {
		return
	}
	if v, ok := r.made.excess(r.plan.reference, r.skipped, r.plan.Desired != nil); ok {
		r.violate(v)
	}
}

// observeOutside looks whether a primary object has a finalizer when it first has an effect outside.
func (r *run) observeOutside(verb, key string) {
	if !r.primaryIsThere() {
		return
	}
	name := r.process.activity(r.serving.who).NamespacedName
	if primary := r.server.Get(r.plan.primary, name); len(primary.GetFinalizers()) == 0 {
		r.unprotected = append(r.unprotected, unprotected{
			r.plan.primary.Kind + " " + nameOf(name), "cloud " + verb + " " + key,
		})
	}
}

// unprotected is an object that had no finalizer when something happened outside.
type unprotected struct{ name, by string }

// checkProtected fails if an object has got its finalizer only after the first effect outside.
func (r *run) checkProtected() {
	for _, u := range r.unprotected {
		if r.finalized[u.name] {
			r.violate(Violation{
				Oracle: OracleDeletion, Cause: CauseUnprotected, About: u.name,
				Message: fmt.Sprintf("%s has no finalizer yet at the first effect outside of the cluster: %s", u.name, u.by),
			})
			return
		}
	}
}
