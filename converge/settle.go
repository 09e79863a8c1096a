// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/apiserver"
)

// Violation is something that an oracle has found.
type Violation struct {
	Oracle Oracle
	// About is the object that it is about, if it is about one.
	About string
	// Message tells what is wrong.
	Message string
	// Details are further lines.
	Details []string
}

// scenarioItself is not an oracle: the scenario makes no sense.
const scenarioItself Oracle = "scenario"

func (v Violation) String() string { return string(v.Oracle) + ": " + v.Message }

// violate notes a violation. The first one ends the run: what comes after it comes of it.
func (r *run) violate(v Violation) {
	if _, off := r.plan.Off[v.Oracle]; off {
		return
	}
	r.violations = append(r.violations, v)
	r.log.violation(r, v)
}

func (r *run) failed() bool { return len(r.violations) > 0 }

// settle waits until all is quiet, and has the oracles look.
func (r *run) settle() {
	r.log.user(r, Settle(), nil)
	r.recent, r.quietAt = 0, time.Now()
	r.work(time.Time{})
	if r.failed() {
		return
	}
	if r.disturb() {
		r.work(time.Time{})
	}
	if r.failed() {
		return
	}
	s := r.snapshot()
	r.checkState(s)
	if !r.failed() {
		r.checkGone(s)
	}
	if !r.failed() {
		r.checkObserved()
	}
	if !r.failed() {
		r.checkStay()
	}
	if !r.failed() {
		r.checkShared()
	}
	r.settled = append(r.settled, s)
	r.settledAt = append(r.settledAt, r.step)
}

// disturb does what can go wrong when all is quiet, and returns true if something has.
func (r *run) disturb() bool {
	disturbed := false
	step := types.NamespacedName{Name: fmt.Sprint("step ", r.step+1)}
	if r.meet(site{"quiet", "", step}, setOf(Restart)) == Restart {
		r.log.fault(r, "process", "is ended", Restart)
		r.crash()
		disturbed = true
	}
	for _, i := range slices.Clone(r.process.informers) {
		for back := 1; back <= 3; back++ {
			at := site{"quiet", i.kind.Kind, types.NamespacedName{Namespace: step.Name, Name: fmt.Sprint(back, " back")}}
			if r.meet(at, setOf(Stale)) == Stale {
				r.log.fault(r, "process", fmt.Sprintf("is ended, and begins with %s of %s ago", i.kind.Kind, plural(back, "event")), Stale)
				r.crash()
				r.stale = append(r.stale, staleStart{i.kind, back})
				disturbed = true
			}
		}
	}
	for _, kind := range r.server.Kinds() {
		for _, obj := range r.server.List(kind) {
			if !r.own[obj.GetUID()] || obj.GetDeletionTimestamp() != nil || ended(obj) {
				continue
			}
			key := client.ObjectKeyFromObject(obj)
			switch r.meet(site{"quiet", kind.Kind, key}, setOf(ChildDeleted, Drift)) {
			case ChildDeleted:
				r.disturbObject(kind, key, "delete", ChildDeleted, func(obj client.Object) error {
					return r.other.Delete(r.ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
				})
				disturbed = true
			case Drift:
				r.disturbObject(kind, key, "change", Drift, r.drift)
				disturbed = true
			}
		}
	}
	return disturbed
}

func (r *run) disturbObject(kind schema.GroupVersionKind, key types.NamespacedName, verb string, fault Fault, do func(client.Object) error) {
	defer r.as("somebody")()
	r.made.explain(r, kind, key)
	obj := r.withKind(r.server.Get(kind, key), kind)
	err := do(obj)
	r.log.fault(r, "somebody", verb+" "+kind.Kind+" "+nameOf(key)+failure(err), fault)
}

// checkState compares the state to what it should be.
func (r *run) checkState(s *snapshot) {
	if r.plan.Desired != nil {
		if err := r.plan.Desired(State{r}); err != nil {
			r.violate(Violation{Oracle: EndState, Message: err.Error()})
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
			found = r.notIn(found, r.plan.differences(quick.at(r.step), s, r.plan.reference.masked))
		}
	}
	if len(found) == 0 {
		return
	}
	v := Violation{Oracle: EndState, About: found[0].name, Message: found[0].lines[0], Details: found[0].lines[1:]}
	for _, d := range found[1:] {
		v.Details = append(v.Details, d.lines...)
	}
	switch {
	case strings.HasSuffix(v.Message, "should not be there") && r.leftOver(v.About):
		v.Oracle = Deletion
	case strings.HasSuffix(v.About, ")"):
		v.Oracle = Duplicates
	}
	r.violate(v)
}

// notIn returns the differences of objects that are not as they would be otherwise, either.
func (r *run) notIn(found, otherwise []difference) []difference {
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
		for _, obj := range r.server.List(r.plan.primary) {
			if obj.GetDeletionTimestamp() != nil {
				name := r.plan.primary.Kind + " " + nameOf(client.ObjectKeyFromObject(obj))
				r.violate(Violation{Oracle: Deletion, About: name, Message: fmt.Sprintf("%s is not gone: it has the finalizers %s", name, strings.Join(obj.GetFinalizers(), ", "))})
				return
			}
		}
		return
	}
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			if r.own[obj.GetUID()] {
				name := thingOf(kind, obj).String()
				r.violate(Violation{Oracle: Deletion, About: name, Message: name + " is left over: nothing that it could belong to is there any more"})
				return
			}
		}
	}
	for _, key := range sortedKeys(s.cloud) {
		r.violate(Violation{Oracle: Deletion, About: "cloud " + key, Message: "cloud " + key + " is left over: nothing that it could belong to is there any more"})
		return
	}
}

// checkObserved looks whether the status of primary objects is of their last generation.
func (r *run) checkObserved() {
	for _, obj := range r.server.List(r.plan.primary) {
		status := statusOf(obj)
		name := r.plan.primary.Kind + " " + nameOf(client.ObjectKeyFromObject(obj))
		if status.observed != 0 && status.observed != obj.GetGeneration() {
			r.violate(Violation{Oracle: Status, About: name, Message: fmt.Sprintf("%s: observedGeneration is %d, of generation %d", name, status.observed, obj.GetGeneration())})
			return
		}
		for _, condition := range status.conditions {
			if condition.ObservedGeneration != 0 && condition.ObservedGeneration != obj.GetGeneration() {
				r.violate(Violation{Oracle: Status, About: name, Message: fmt.Sprintf("%s: condition %s: observedGeneration is %d, of generation %d",
					name, condition.Type, condition.ObservedGeneration, obj.GetGeneration())})
				return
			}
		}
	}
}

// stayTime is how much later everything is reconciled again.
const stayTime = 61 * time.Second

// checkStay reconciles everything once more, twice without faults: that must not change anything.
func (r *run) checkStay() {
	r.checking = true
	defer func() { r.checking = false }()
	rounds := 1
	if len(r.schedule) == 0 {
		rounds = 2
	}
	for range rounds {
		effects, idle := r.effects, r.idle
		r.log.note(r, "checks", "reconciles everything again")
		for _, i := range r.process.informers {
			if i.kind == r.plan.primary {
				i.resync = true
			}
		}
		time.Sleep(stayTime) // for what depends on the time of day
		r.recent, r.quietAt = 0, time.Now()
		r.work(time.Time{})
		if r.failed() {
			return
		}
		if r.effects != effects {
			r.violate(Violation{Oracle: Idempotence, About: r.lastEffect, Message: "reconciling again, with nothing to do, writes: " + r.lastEffect})
			return
		}
		if r.idle != idle && r.plan.Strict {
			r.violate(Violation{Oracle: Advice, Message: plural(r.idle-idle, "request") + " without an effect when everything is reconciled again"})
		}
	}
}

// checkShared looks for objects of the cache that were changed.
func (r *run) checkShared() {
	for _, i := range r.process.informers {
		for _, s := range i.shared {
			if !sameStrictly(s.given, s.stored) {
				name := i.kind.Kind + " " + nameOf(client.ObjectKeyFromObject(s.stored))
				r.violate(Violation{Oracle: SharedObjects, About: name, Message: name + " of the cache was changed"})
				return
			}
		}
	}
}

// checkCounts compares what was created and deleted in the whole run.
func (r *run) checkCounts() {
	if r.plan.reference == nil || r.failed() {
		return
	}
	if message := r.made.excess(r.plan.reference, r.skipped, r.plan.Desired != nil); message != "" {
		about, _, _ := strings.Cut(message, ": ")
		r.violate(Violation{Oracle: Duplicates, About: about, Message: message})
	}
}

// checkResult looks at how a reconcile has ended.
func (r *run) checkResult(a *activity) {
	name := nameOf(a.NamespacedName)
	switch {
	case a.panicked != nil:
		r.violate(Violation{Oracle: Errors, About: name, Message: fmt.Sprintf("the reconcile of %s panics: %v", name, a.panicked), Details: userFrames(a.stack)})
	case isTerminal(a.err) && (len(a.failed) > 0 || transient(a.err)):
		r.violate(Violation{Oracle: Errors, About: name, Message: fmt.Sprintf("the reconcile of %s ends with a terminal error for what is transient: %v", name, a.err)})
	}
	r.lastResult = a
}

func isTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

// transient is true for errors that another attempt may not meet.
func transient(err error) bool {
	return apierrs.IsConflict(err) || apierrs.IsTimeout(err) || apierrs.IsServerTimeout(err) || apierrs.IsTooManyRequests(err) || apierrs.IsInternalError(err) ||
		errors.Is(err, context.DeadlineExceeded)
}

// restless tells that reconciles do not come to an end.
func (r *run) restless(long string) Violation {
	v := Violation{Oracle: Quiescence, Message: "does not get quiet " + long}
	if a := r.lastResult; a != nil {
		v.About = nameOf(a.NamespacedName)
		switch {
		case a.err != nil:
			v.Message += ", " + v.About + " fails: " + a.err.Error()
		case r.lastEffect != "":
			v.Message += ", the last effect: " + r.lastEffect
		}
	}
	if len(r.process.active) > 0 && time.Since(r.quietAt) > r.plan.Patience {
		v.Message = "the reconcile of " + nameOf(r.process.active[0].NamespacedName) + " does not return"
	}
	return v
}

// observeReady looks whether a primary object that gets ready has what it has when all is quiet. Only without faults: with them, a status can be no
// better than what could be seen.
func (r *run) observeReady(e apiserver.Event, before, after objectStatus) {
	if r.plan.reference != nil || r.acting != byProcess {
		return
	}
	ready := func(s objectStatus, generation int64) bool {
		c := meta.FindStatusCondition(s.conditions, "Ready")
		return c != nil && c.Status == metav1.ConditionTrue && (c.ObservedGeneration == 0 || c.ObservedGeneration == generation)
	}
	if ready(after, e.Object.GetGeneration()) && !ready(before, e.Old.GetGeneration()) {
		r.readies = append(r.readies, readiness{r.step, e.Kind.Kind + " " + nameOf(e.Key), e.Object.GetUID(), r.snapshot()})
	}
}

// readiness is the state in which an object got ready.
type readiness struct {
	step  int
	name  string
	uid   types.UID
	state *snapshot
}

// checkReady looks, after a run without faults, for objects that got ready before they had what they have.
func (r *run) checkReady() {
	for _, ready := range r.readies {
		at := slices.Index(r.settledAt, ready.step)
		if at < 0 {
			continue
		}
		then := r.plan.flatten(ready.state)
		for n, kind := range r.settled[at].kinds {
			for _, obj := range r.settled[at].objects[n] {
				name := thingOf(kind, obj).String()
				if then[name] == nil && slices.Contains(ownersOf(obj), ready.uid) {
					r.violate(Violation{Oracle: Status, About: ready.name, Message: fmt.Sprintf("%s is Ready before there is %s", ready.name, name)})
					return
				}
			}
		}
	}
}

// observeOutside looks whether a primary object has a finalizer when it first has an effect outside.
func (r *run) observeOutside(verb, key string) {
	if len(r.process.active) == 0 {
		return
	}
	name := r.process.active[0].NamespacedName
	primary := r.server.Get(r.plan.primary, name)
	if primary == nil || primary.GetDeletionTimestamp() != nil || len(primary.GetFinalizers()) > 0 {
		return
	}
	if r.unprotected == "" {
		r.unprotected = r.plan.primary.Kind + " " + nameOf(name)
		r.unprotectedBy = "cloud " + verb + " " + key
	}
}

// checkProtected fails if an object has got its finalizer only after the first effect outside.
func (r *run) checkProtected() {
	if r.unprotected != "" && r.finalized {
		r.violate(Violation{Oracle: Deletion, About: r.unprotected, Message: fmt.Sprintf("%s has no finalizer yet when the first effect outside happens: %s", r.unprotected, r.unprotectedBy)})
	}
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sameStrictly is true for objects that are the same to the last field.
func sameStrictly(a, b client.Object) bool { return reflect.DeepEqual(a, b) }

// drift changes an object a little: what it was created with should come back.
func (r *run) drift(obj client.Object) error {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		for _, key := range sortedKeys(obj.Data) {
			obj.Data[key] += " drifted"
			return r.other.Update(r.ctx, obj)
		}
	case *corev1.Secret:
		for _, key := range sortedKeys(obj.Data) {
			obj.Data[key] = append(obj.Data[key], " drifted"...)
			return r.other.Update(r.ctx, obj)
		}
	case *appsv1.Deployment:
		obj.Spec.Replicas = new(count(obj.Spec.Replicas) + 1)
		return r.other.Update(r.ctx, obj)
	case *appsv1.StatefulSet:
		obj.Spec.Replicas = new(count(obj.Spec.Replicas) + 1)
		return r.other.Update(r.ctx, obj)
	}
	for _, key := range sortedKeys(obj.GetLabels()) {
		labels := maps.Clone(obj.GetLabels())
		delete(labels, key)
		obj.SetLabels(labels)
		return r.other.Update(r.ctx, obj)
	}
	return nil
}
