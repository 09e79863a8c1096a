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

	"trueup.dev/converge/internal/inject"
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
	sender *process
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
	if fault == FaultOvertaken {
		return true
	}
	points := len(r.faults.points)
	if fault != "" && inject.ErrorFaults.Has(fault) {
		if a := c.process.activity(c.who); a != nil {
			a.failed = append(a.failed, fault)
		}
	}
	if c.cached {
		r.watches.catchUp(c.process.informer(c.gvk))
	}
	before, stored, by := r.world.version(), r.world.server.Version(), c.process.activity(c.who)
	err := g.perform(c, fault)
	r.trace.authored(stored, r.world.server.Version(), by)
	r.trace.read(c, by, err)
	r.trace.call(c, fault, err, c.process.existing(c.gvk), r.world.version() != before)
	if points > earlier {
		p := &r.faults.points[points-1]
		if p.After = r.world.version(); c.outside && c.effect && p.After == before && r.plan.Outside == nil {
			p.After = unknownVersion
		}
	}
	if c.obj != nil && r.world.version() == before && err == nil {
		r.trace.noOp(c)
	}
	if c.cached {
		r.watches.wasRead(c)
	}
	r.watches.forward()
	c.served <- err
	return true
}

// fault determines the fault of a call. If the call is overtaken it waits again, and cannot have another fault.
func (g *gateway) fault(c *call) Fault {
	if c.behind != "" {
		return ""
	}
	r := g.run
	at := c.Site
	at.Program = c.process.program.name
	at.Kind, at.Key = r.world.generated.Replace(at.Kind), r.world.generated.Key(at.Key)
	r.users.disturb("before", at)
	faults, rival := g.faultsOf(c), r.processes.rival(c)
	if rival != "" {
		faults |= inject.SetOf(FaultOvertaken)
	}
	fault := r.faults.at(at, faults)
	if fault == FaultOvertaken {
		r.trace.fault(c.who, "is overtaken by "+rival, FaultOvertaken)
		c.overtake(rival)
	}
	return fault
}

// faultsOf returns the faults that apply to a call.
func (g *gateway) faultsOf(c *call) inject.Set {
	var faults inject.Set
	switch {
	case c.outside && c.effect:
		faults = externalCallFaults
	case c.outside:
		faults = externalReadFaults
	case c.obj == nil && c.cached:
	case c.obj == nil:
		faults = readFaults
	default:
		faults = (writeFaults|g.objectFaults(c))&^inject.SetOf(FaultQuota) | g.quotaFaults(c)
	}
	// In-flight writes take effect before users go on: after the cleanup they would be unrecoverable.
	if len(g.inFlight) == 0 && g.run.users.canContinue() {
		faults |= inject.SetOf(FaultMeanwhile)
	}
	return faults
}

// objectFaults returns the faults that depend on the object that is written.
func (g *gateway) objectFaults(c *call) inject.Set {
	if c.Act == "delete all" || c.obj.GetName() == "" {
		return 0 // an object with another generated name would be unrecoverable
	}
	faults := inject.SetOf(FaultHandOver)
	stored := g.run.world.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	_, generated := g.run.world.generatedFrom(c.gvk, c.obj)
	if generated && stored == nil {
		return 0
	}
	if len(c.obj.GetOwnerReferences()) == 0 && (stored == nil || c.Act == "create" || c.Act == "apply") {
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
	if !g.run.world.own[stored.GetUID()] || stored.GetDeletionTimestamp() != nil || workloads.Ended(stored) {
		return faults &^ inject.SetOf(FaultDeleted, FaultRecreated)
	}
	// An object with a generated name would get another name, and an applied object would keep fields that the other
	// client owns.
	if len(stored.GetFinalizers()) > 0 || generated || state.HasGeneratedName(stored) || applied(stored) {
		faults &^= inject.SetOf(FaultRecreated)
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
func (g *gateway) perform(c *call, fault Fault) error {
	r := g.run
	r.trace.requests += cost(c.Act)
	if c.obj != nil || c.effect {
		time.Sleep(writeTime)
	}
	g.serving = c
	if c.obj != nil {
		r.oracles.duplicates.writing = c.process.activity(c.who)
	}
	err := g.answer(c, fault)
	g.serving = nil
	if err == nil && c.into != nil {
		c.process.handedVersions[c.into] = c.into.GetResourceVersion()
	}
	if a := c.process.activity(c.who); a != nil && err != nil && (isTemporary(err) || len(g.refusals) > 0) {
		a.refused = true
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
func (g *gateway) answer(c *call, fault Fault) error {
	r := g.run
	if err := r.authorize(c); err != nil {
		return err
	}
	if err := g.refused(c); err != nil {
		return err
	}
	target := c.obj
	if c.obj != nil && fault != "" && inject.LostResponseFaults.Has(fault) {
		target = c.obj.DeepCopyObject().(client.Object)
	}
	switch fault {
	case FaultCrashBefore:
		c.process.die()
		return nil
	case FaultCrashAfter:
		_ = c.do(target)
		c.process.die()
		return nil
	case FaultHandOver:
		g.inFlight = append(g.inFlight, inFlightWrite{sender: c.process, do: func() {
			running := r.running
			r.world.lateWrite, r.running = true, r.plan.of(c.process.number)
			defer func() { r.world.lateWrite, r.running = false, running }()
			r.trace.late(c, c.do(target))
			r.watches.forward()
		}})
		c.process.die()
		return nil
	case FaultTimeoutApplied:
		if err := g.send(c, target); err != nil && !c.outside {
			return err
		}
		return g.timeout(c)
	case FaultTimeoutLost:
		return g.timeout(c)
	case FaultTooManyRequests:
		return apierrs.NewTooManyRequests("the server has received too many requests and has asked us to try again later", 1)
	case FaultServerError:
		return apierrs.NewInternalError(fmt.Errorf("injected"))
	case FaultQuota, FaultForbidden:
		return g.refuse(c, fault)
	case FaultMeanwhile:
		r.users.meanwhile()
	case "":
	default:
		r.others.interfere(c, fault)
	}
	r.oracles.advice.writing(c, c.process.existing(c.gvk))
	if c.obj == nil {
		return g.send(c, target)
	}
	uid := c.obj.GetUID()
	// Both succeed although another client has written the object: the write must not remove what that client wrote.
	annotated := fault == FaultConflict && !r.others.unmarked || c.process.changedVersion(c) && r.others.hasAnnotated(c)
	err := g.send(c, target)
	if err == nil && annotated {
		r.oracles.endState.written(c, uid)
	}
	return err
}

// send performs a call without a fault, and records what the process has written.
func (g *gateway) send(c *call, target client.Object) error {
	r := g.run
	before := r.world.server.Version()
	err := c.do(target)
	if err != nil || c.obj == nil {
		return err
	}
	c.process.handedVersions[target] = target.GetResourceVersion()
	if now := r.world.server.Version(); now != before {
		c.process.written[r.world.server.Shown(c.gvk)] = now
	}
	return nil
}

func (g *gateway) timeout(c *call) error {
	if c.outside {
		return context.DeadlineExceeded
	}
	resource := schema.GroupResource{Group: c.gvk.Group, Resource: c.gvk.Kind}
	if kind, ok := g.run.running.registry.For(c.gvk); ok {
		resource.Resource = kind.Plural
	}
	return apierrs.NewTimeoutError(fmt.Sprintf("%s %s %q: the request timed out", c.Act, resource, c.Key.Name), 0)
}

// cloudChanged is called when the call that is being served has changed the external system.
func (g *gateway) cloudChanged(verb, key string, existed bool) {
	r := g.run
	var primary client.Object
	if g.serving != nil {
		if a := g.serving.process.activity(g.serving.who); a != nil {
			primary = r.world.livePrimary(a.NamespacedName)
		}
	}
	r.trace.cloudChanged("cloud " + verb + " " + key)
	r.scheduler.changed()
	r.oracles.cloudChanged(verb, key, existed, r.faults.onlyRepeats(), primary)
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
