// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// byProcess is who writes when a process does.
const byProcess = "manager"

// What can happen to a request, besides what can happen before any.
var (
	readFaults         = faultsAt(atRead)
	writeFaults        = faultsAt(atWrite)
	createFaults       = faultsAt(atCreate)
	changeFaults       = faultsAt(atChange)
	externalReadFaults = faultsAt(atExternalRead)
	externalCallFaults = faultsAt(atExternalCall)
)

// unknown is a version unlike all others: nobody knows what a call to another system has changed.
const unknown = -1

// writeTime is how long a write takes.
const writeTime = time.Millisecond

// serveNext answers a call, if one waits.
func (r *run) serveNext() bool {
	c := r.process.next()
	if c == nil {
		return false
	}
	if c.begin != nil {
		c.begin()
		c.served <- nil
		return true
	}
	others := len(r.met)
	fault := r.meetCall(c)
	if fault == FaultOvertaken {
		return true
	}
	met := len(r.met)
	if fault != "" && (readFaults | setOf(FaultTimeoutApplied)).has(fault) {
		r.note(c, fault)
	}
	if c.cached {
		r.readYourWrites(r.process.informer(c.gvk))
	}
	r.requests++
	switch c.act {
	case "apply":
		r.requests += 9
	case "patch":
		r.requests += 2
	}
	before := r.total()
	if c.obj != nil || c.effect {
		time.Sleep(writeTime)
	}
	r.acting, r.serving = byProcess, c
	err := r.answer(c, fault)
	r.serving = nil
	if err == nil && c.into != nil {
		r.process.filled[c.into] = c.into.GetResourceVersion()
	}
	if err != nil && transient(err) {
		r.refuse(c)
	}
	r.log.call(r, c, fault, err)
	if met > others {
		r.met[met-1].after = r.total()
		if c.outside && c.effect && r.total() == before {
			r.met[met-1].after = unknown
		}
	}
	if c.obj != nil && r.total() == before && err == nil {
		r.idle++
	}
	if c.cached {
		r.readFrom(c.gvk)
	}
	r.changed()
	r.acting = ""
	c.served <- err
	return true
}

// meetCall tells what goes wrong with a call. One that is overtaken waits again, and then nothing else does.
func (r *run) meetCall(c *call) Fault {
	if c.behind != "" {
		return ""
	}
	at := c.site
	if !c.outside {
		at.key = r.keyFor(c.gvk, at.key)
	}
	faults, rival := r.faultsOf(c), r.process.rival(c)
	if rival != "" {
		faults |= setOf(FaultOvertaken)
	}
	fault := r.meet(at, faults)
	if fault == FaultOvertaken {
		r.log.fault(r, c.who, "is overtaken by "+rival, FaultOvertaken)
		r.process.overtake(c, rival)
	}
	return fault
}

// note remembers that a reconcile has met a fault.
func (r *run) note(c *call, fault Fault) {
	if a := r.process.activity(c.who); a != nil {
		a.failed = append(a.failed, fault)
	}
}

// refuse remembers that a request of a reconcile has failed.
func (r *run) refuse(c *call) {
	if a := r.process.activity(c.who); a != nil {
		a.refused = true
	}
}

// faultsOf tells what could go wrong with a call.
func (r *run) faultsOf(c *call) faultSet {
	var faults faultSet
	switch {
	case c.outside && c.effect:
		faults = externalCallFaults
	case c.outside:
		faults = externalReadFaults
	case c.obj == nil && c.cached:
	case c.obj == nil:
		faults = readFaults
	default:
		faults = writeFaults | r.foreign(c)
	}
	if r.canMeanwhile() {
		faults |= setOf(FaultMeanwhile)
	}
	return faults
}

// foreign tells what somebody else could do to the object that is written.
func (r *run) foreign(c *call) faultSet {
	if c.act == "delete all" {
		return 0
	}
	if c.obj.GetName() == "" {
		// It would be one more, and nobody could help that.
		return 0
	}
	faults := setOf(FaultHandOver)
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if len(c.obj.GetOwnerReferences()) == 0 && (stored == nil || c.act == "create" || c.act == "apply") {
		// If it came into being after everybody has cleaned up, it would stay, and nobody could help that.
		faults = 0
	}
	if stored == nil {
		if c.act == "create" {
			faults |= createFaults
		}
		return faults
	}
	if c.act == "create" {
		return faults
	}
	faults |= changeFaults
	if !r.own[stored.GetUID()] || stored.GetDeletionTimestamp() != nil || ended(stored) {
		return faults &^ setOf(FaultDeleted, FaultRecreated)
	}
	// An object whose name the API server has generated would get another name, and an applied object would keep fields
	// that the other client owns.
	if len(stored.GetFinalizers()) > 0 || thingOf(c.gvk, stored).generated || applied(stored) {
		faults &^= setOf(FaultRecreated)
	}
	return faults
}

// applied is true for an object that was applied.
func applied(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Operation == metav1.ManagedFieldsOperationApply
	})
}

// answer makes a call happen, as a fault has it.
func (r *run) answer(c *call, fault Fault) error {
	target := c.obj
	if c.obj != nil && slices.Contains([]Fault{FaultCrashAfter, FaultTimeoutApplied, FaultHandOver}, fault) {
		// there will be no answer
		target = c.obj.DeepCopyObject().(client.Object)
	}
	switch fault {
	case FaultCrashBefore:
		r.crash()
		return nil
	case FaultCrashAfter:
		_ = c.do(target)
		r.crash()
		return nil
	case FaultHandOver:
		who := c.who
		r.landing = append(r.landing, landing{after: r.process.number, do: func() {
			r.late = true
			defer func() { r.late = false }()
			defer r.as(byProcess)()
			err := c.do(target)
			r.log.late(r, c, who, err)
		}})
		r.crash()
		return nil
	case FaultTimeoutApplied:
		if err := r.write(c, target); err != nil && !c.outside {
			return err
		}
		return r.timeout(c)
	case FaultTimeoutLost:
		return r.timeout(c)
	case FaultTooManyRequests:
		return apierrs.NewTooManyRequests(
			"the server has received too many requests and has asked us to try again later",
			1,
		)
	case FaultServerError:
		return apierrs.NewInternalError(fmt.Errorf("injected"))
	case FaultConflict:
		r.annotate(c)
	case FaultExists:
		r.precede(c)
	case FaultTaken, FaultTakenUnnoticed:
		r.takeName(c, fault == FaultTaken)
	case FaultDeleted, FaultRecreated:
		r.remove(c, fault == FaultRecreated)
	case FaultMeanwhile:
		r.meanwhile()
	}
	r.advise(c)
	if c.obj == nil {
		return r.write(c, target)
	}
	uid := c.obj.GetUID()
	annotated := fault == FaultConflict || r.otherVersion(c) && r.isAnnotated(c)
	err := r.write(c, target)
	if err == nil && annotated {
		r.checkAnnotated(c, uid)
	}
	return err
}

// write makes a call, and notes what the process has written.
func (r *run) write(c *call, target client.Object) error {
	before := r.server.Version()
	err := c.do(target)
	if err != nil || c.obj == nil {
		return err
	}
	r.process.filled[target] = target.GetResourceVersion()
	if now := r.server.Version(); now != before {
		r.process.written[c.gvk] = now
	}
	return nil
}

func (r *run) timeout(c *call) error {
	if c.outside {
		return context.DeadlineExceeded
	}
	resource := schema.GroupResource{Group: c.gvk.Group, Resource: c.gvk.Kind}
	if kind, ok := r.plan.registry.For(c.gvk); ok {
		resource.Resource = kind.Plural
	}
	return apierrs.NewTimeoutError(fmt.Sprintf("%s %s %q: the request timed out", c.act, resource, c.key.Name), 0)
}

// crash ends the process.
func (r *run) crash() { r.process.die() }

// readFrom is called after something was read from a cache.
func (r *run) readFrom(gvk schema.GroupVersionKind) {
	i := r.process.existing(gvk)
	if i == nil || i.held == nil {
		return
	}
	if i.held.fault == FaultLagRead {
		r.release(i)
	}
}
