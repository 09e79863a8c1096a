// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi/workloads"
)

// gateway is where each call of the process passes: it determines the faults that apply, injects one, performs the
// call, and records it. It does not know why the process makes a call.
type gateway struct {
	run *run
	// serving is the call that is being answered.
	serving *call
	// inFlight are writes that have not taken effect yet.
	inFlight []inFlightWrite
	// refusals are the requests that are refused until the controller is idle.
	refusals refusedRequests
}

// inFlightWrite is a write of a process that has ended.
type inFlightWrite struct {
	do func()
	// sender has sent it.
	sender *Process
}

// The faults that apply at requests.
var (
	readFaults         = inject.SetAt(inject.AtRead)
	writeFaults        = inject.SetAt(inject.AtWrite)
	createFaults       = inject.SetAt(inject.AtCreate)
	changeFaults       = inject.SetAt(inject.AtChange)
	externalReadFaults = inject.SetAt(inject.AtExternalRead)
	externalCallFaults = inject.SetAt(inject.AtExternalCall)
)

// unknownVersion differs from all versions: it is unknown what a call to an external system has changed.
const unknownVersion = -1

// writeTime is how long a write takes.
const writeTime = time.Millisecond

// serveNext answers a call of one of some processes, and reports whether one was waiting.
func (g *gateway) serveNext(of processes) bool {
	r := g.run
	c := of.nextCall()
	if c == nil {
		return false
	}
	if c.begin != nil {
		c.begin()
		c.served <- nil
		return true
	}
	earlier := len(r.faults.points)
	fault := g.fault(c)
	if fault == inject.Overtaken {
		return true
	}
	points := len(r.faults.points)
	if fault != "" && inject.ErrorFaults.Has(fault) {
		if a := c.process.activity(c.Who); a != nil {
			a.Failed = append(a.Failed, fault)
		}
	}
	if c.Cached && r.removed.refuse(c) == nil {
		r.watches.catchUp(c.process.informer(c.GVK))
	}
	before, stored, by := r.world.Version(), r.world.Server.Version(), c.process.activity(c.Who)
	err := g.perform(c, fault)
	r.trace.Authored(stored, r.world.Server.Version(), by.record())
	r.trace.Read(&c.Call, by.record(), err)
	r.trace.Call(&c.Call, fault, err, c.process.existing(c.GVK).seen(), r.world.Version() != before)
	if points > earlier {
		p := &r.faults.points[points-1]
		if p.After = r.world.Version(); c.Outside && c.Effect && p.After == before && r.machine.ReadOutside == nil {
			p.After = unknownVersion
		}
	}
	if c.Obj != nil && r.world.Version() == before && err == nil {
		r.trace.NoOp(&c.Call)
	}
	if c.Cached {
		r.watches.wasRead(c)
	}
	r.watches.forward()
	c.served <- err
	return true
}

// fault determines the fault of a call. If the call is overtaken it waits again, and cannot have another fault.
func (g *gateway) fault(c *call) inject.Fault {
	if c.behind != "" {
		return ""
	}
	r := g.run
	at := c.Site
	at.Program = c.process.program.Name
	at.Kind, at.Key = r.world.Generated.Replace(at.Kind), r.world.Generated.Key(at.Key)
	r.users.disturb("before", at)
	faults, rival := g.faultsOf(c), r.processes.rival(c)
	if rival != "" {
		faults |= inject.SetOf(inject.Overtaken)
	}
	fault := r.faults.at(at, faults)
	if fault == inject.Overtaken {
		r.trace.Fault(c.Who, "is overtaken by "+rival, inject.Overtaken)
		c.overtake(rival)
	}
	return fault
}

// faultsOf returns the faults that apply to a call.
func (g *gateway) faultsOf(c *call) inject.Set {
	var faults inject.Set
	switch {
	case c.Outside && c.Effect:
		faults = externalCallFaults
	case c.Outside:
		faults = externalReadFaults
	case c.Obj == nil && c.Cached:
	case c.Obj == nil:
		faults = readFaults
	default:
		faults = (writeFaults|g.objectFaults(c))&^inject.SetOf(inject.Quota) | g.quotaFaults(c)
	}
	faults |= g.run.removed.faults(c.GVK)
	// In-flight writes take effect before users go on: after the cleanup they would be unrecoverable.
	if len(g.inFlight) == 0 && g.run.users.canContinue() {
		faults |= inject.SetOf(inject.Meanwhile)
	}
	return faults
}

// objectFaults returns the faults that depend on the object that is written.
func (g *gateway) objectFaults(c *call) inject.Set {
	if c.Act == "delete all" || c.Obj.GetName() == "" {
		return 0 // an object with another generated name would be unrecoverable
	}
	faults := inject.SetOf(inject.HandOver)
	stored := g.run.world.Server.Get(c.GVK, client.ObjectKeyFromObject(c.Obj))
	_, generated := g.run.world.GeneratedFrom(c.GVK, c.Obj)
	if generated && stored == nil {
		return 0
	}
	if len(c.Obj.GetOwnerReferences()) == 0 && (stored == nil || c.Act == "create" || c.Act == "apply") {
		faults = 0 // an object without an owner that is created after the cleanup would be unrecoverable
	}
	if stored == nil {
		if c.Act == "create" {
			faults |= createFaults
		}
		return faults
	}
	if c.Act == "create" {
		return faults
	}
	faults |= changeFaults
	if !g.run.world.Own[stored.GetUID()] || stored.GetDeletionTimestamp() != nil || workloads.Ended(stored) {
		return faults &^ inject.SetOf(inject.Deleted, inject.Recreated)
	}
	// An object with a generated name would get another name, and an applied object would keep fields that the other
	// client owns.
	if len(stored.GetFinalizers()) > 0 || generated || state.HasGeneratedName(stored) || applied(stored) {
		faults &^= inject.SetOf(inject.Recreated)
	}
	return faults
}

// applied reports whether an object was applied.
func applied(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Operation == metav1.ManagedFieldsOperationApply
	})
}

// perform performs a call with a fault, on behalf of the process.
func (g *gateway) perform(c *call, fault inject.Fault) error {
	r := g.run
	r.trace.Requests += cost(c.Act)
	if c.Obj != nil || c.Effect {
		time.Sleep(writeTime)
	}
	g.serving = c
	if c.Obj != nil {
		r.oracles.Duplicates.Writing = c.process.activity(c.Who).record()
	}
	err := g.answer(c, fault)
	g.serving = nil
	if err == nil && c.Into != nil {
		c.process.handedVersions[c.Into] = c.Into.GetResourceVersion()
	}
	refused := len(g.refusals) > 0 || r.removed.any()
	if a := c.process.activity(c.Who); a != nil && err != nil && (judge.IsTemporary(err) || refused) {
		a.Refused = true
	}
	return err
}

// cost is the real time that the API in memory takes for a request, in units of the fastest one.
func cost(act string) int {
	switch act {
	case "apply":
		return 10
	case "patch":
		return 3
	}
	return 1
}

// answer injects a fault, and returns what the process receives.
func (g *gateway) answer(c *call, fault inject.Fault) error {
	r := g.run
	if err := r.authorize(c); err != nil {
		return err
	}
	if err := g.refused(c); err != nil {
		return err
	}
	if fault == inject.KindRemoved {
		r.removed.remove(c.GVK)
	}
	if err := r.removed.refuse(c); err != nil {
		return err
	}
	target := c.Obj
	if c.Obj != nil && fault != "" && inject.LostResponseFaults.Has(fault) {
		target = c.Obj.DeepCopyObject().(client.Object)
	}
	switch fault {
	case inject.CrashBefore:
		c.process.die()
		return nil
	case inject.CrashAfter:
		_ = c.do(target)
		c.process.die()
		return nil
	case inject.HandOver:
		g.inFlight = append(g.inFlight, inFlightWrite{sender: c.process, do: func() {
			r.world.LateWrite = true
			running, judged := r.running, r.verdict.Running
			r.runs(c.process.number)
			defer func() { r.world.LateWrite, r.running, r.verdict.Running = false, running, judged }()
			r.trace.Late(&c.Call, c.do(target))
			r.watches.forward()
		}})
		c.process.die()
		return nil
	case inject.TimeoutApplied:
		if err := g.send(c, target); err != nil && !c.Outside {
			return err
		}
		return g.timeout(c)
	case inject.TimeoutLost:
		return g.timeout(c)
	case inject.TooManyRequests:
		return apierrs.NewTooManyRequests("the server has received too many requests and has asked us to try again later", 1)
	case inject.ServerError:
		return apierrs.NewInternalError(fmt.Errorf("injected"))
	case inject.Quota, inject.Forbidden:
		return g.refuse(c, fault)
	case inject.Meanwhile:
		r.users.meanwhile()
	case "", inject.KindRemoved:
	default:
		r.others.interfere(c, fault)
	}
	if cache := c.process.existing(c.GVK); cache != nil && c.Obj != nil {
		r.oracles.Advice.Writing(&c.Call, cache.get(client.ObjectKeyFromObject(c.Obj)))
	}
	if c.Obj == nil {
		return g.send(c, target)
	}
	uid := c.Obj.GetUID()
	// Both succeed although another client has written the object: the write must not remove what that client wrote.
	annotated := fault == inject.Conflict && !r.others.unmarked || c.process.changedVersion(c) && r.others.hasAnnotated(c)
	err := g.send(c, target)
	if err == nil && annotated {
		r.oracles.EndState.Written(&c.Call, uid)
	}
	return err
}

// send performs a call without a fault, and records what the process has written.
func (g *gateway) send(c *call, target client.Object) error {
	r := g.run
	before := r.world.Server.Version()
	err := c.do(target)
	if err != nil || c.Obj == nil {
		return err
	}
	c.process.handedVersions[target] = target.GetResourceVersion()
	if now := r.world.Server.Version(); now != before {
		c.process.written[r.world.Server.Shown(c.GVK)] = now
	}
	return nil
}

func (g *gateway) timeout(c *call) error {
	if c.Outside {
		return context.DeadlineExceeded
	}
	resource := schema.GroupResource{Group: c.GVK.Group, Resource: c.GVK.Kind}
	if kind, ok := g.run.running.Registry.For(c.GVK); ok {
		resource.Resource = kind.Plural
	}
	return apierrs.NewTimeoutError(fmt.Sprintf("%s %s %q: the request timed out", c.Act, resource, c.Key.Name), 0)
}

// cloudChanged is called when the call that is being served has changed the external system.
func (g *gateway) cloudChanged(verb, key string, existed bool) {
	r := g.run
	var primary client.Object
	if g.serving != nil {
		if a := g.serving.process.activity(g.serving.Who); a != nil {
			primary = r.world.LivePrimary(a.NamespacedName)
		}
	}
	r.trace.CloudChanged("cloud " + verb + " " + key)
	r.scheduler.changed()
	r.oracles.CloudChanged(verb, key, existed, r.faults.onlyRepeats(), primary)
}

// land lets the in-flight writes of earlier processes of some programs take effect, and reports whether there were any.
func (g *gateway) land(of processes) bool {
	inFlight := g.inFlight
	g.inFlight = nil
	for _, write := range inFlight {
		if of.follow(write.sender) {
			write.do()
		} else {
			g.inFlight = append(g.inFlight, write)
		}
	}
	return len(g.inFlight) < len(inFlight)
}

// changesOutside calls an external system, and records whether that has changed it, if Scenario.Outside shows that.
func (r *run) changesOutside(name string, effect func() error) error {
	if r.machine.ReadOutside == nil {
		return effect()
	}
	before := r.world.Outside().Text
	err := effect()
	if r.world.Outside().Text != before {
		r.world.Cloud.Version++
		r.trace.CloudChanged("call " + name)
		r.scheduler.changed()
	}
	return err
}
