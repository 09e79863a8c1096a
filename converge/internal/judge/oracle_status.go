// SPDX-License-Identifier: Apache-2.0

package judge

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

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// statusOracle checks that the status of a primary object describes the generation that it names, and that Ready does
// not come too early or stay too long.
type statusOracle struct {
	Evidence

	// faults is the number of faults of the schedule.
	faults int
	// Readies are the states in which objects became ready.
	Readies []readiness
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

func (o *statusOracle) report(cause finding.Cause, name, format string, args ...any) {
	o.Violate(finding.Violation{
		Oracle: finding.OracleStatus, Cause: cause, About: name, Message: name + ": " + fmt.Sprintf(format, args...),
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
		o.generation(name, "observedGeneration is %d, of generation %d", after.Observed, generation)
	case after.Observed < before.Observed && !o.World.LateWrite:
		o.generation(name, "observedGeneration goes from %d back to %d", before.Observed, after.Observed)
	}
	for _, condition := range after.Conditions {
		if condition.ObservedGeneration > generation {
			o.conditionGeneration(name, condition, generation)
		}
		old := meta.FindStatusCondition(before.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && !old.LastTransitionTime.IsZero() &&
			!old.LastTransitionTime.Equal(&condition.LastTransitionTime) {
			o.report(
				finding.CauseTransitionTime, name, "condition %s: lastTransitionTime changes, but the status remains %s",
				condition.Type, condition.Status,
			)
		}
	}
	// Only in runs without faults: with faults, a Ready condition may be based on a stale cache.
	if o.Scenario.Records && after.Ready(generation) && !before.Ready(e.Old.GetGeneration()) {
		o.Readies = append(o.Readies, readiness{
			o.Trace.Step, time.Now(), name, e.Object.GetUID(), o.World.Snapshot(),
		})
	}
}

func (o *statusOracle) generation(name, format string, args ...any) {
	o.report(finding.CauseObservedGeneration, name, format, args...)
}

func (o *statusOracle) conditionGeneration(name string, condition metav1.Condition, generation int64) {
	o.generation(
		name, "condition %s: observedGeneration is %d, of generation %d", condition.Type, condition.ObservedGeneration,
		generation,
	)
}

// settled checks that the status of primary objects is of their last generation, unless the last reconcile has failed.
// A controller that refuses a spec with a warning may leave the status as it is.
func (o *statusOracle) settled() {
	if o.Trace.LastError() != nil {
		return
	}
	for _, obj := range o.World.Server.List(o.Running.Primary) {
		if obj.GetDeletionTimestamp() != nil || o.Trace.MayFail && o.Trace.Warnings().About(obj) {
			continue // the deletion is another generation, which another finalizer may delay
		}
		status, name, generation := state.StatusOf(obj), o.primaryName(obj), obj.GetGeneration()
		if status.Observed != 0 && status.Observed != generation {
			o.generation(name, "observedGeneration is %d, of generation %d", status.Observed, generation)
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
	early := func(cause finding.Cause, ready readiness, rest string) {
		o.Violate(finding.Violation{
			Oracle: finding.OracleStatus, Cause: cause, About: ready.name, Message: ready.name + " is Ready before " + rest,
		})
	}
	for _, ready := range o.Readies {
		for _, w := range ready.workloads() {
			if o.Running.Waits && w.Observed < w.Generation {
				early(finding.CauseReadyBeforeRollout, ready, fmt.Sprintf(
					"%s is rolled out: its generation is %d, and that of its status %d", w.Name, w.Generation, w.Observed,
				))
				return
			}
		}
		if missing := o.missing(ready); missing != "" {
			early(finding.CauseReadyBeforeDependent, ready, missing+" exists")
			return
		}
	}
}

// missing names an object that existed at the Settle after an object became ready, but not yet at that time, or
// returns "".
func (o *statusOracle) missing(ready readiness) string {
	at := slices.Index(o.Trace.SettledAt, ready.step)
	if at < 0 {
		return ""
	}
	settled := o.Trace.Settled[at]
	if settled.Count(o.Running.Primary) == 1 { // otherwise it may belong to another primary object
		for _, key := range phrase.SortedKeys(settled.Cloud) {
			if _, ok := ready.state.Cloud[key]; !ok && o.World.Cloud.Created[key].Sub(ready.at) < PollTime {
				return "cloud " + key
			}
		}
	}
	then, names := o.Scenario.Reader.Flatten(ready.state), settled.Names()
	for n, kind := range settled.Kinds {
		for _, obj := range settled.Objects[n] {
			name := names.Thing(kind, obj).String()
			created := obj.GetCreationTimestamp()
			if then[name] == nil && created.Sub(ready.at) < PollTime && world.IsOwnedBy(obj, ready.uid) {
				return name
			}
		}
	}
	return ""
}

// workloads are the workloads of the object that became ready.
func (ready readiness) workloads() []state.Workload {
	var found []state.Workload
	for n, kind := range ready.state.Kinds {
		for _, obj := range ready.state.Objects[n] {
			if w, ok := state.WorkloadOf(kind, obj); ok && world.IsOwnedBy(obj, ready.uid) {
				found = append(found, w)
			}
		}
	}
	return found
}

// Recovering is called before a delayed actor makes a workload available again. It checks whether a primary object
// still is Ready. That is a violation only if the workload is the one fault, and if no request is queued.
func (o *statusOracle) Recovering(kind schema.GroupVersionKind, key types.NamespacedName) {
	obj := o.World.Server.Get(kind, key)
	if obj == nil || o.flapped != o.World.Generated.Thing(kind, obj) || !o.Running.Waits || o.faults > 1 {
		return
	}
	if !o.Queues.Quiet() {
		return
	}
	o.flapped = state.Thing{}
	for _, primary := range o.World.Server.List(o.Running.Primary) {
		if world.IsOwnedBy(obj, primary.GetUID()) && primary.GetDeletionTimestamp() == nil &&
			state.StatusOf(primary).Ready(primary.GetGeneration()) {
			name := o.primaryName(primary)
			o.Violate(finding.Violation{
				Oracle: finding.OracleStatus, Cause: finding.CauseReadyUnavailable, About: name,
				Message: fmt.Sprintf("%s is Ready although %s has no available replica", name, o.World.Generated.Thing(kind, obj)),
			})
			return
		}
	}
}

// ReadyMeansAvailable reports whether the first object that became ready had workloads, and all of them were rolled out
// and available.
func ReadyMeansAvailable(o Outcome) bool {
	if len(o.Violations) > 0 || len(o.Readies) == 0 {
		return false
	}
	workloads := o.Readies[0].workloads()
	return len(workloads) > 0 &&
		!slices.ContainsFunc(
			workloads, func(w state.Workload) bool { return w.Observed < w.Generation || w.Available < w.Wanted },
		)
}

// IsFlapping makes a workload the one that recovering checks.
func (o *statusOracle) IsFlapping(kind schema.GroupVersionKind, obj client.Object) {
	o.flapped = o.World.Generated.Thing(kind, obj)
}
