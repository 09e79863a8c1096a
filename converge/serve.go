// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// byProcess is who writes when a process does.
const byProcess = "manager"

// What can happen to a request, besides what can happen before any.
var (
	readFaults    = setOf(TimeoutLost, TooManyRequests, ServerError)
	writeFaults   = readFaults | setOf(CrashBefore, CrashAfter, TimeoutApplied)
	outsideFaults = setOf(CrashBefore, CrashAfter, TimeoutApplied, TimeoutLost)
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
	var fault Fault
	if rival := r.process.rival(c); c.behind == "" {
		faults := r.faultsOf(c)
		if rival != "" {
			faults |= setOf(Overtaken)
		}
		at := c.site
		if !c.outside {
			at.key = r.keyFor(c.gvk, at.key)
		}
		if fault = r.meet(at, faults); fault == Overtaken {
			r.log.fault(r, c.who, "is overtaken by "+rival, Overtaken)
			r.process.overtake(c, rival)
			return true
		}
	}
	met := len(r.met)
	if fault != "" && (readFaults | setOf(TimeoutApplied)).has(fault) {
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
	if err != nil && !apierrs.IsNotFound(err) {
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
		faults = outsideFaults
	case c.outside:
		faults = setOf(TimeoutLost)
	case c.obj == nil && c.cached:
	case c.obj == nil:
		faults = readFaults
	default:
		faults = writeFaults | r.foreign(c)
	}
	if r.canMeanwhile() {
		faults |= setOf(Meanwhile)
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
	faults := setOf(HandOver)
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if len(c.obj.GetOwnerReferences()) == 0 && (stored == nil || c.act == "create" || c.act == "apply") {
		// If it came into being after everybody has cleaned up, it would stay, and nobody could help that.
		faults = 0
	}
	if stored == nil {
		if c.act == "create" {
			faults |= setOf(Exists, Taken, TakenUnnoticed)
		}
		return faults
	}
	if c.act != "create" {
		faults |= setOf(Conflict)
	}
	if c.act != "create" && r.own[stored.GetUID()] && stored.GetDeletionTimestamp() == nil && !ended(stored) {
		faults |= setOf(Deleted)
		// What the API server has named does not come back under that name, and what was applied would have fields that are those of somebody else, for ever.
		if len(stored.GetFinalizers()) == 0 && !thingOf(c.gvk, stored).generated && !applied(stored) {
			faults |= setOf(Recreated)
		}
	}
	return faults
}

// applied is true for an object that was applied.
func applied(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Operation == metav1.ManagedFieldsOperationApply })
}

// answer makes a call happen, as a fault has it.
func (r *run) answer(c *call, fault Fault) error {
	target := c.obj
	if c.obj != nil && slices.Contains([]Fault{CrashAfter, TimeoutApplied, HandOver}, fault) {
		// there will be no answer
		target = c.obj.DeepCopyObject().(client.Object)
	}
	switch fault {
	case CrashBefore:
		r.crash()
		return nil
	case CrashAfter:
		_ = c.do(target)
		r.crash()
		return nil
	case HandOver:
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
	case TimeoutApplied:
		if err := r.write(c, target); err != nil && !c.outside {
			return err
		}
		return r.timeout(c)
	case TimeoutLost:
		return r.timeout(c)
	case TooManyRequests:
		return apierrs.NewTooManyRequests("the server has received too many requests and has asked us to try again later", 1)
	case ServerError:
		return apierrs.NewInternalError(fmt.Errorf("injected"))
	case Conflict:
		r.annotate(c)
	case Exists:
		r.precede(c)
	case Taken, TakenUnnoticed:
		r.takeName(c, fault == Taken)
	case Deleted, Recreated:
		r.remove(c, fault == Recreated)
	case Meanwhile:
		r.meanwhile()
	}
	r.advise(c)
	if c.obj == nil {
		return r.write(c, target)
	}
	uid := c.obj.GetUID()
	annotated := fault == Conflict || r.otherVersion(c) && r.isAnnotated(c)
	err := r.write(c, target)
	if err == nil && annotated {
		r.checkAnnotated(c, uid)
	}
	return err
}

// otherVersion is true for an update of an object that was read, with another version than it was read with: nobody is told of changes in between.
func (r *run) otherVersion(c *call) bool {
	version, read := r.process.filled[c.obj]
	return read && c.act == "update" && version != c.obj.GetResourceVersion()
}

// isAnnotated is true if somebody else has annotated an object.
func (r *run) isAnnotated(c *call) bool {
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if stored == nil {
		return false
	}
	_, ok := stored.GetAnnotations()[touched]
	return ok
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

// touched is the annotation that somebody else writes, to be in conflict.
const touched = "converge.trueup.dev/touched"

func (r *run) annotate(c *call) {
	obj := r.storedFor(c)
	if obj == nil {
		r.missed()
		return
	}
	defer r.as("somebody")()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, touched, r.server.Version())
	err := r.other.Patch(r.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	r.log.foreign(r, "annotate", c, err)
	if err != nil {
		r.missed()
	}
	r.changed()
}

// checkAnnotated looks whether a write has undone what somebody else has written just before. Only the write of an object that was read counts, which has a
// UID: it has not told which version it is based on. An object that is made from nothing each time may be meant to be all that there is.
func (r *run) checkAnnotated(c *call, uid types.UID) {
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if uid == "" || stored == nil || stored.GetUID() != uid || stored.GetDeletionTimestamp() != nil {
		return
	}
	if !r.isAnnotated(c) {
		name := c.gvk.Kind + " " + nameOf(c.key)
		r.violate(Violation{Oracle: EndState, About: name, Message: c.act + " " + name + " undoes what somebody else has written meanwhile"})
	}
}

// storedFor returns a copy of the object that a call is about.
func (r *run) storedFor(c *call) client.Object {
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if stored == nil {
		return nil
	}
	return r.withKind(stored, c.gvk)
}

// withKind returns a copy of a stored object, which can be sent.
func (r *run) withKind(stored client.Object, gvk schema.GroupVersionKind) client.Object {
	obj := stored.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// precede has the object be there already.
func (r *run) precede(c *call) {
	obj := r.withKind(c.obj, c.gvk)
	defer r.as("somebody")()
	err := r.other.Create(r.ctx, obj)
	r.log.foreign(r, "create", c, err)
	if err != nil {
		r.missed()
		return
	}
	r.own[obj.GetUID()] = true
}

// takeName has somebody else have an object of the same name, for a moment.
func (r *run) takeName(c *call, noticed bool) {
	defer r.as("somebody")()
	obj := r.withKind(c.obj, c.gvk)
	obj.SetOwnerReferences(nil)
	obj.SetFinalizers(nil)
	obj.SetLabels(nil)
	obj.SetAnnotations(nil)
	var owner client.Object
	if namespace := obj.GetNamespace(); namespace != "" {
		owner = &unstructured.Unstructured{}
		owner.GetObjectKind().SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		owner.SetNamespace(namespace)
		owner.SetName("converge-somebody")
		if err := r.other.Create(r.ctx, owner); err != nil {
			owner = nil
		} else {
			obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GetObjectKind().GroupVersionKind())})
		}
	}
	err := r.other.Create(r.ctx, obj)
	r.log.foreign(r, "create", c, err)
	r.changed()
	if err == nil {
		r.made.explain(r, c.gvk, c.key)
	} else {
		r.missed()
	}
	uid := obj.GetUID()
	r.after(longLag, func() {
		defer r.as("somebody")()
		if err == nil {
			r.made.explain(r, c.gvk, c.key) // with what was made for it meanwhile
			r.log.foreign(r, "delete", c, r.other.Delete(r.ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}
		if owner != nil {
			_ = r.other.Delete(r.ctx, owner)
		}
		r.restartWhenQuiet = noticed
	})
}

// remove has somebody else delete the object that is about to be written, and create it again if again is true.
func (r *run) remove(c *call, again bool) {
	obj := r.storedFor(c)
	if obj == nil {
		r.missed()
		return
	}
	defer r.as("somebody")()
	r.made.explain(r, c.gvk, c.key)
	err := r.other.Delete(r.ctx, obj.DeepCopyObject().(client.Object), client.PropagationPolicy(metav1.DeletePropagationBackground))
	r.log.foreign(r, "delete", c, err)
	r.changed()
	if err != nil {
		r.missed()
	} else if again {
		obj.SetResourceVersion("")
		obj.SetUID("")
		err = r.other.Create(r.ctx, obj)
		r.log.foreign(r, "create", c, err)
		r.own[obj.GetUID()] = true
		r.changed()
	}
}

// as has somebody else write, until what it returns is called.
func (r *run) as(who string) func() {
	before := r.acting
	r.acting = who
	return func() {
		r.changed()
		r.acting = before
	}
}

// readFrom is called after something was read from a cache.
func (r *run) readFrom(gvk schema.GroupVersionKind) {
	i := r.process.existing(gvk)
	if i == nil || i.held == nil {
		return
	}
	if i.held.fault == LagRead {
		r.release(i)
	}
}
