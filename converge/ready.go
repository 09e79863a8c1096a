// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// observeReady looks whether a primary object that gets ready has what it has when all is quiet. Only without faults:
// with them, a status can be no better than what could be seen.
func (r *run) observeReady(e memapi.Event, before, after objectStatus) {
	if r.plan.reference != nil || r.acting != byProcess {
		return
	}
	if after.ready(e.Object.GetGeneration()) && !before.ready(e.Old.GetGeneration()) {
		r.readies = append(r.readies, readiness{
			r.step, time.Now(), e.Kind.Kind + " " + nameOf(e.Key), e.Object.GetUID(), r.snapshot(),
		})
	}
}

// readiness is the state in which an object got ready.
type readiness struct {
	step  int
	at    time.Time
	name  string
	uid   types.UID
	state *snapshot
}

// checkReady looks, after a run without faults, for objects that got ready before they had what they have. What comes
// much later is not what Ready is about.
func (r *run) checkReady() {
	for _, ready := range r.readies {
		for _, w := range ready.workloads() {
			if r.plan.waits && w.observed < w.generation {
				r.violate(
					Violation{
						Oracle: OracleStatus,
						Cause:  CauseReadyBeforeRollout,
						About:  ready.name,
						Message: fmt.Sprintf("%s is Ready before %s is rolled "+
							"out: its generation is %d, and that of its status %d",
							ready.name, w.thing, w.generation, w.observed),
					},
				)
				return
			}
		}
		at := slices.Index(r.settledAt, ready.step)
		if at < 0 {
			continue
		}
		if r.settled[at].count(r.plan.primary) == 1 { // or else it may be of another one
			for _, key := range sortedKeys(r.settled[at].cloud) {
				if _, ok := ready.state.cloud[key]; !ok && r.cloud.created[key].Sub(ready.at) < pollTime {
					r.violate(Violation{
						Oracle:  OracleStatus,
						Cause:   CauseReadyBeforeDependent,
						About:   ready.name,
						Message: fmt.Sprintf("%s is Ready before cloud %s exists", ready.name, key),
					})
					return
				}
			}
		}
		then := r.plan.flatten(ready.state)
		for n, kind := range r.settled[at].kinds {
			for _, obj := range r.settled[at].objects[n] {
				name := thingOf(kind, obj).String()
				created := obj.GetCreationTimestamp()
				if then[name] == nil && created.Sub(ready.at) < pollTime && slices.Contains(ownersOf(obj), ready.uid) {
					r.violate(Violation{
						Oracle:  OracleStatus,
						Cause:   CauseReadyBeforeDependent,
						About:   ready.name,
						Message: fmt.Sprintf("%s is Ready before %s exists", ready.name, name),
					})
					return
				}
			}
		}
	}
}

// workload is a Deployment or a StatefulSet.
type workload struct {
	thing

	generation, observed int64
	wanted, available    int32
}

// workloads are those of the object that has got ready.
func (ready readiness) workloads() []workload {
	var found []workload
	for n, kind := range ready.state.kinds {
		for _, obj := range ready.state.objects[n] {
			if w, ok := workloadOf(kind, obj); ok && slices.Contains(ownersOf(obj), ready.uid) {
				found = append(found, w)
			}
		}
	}
	return found
}

func workloadOf(kind schema.GroupVersionKind, obj client.Object) (workload, bool) {
	w := workload{thing: thingOf(kind, obj), generation: obj.GetGeneration()}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		w.observed, w.wanted, w.available = obj.Status.ObservedGeneration, count(
			obj.Spec.Replicas,
		), obj.Status.AvailableReplicas
	case *appsv1.StatefulSet:
		w.observed, w.wanted, w.available = obj.Status.ObservedGeneration, count(
			obj.Spec.Replicas,
		), obj.Status.AvailableReplicas
	default:
		return w, false
	}
	return w, true
}

// waits is true if the first object to get ready had workloads, and all of them were rolled out and available.
func (o outcome) waits() bool {
	if len(o.violations) > 0 || len(o.readies) == 0 {
		return false
	}
	workloads := o.readies[0].workloads()
	return len(workloads) > 0 &&
		!slices.ContainsFunc(
			workloads,
			func(w workload) bool { return w.observed < w.generation || w.available < w.wanted },
		)
}

// checkUnready looks, before a workload that had no replica for a while has some again, whether anybody has noticed.
// Only if that is the one fault, and nobody looks again by himself.
func (r *run) checkUnready(kind schema.GroupVersionKind, key types.NamespacedName) {
	obj := r.server.Get(kind, key)
	if obj == nil || r.flapped != thingOf(kind, obj) || !r.plan.waits || len(r.schedule) > 1 ||
		len(r.process.queue.items) > 0 {
		return
	}
	if m := r.process.manager; m != nil && m.busy {
		return
	}
	r.flapped = thing{}
	for _, primary := range r.server.List(r.plan.primary) {
		if slices.Contains(ownersOf(obj), primary.GetUID()) && primary.GetDeletionTimestamp() == nil &&
			statusOf(primary).ready(primary.GetGeneration()) {
			name := r.plan.primary.Kind + " " + nameOf(client.ObjectKeyFromObject(primary))
			r.violate(Violation{
				Oracle: OracleStatus, Cause: CauseReadyUnavailable, About: name,
				Message: fmt.Sprintf("%s is Ready although %s has no available replica", name, thingOf(kind, obj)),
			})
			return
		}
	}
}
