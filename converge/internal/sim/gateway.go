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
	*scene

	watches     *watches
	processes   *processes
	users       *users
	others      *otherClient
	permissions *permissions
	versions    *versions
	removed     *removedKinds
	// serving is the call that is being answered.
	serving *call
	// inFlight are writes that have not taken effect yet.
	inFlight []inFlightWrite
	// refusals are the requests that are refused until the controller is idle.
	refusals refusedRequests
	// pauses counts the pauses of processes.
	pauses int
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
	c := of.nextCall()
	if c == nil {
		return false
	}
	if c.begin != nil {
		c.begin()
		c.served <- nil
		return true
	}
	if c.answered {
		c.served <- c.answer
		return true
	}
	earlier := len(g.faults.points)
	fault := g.fault(c)
	points := len(g.faults.points)
	switch {
	case fault == inject.Overtaken:
		return true
	case fault == inject.Pause && g.mayBeLate(c):
		g.faults.points[points-1].After = g.world.Version()
		g.pause(c)
		return true
	}
	late, electing := g.world.LateWrite, g.world.Electing
	g.world.LateWrite, g.world.Electing = c.late, c.Who == whoElection
	defer func() { g.world.LateWrite, g.world.Electing = late, electing }() // a webhook may make calls meanwhile
	if fault != "" && inject.ErrorFaults.Has(fault) {
		if a := c.process.activity(c.Who); a != nil {
			a.Failed = append(a.Failed, fault)
		}
	}
	if c.Cached && g.removed.refuse(c) == nil {
		g.watches.catchUp(c.process.informer(c.GVK))
	}
	before, stored, by := g.world.Version(), g.world.Server.Version(), c.process.activity(c.Who)
	err := g.perform(c, fault)
	g.trace.Authored(stored, g.world.Server.Version(), by.record())
	g.trace.Read(&c.Call, by.record(), err)
	g.trace.Call(&c.Call, fault, err, c.process.existing(c.GVK).seen(), g.world.Version() != before)
	if points > earlier {
		p := &g.faults.points[points-1]
		if p.After = g.world.Version(); c.Outside && c.Effect && p.After == before && g.machine.ReadOutside == nil {
			p.After = unknownVersion
		}
	}
	if c.Obj != nil && g.world.Version() == before && err == nil {
		g.trace.NoOp(&c.Call)
	}
	if c.Cached {
		g.watches.wasRead(c)
	}
	g.watches.forward()
	if fault == inject.Pause {
		c.answered, c.answer = true, err
		g.pause(c)
		return true
	}
	c.served <- err
	return true
}

// mayBeLate reports whether a call may take effect late: if it is one that reconcilers can recover from.
func (g *gateway) mayBeLate(c *call) bool {
	return c.Effect || c.Obj != nil && g.objectFaults(c).Has(inject.HandOver)
}

// pause stops the process of a call. The call is served when the process continues.
func (g *gateway) pause(c *call) {
	p := c.process
	d := time.Minute
	if p.election != nil {
		d = 3 * p.election.LeaseDuration
	}
	g.trace.Fault(c.Who, "is paused for "+d.String(), inject.Pause)
	c.late, p.paused = true, true
	g.pauses++
	p.mu.Lock()
	p.pending = append(p.pending, c)
	p.mu.Unlock()
	g.scheduler.after(d, func() {
		if p.dead.Load() {
			return
		}
		g.trace.Note(p.program.who(), "continues")
		if p.election != nil && g.pauses == 1 { // with several pauses, all programs may have been paused
			g.oracles.Assignment.Check(p.program.Client)
		}
		p.paused = false
	})
}

// serveUntil serves calls of a process until a channel is closed.
func (g *gateway) serveUntil(p *Process, done <-chan struct{}) {
	starting := p.starting
	p.starting = true // nothing but the process goes on
	defer func() { p.starting = starting }()
	for {
		select {
		case <-done:
			return
		case <-g.scheduler.woken:
			g.serveNext(g.processes.only(p))
		}
	}
}

// fault determines the fault of a call. If the call is overtaken it waits again, and cannot have another fault.
func (g *gateway) fault(c *call) inject.Fault {
	if c.behind != "" || c.late {
		return ""
	}
	at := c.Site
	at.Program = c.process.program.Name
	at.Kind, at.Key = g.world.Generated.Replace(at.Kind), g.world.Generated.Key(at.Key)
	g.users.disturb("before", at)
	faults, rival := g.faultsOf(c), g.processes.rival(c)
	if rival != "" {
		faults |= inject.SetOf(inject.Overtaken)
	}
	fault := g.faults.at(at, faults)
	if fault == inject.Overtaken {
		g.trace.Fault(c.Who, "is overtaken by "+rival, inject.Overtaken)
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
	faults |= g.removed.faultsOf(c.GVK)
	if !c.process.starting {
		faults |= inject.SetOf(inject.Pause)
	}
	// In-flight writes take effect before users go on: after the cleanup they would be unrecoverable.
	if len(g.inFlight) == 0 && g.users.canContinue() {
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
	stored := g.world.Server.Get(c.GVK, client.ObjectKeyFromObject(c.Obj))
	_, generated := g.world.GeneratedFrom(c.GVK, c.Obj)
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
	if !g.world.Own[stored.GetUID()] || stored.GetDeletionTimestamp() != nil || workloads.Ended(stored) {
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
	g.trace.Requests += cost(c.Act)
	if c.Obj != nil || c.Effect {
		time.Sleep(writeTime)
	}
	g.serving = c
	if c.Obj != nil {
		g.oracles.Duplicates.Writing = c.process.activity(c.Who).record()
	}
	err := g.answer(c, fault)
	g.serving = nil
	if err == nil && c.Into != nil {
		c.process.handedVersions[c.Into] = c.Into.GetResourceVersion()
	}
	refused := len(g.refusals) > 0 || g.removed.any()
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
	if err := g.permissions.authorize(c); err != nil {
		return err
	}
	if err := g.refused(c); err != nil {
		return err
	}
	if fault == inject.KindRemoved {
		g.removed.remove(c.GVK)
	}
	if err := g.removed.refuse(c); err != nil {
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
			g.world.LateWrite = true
			defer func() { g.world.LateWrite = false }()
			g.versions.as(c.process.number, func() {
				g.trace.Late(&c.Call, c.do(target))
				g.watches.forward()
			})
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
		g.users.meanwhile()
	case "", inject.KindRemoved, inject.Pause:
	default:
		g.others.interfere(c, fault)
	}
	if cache := c.process.existing(c.GVK); cache != nil && c.Obj != nil {
		g.oracles.Advice.Writing(&c.Call, cache.get(client.ObjectKeyFromObject(c.Obj)))
	}
	if c.Obj == nil {
		return g.send(c, target)
	}
	uid := c.Obj.GetUID()
	// Both succeed although another client has written the object: the write must not remove what that client wrote.
	annotated := fault == inject.Conflict && !g.others.unmarked || c.process.changedVersion(c) && g.others.hasAnnotated(c)
	err := g.send(c, target)
	if err == nil && annotated {
		g.oracles.EndState.Written(&c.Call, uid)
	}
	return err
}

// send performs a call without a fault, and records what the process has written.
func (g *gateway) send(c *call, target client.Object) error {
	before := g.world.Server.Version()
	err := c.do(target)
	if err != nil || c.Obj == nil {
		return err
	}
	c.process.handedVersions[target] = target.GetResourceVersion()
	if now := g.world.Server.Version(); now != before {
		c.process.written[g.world.Server.Shown(c.GVK)] = now
	}
	return nil
}

func (g *gateway) timeout(c *call) error {
	if c.Outside {
		return context.DeadlineExceeded
	}
	resource := schema.GroupResource{Group: c.GVK.Group, Resource: c.GVK.Kind}
	if kind, ok := c.process.version.Registry.For(c.GVK); ok {
		resource.Resource = kind.Plural
	}
	return apierrs.NewTimeoutError(fmt.Sprintf("%s %s %q: the request timed out", c.Act, resource, c.Key.Name), 0)
}

// cloudChanged is called when the call that is being served has changed the external system.
func (g *gateway) cloudChanged(verb, key string, existed bool) {
	var primary client.Object
	if g.serving != nil {
		if a := g.serving.process.activity(g.serving.Who); a != nil {
			primary = g.world.LivePrimary(a.NamespacedName)
		}
	}
	g.trace.CloudChanged("cloud " + verb + " " + key)
	g.scheduler.changed()
	g.oracles.CloudChanged(verb, key, existed, g.faults.onlyRepeats(), primary)
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
func (g *gateway) changesOutside(name string, effect func() error) error {
	if g.machine.ReadOutside == nil {
		return effect()
	}
	before := g.world.Outside().Text
	err := effect()
	if g.world.Outside().Text != before {
		g.world.Cloud.Version++
		g.trace.CloudChanged("call " + name)
		g.scheduler.changed()
	}
	return err
}
