// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// statusOracle checks that the status of a primary object describes the generation that it names, and that Ready does
// not come too early or stay too long.
type statusOracle struct {
	evidence

	// faults is the number of faults of the schedule.
	faults int
	// readies are the states in which objects became ready.
	readies []readiness
	// flapped is a workload that has no available replica for a while.
	flapped state.Thing
}

// readiness is the state in which an object became ready.
type readiness struct {
	step  int
	at    time.Time
	name  string
	uid   types.UID
	state *state.Snapshot
}

func (o *statusOracle) report(cause Cause, name, format string, args ...any) {
	o.violate(Violation{
		Oracle: OracleStatus, Cause: cause, About: name, Message: name + ": " + fmt.Sprintf(format, args...),
	})
}

// changed checks a status that the process writes.
func (o *statusOracle) changed(e memapi.Event) {
	if e.Type != watch.Modified {
		return
	}
	before, after := state.StatusOf(e.Old), state.StatusOf(e.Object)
	name, generation := o.primaryName(e.Object), e.Object.GetGeneration()
	switch {
	case after.Observed > generation:
		o.report(CauseObservedGeneration, name, "observedGeneration is %d, of generation %d", after.Observed, generation)
	case after.Observed < before.Observed && !o.world.lateWrite:
		o.report(CauseObservedGeneration, name, "observedGeneration goes from %d back to %d", before.Observed, after.Observed)
	}
	for _, condition := range after.Conditions {
		if condition.ObservedGeneration > generation {
			o.conditionGeneration(name, condition, generation)
		}
		old := meta.FindStatusCondition(before.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && !old.LastTransitionTime.IsZero() &&
			!old.LastTransitionTime.Equal(&condition.LastTransitionTime) {
			o.report(
				CauseTransitionTime, name, "condition %s: lastTransitionTime changes, but the status remains %s",
				condition.Type, condition.Status,
			)
		}
	}
	// Only in runs without faults: with faults, a Ready condition may be based on a stale cache.
	if o.plan.recordsReference() && after.Ready(generation) && !before.Ready(e.Old.GetGeneration()) {
		o.readies = append(o.readies, readiness{
			o.trace.step, time.Now(), name, e.Object.GetUID(), o.world.snapshot(),
		})
	}
}

func (o *statusOracle) conditionGeneration(name string, condition metav1.Condition, generation int64) {
	o.report(
		CauseObservedGeneration, name, "condition %s: observedGeneration is %d, of generation %d", condition.Type,
		condition.ObservedGeneration, generation,
	)
}

// settled checks that the status of primary objects is of their last generation, unless the last reconcile has failed.
func (o *statusOracle) settled() {
	if o.trace.lastError() != nil {
		return
	}
	for _, obj := range o.world.server.List(o.running.primary) {
		if obj.GetDeletionTimestamp() != nil {
			continue // the deletion is another generation, which another finalizer may delay
		}
		status, name, generation := state.StatusOf(obj), o.primaryName(obj), obj.GetGeneration()
		if status.Observed != 0 && status.Observed != generation {
			o.report(CauseObservedGeneration, name, "observedGeneration is %d, of generation %d", status.Observed, generation)
			return
		}
		for _, condition := range status.Conditions {
			if condition.ObservedGeneration != 0 && condition.ObservedGeneration != generation && !status.Unready(generation) {
				o.conditionGeneration(name, condition, generation)
				return
			}
		}
	}
}

// checkReady reports, after a run without faults, an object that became ready before its dependents existed or were
// rolled out. Dependents that are created much later are not what Ready is about.
func (o *statusOracle) checkReady() {
	early := func(cause Cause, ready readiness, rest string) {
		o.violate(Violation{
			Oracle: OracleStatus, Cause: cause, About: ready.name, Message: ready.name + " is Ready before " + rest,
		})
	}
	for _, ready := range o.readies {
		for _, w := range ready.workloads() {
			if o.running.waits && w.Observed < w.Generation {
				early(CauseReadyBeforeRollout, ready, fmt.Sprintf(
					"%s is rolled out: its generation is %d, and that of its status %d", w.Name, w.Generation, w.Observed,
				))
				return
			}
		}
		if missing := o.missing(ready); missing != "" {
			early(CauseReadyBeforeDependent, ready, missing+" exists")
			return
		}
	}
}

// missing names an object that existed at the Settle after an object became ready, but not yet at that time, or
// returns "".
func (o *statusOracle) missing(ready readiness) string {
	at := slices.Index(o.trace.settledAt, ready.step)
	if at < 0 {
		return ""
	}
	settled := o.trace.settled[at]
	if settled.Count(o.running.primary) == 1 { // otherwise it may belong to another primary object
		for _, key := range phrase.SortedKeys(settled.Cloud) {
			if _, ok := ready.state.Cloud[key]; !ok && o.world.cloud.created[key].Sub(ready.at) < pollTime {
				return "cloud " + key
			}
		}
	}
	then, names := o.plan.reader().Flatten(ready.state), settled.Names()
	for n, kind := range settled.Kinds {
		for _, obj := range settled.Objects[n] {
			name := names.Thing(kind, obj).String()
			created := obj.GetCreationTimestamp()
			if then[name] == nil && created.Sub(ready.at) < pollTime && isOwnedBy(obj, ready.uid) {
				return name
			}
		}
	}
	return ""
}

// workloads are those of the object that became ready.
func (ready readiness) workloads() []state.Workload {
	var found []state.Workload
	for n, kind := range ready.state.Kinds {
		for _, obj := range ready.state.Objects[n] {
			if w, ok := state.WorkloadOf(kind, obj); ok && isOwnedBy(obj, ready.uid) {
				found = append(found, w)
			}
		}
	}
	return found
}

// recovering is called before a delayed actor makes a workload available again. It checks whether a primary object
// still is Ready. That is a violation only if the workload is the one fault, and if no request is queued.
func (o *statusOracle) recovering(kind schema.GroupVersionKind, key types.NamespacedName, of processes) {
	obj := o.world.server.Get(kind, key)
	if obj == nil || o.flapped != o.world.generated.Thing(kind, obj) || !o.running.waits || o.faults > 1 {
		return
	}
	if !of.empty() || of.haveRunnables() {
		return
	}
	o.flapped = state.Thing{}
	for _, primary := range o.world.server.List(o.running.primary) {
		if isOwnedBy(obj, primary.GetUID()) && primary.GetDeletionTimestamp() == nil &&
			state.StatusOf(primary).Ready(primary.GetGeneration()) {
			name := o.primaryName(primary)
			o.violate(Violation{
				Oracle: OracleStatus, Cause: CauseReadyUnavailable, About: name,
				Message: fmt.Sprintf("%s is Ready although %s has no available replica", name, o.world.generated.Thing(kind, obj)),
			})
			return
		}
	}
}

// readyMeansAvailable reports whether the first object that became ready had workloads, and all of them were rolled out
// and available.
func readyMeansAvailable(o outcome) bool {
	if len(o.violations) > 0 || len(o.readies) == 0 {
		return false
	}
	workloads := o.readies[0].workloads()
	return len(workloads) > 0 &&
		!slices.ContainsFunc(
			workloads, func(w state.Workload) bool { return w.Observed < w.Generation || w.Available < w.Wanted },
		)
}

// isFlapping makes a workload the one that recovering checks.
func (o *statusOracle) isFlapping(kind schema.GroupVersionKind, obj client.Object) {
	o.flapped = o.world.generated.Thing(kind, obj)
}
