// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// timeline lists what happens in a run, for people. A nil timeline records nothing: most runs need none.
type timeline struct {
	explain.Log

	world *world
	// process is the number of the process of the first program.
	process int
}

// observe makes a timeline that of a world.
func (t *timeline) observe(w *world) {
	if t != nil {
		t.world = w
	}
}

// processStarted records the number of the process of the first program.
func (t *timeline) processStarted(p *process) {
	if t != nil && p.program.index == 0 {
		t.process = p.number
	}
}

func (t *timeline) add(e explain.Entry) {
	e.At, e.Version = t.world.now(), t.world.server.Version()
	if e.Process == 0 {
		e.Process = t.process
	}
	t.Entries = append(t.Entries, e)
}

func (t *timeline) user(step Step, err error) {
	if t != nil {
		e := explain.Entry{
			Who: "user", What: step.name, Result: phrase.Error(err), Weight: explain.Write, From: explain.Other("user"),
			Failed: err != nil,
		}
		switch {
		case step.settle:
			e.Weight = explain.Aside
		case step.do != nil:
			e.To = explain.TheServer
		}
		t.add(e)
	}
}

func (t *timeline) note(who, what string) {
	if t != nil {
		t.add(explain.Entry{Who: who, What: what, Weight: explain.Notable})
	}
}

func (t *timeline) fault(who, what string, fault Fault) {
	if t == nil {
		return
	}
	e := explain.Entry{
		Who: who, What: what, Result: string(fault), Mark: explain.FaultMark, Weight: explain.Crucial,
		From: explain.Other(who), Fault: fault,
	}
	switch fault {
	case FaultRestart, FaultStaleStart:
		e.From, e.Turn = explain.TheProcess, explain.Dying
	case FaultOvertaken:
		e.From = explain.TheProcess
	case FaultChildDeleted, FaultFlap, FaultDrift, FaultDisturbance:
		e.To = explain.TheServer
	}
	t.add(e)
}

// hit records the injection of a fault.
func (t *timeline) hit(p inject.Point) {
	if t == nil {
		return
	}
	if t.Hits == nil {
		t.Hits = map[inject.Point]int{}
	}
	t.Hits[p] = len(t.Entries)
}

// missed records that the fault at a point was not injected after all.
func (t *timeline) missed(p inject.Point) {
	if t != nil {
		delete(t.Hits, p)
	}
}

// watch records a delay of the watch of a kind or, without a fault, its end.
func (t *timeline) watch(i *informer, what string, fault Fault) {
	if t == nil {
		return
	}
	e := explain.Entry{
		Who: "watch", What: what, Weight: explain.Notable, From: explain.TheServer, To: explain.CacheOf(i.kind),
		News: explain.CatchingUp,
	}
	if fault != "" {
		e.Result, e.Mark, e.Weight = string(fault), explain.FaultMark, explain.Crucial
		e.Fault, e.News = fault, explain.Holding
	}
	if fault == FaultResync {
		e.News = explain.Repeating
	}
	t.add(e)
}

// arrive records the arrival of the next event at a cache.
func (t *timeline) arrive(i *informer) {
	if t == nil {
		return
	}
	next := i.coming[0]
	t.Arrivals = append(t.Arrivals, explain.Arrival{After: len(t.Entries), Entry: explain.Entry{
		At: t.world.now(), Who: "watch",
		What:  inject.EventNames[next.Type] + " " + next.Kind.Kind + " " + phrase.Name(next.Key),
		Cache: fmt.Sprintf("cache@%d", next.Version),
		From:  explain.TheServer, To: explain.CacheOf(i.kind), News: explain.Arriving, Process: t.process,
		Version: t.world.server.Version(),
	}})
}

// start records that a process starts after another one or, in an upgrade, with a version.
func (t *timeline) start(p *program, number int, version string) {
	if t == nil {
		return
	}
	e := explain.Entry{
		Who: p.who(), What: "starts again", Weight: explain.Notable, From: explain.TheProcess, Turn: explain.Starting,
		Process: number,
	}
	if version != "" {
		e.What, e.Program = fmt.Sprintf("process %d starts: %s", number, version), version
	}
	t.add(e)
}

func (t *timeline) violation(v Violation) {
	if t != nil {
		t.add(explain.Entry{Who: "check", What: v.String(), Mark: explain.HarmMark, Weight: explain.Crucial})
	}
}

// actor records an action of another controller, before its events are forwarded.
func (t *timeline) actor(name, what string, err error) {
	if t != nil {
		result := phrase.Error(err)
		if err == nil && name != "gc" {
			result = t.world.unforwarded()
		}
		t.add(explain.Entry{
			Who:    name,
			What:   what,
			Result: result,
			Weight: explain.Notable,
			From:   explain.Other(name),
			To:     explain.TheServer,
			Failed: err != nil,
		})
	}
}

func (t *timeline) foreign(verb string, c *call, err error) {
	if t != nil {
		t.add(explain.Entry{
			Who: phrase.AnotherClient, What: verb + " " + c.Kind + " " + phrase.Name(c.Key), Result: phrase.Error(err),
			Weight: explain.Crucial,
			Mark:   explain.FaultMark,
			From:   explain.Other(phrase.AnotherClient), To: explain.TheServer, Failed: err != nil,
		})
	}
}

func (t *timeline) late(c *call, err error) {
	if t != nil {
		t.add(explain.Entry{
			Who:    c.who,
			What:   c.Act + " " + c.Kind + " " + phrase.Name(c.Key) + " takes effect late",
			Result: phrase.Error(err),
			Weight: explain.Crucial,
			Mark:   explain.StaleMark,
			From:   explain.TheProcess,
			To:     explain.TheServer,
			Failed: err != nil,
			Facts:  t.world.factsOf(c, err, err == nil),
		})
	}
}

func (t *timeline) begin(a *activity) {
	if t != nil {
		t.add(explain.Entry{
			Who: a.name, What: "begins: " + phrase.Name(a.NamespacedName), Weight: explain.Aside, From: explain.TheProcess,
			Turn: explain.Beginning,
		})
	}
}

func (t *timeline) end(a *activity) {
	if t == nil {
		return
	}
	e := explain.Entry{
		Who: a.name, What: "ends", Result: "ok", Weight: explain.Aside, From: explain.TheProcess, Turn: explain.Ending,
		Failed: a.panicked != nil || a.err != nil,
		Facts:  explain.Facts{Object: phrase.Name(a.NamespacedName), Retried: a.isRetried(), After: a.result.RequeueAfter},
	}
	switch {
	case a.panicked != nil:
		e.Result, e.Weight = fmt.Sprintf("panic: %v", a.panicked), explain.Crucial
	case !a.returned:
		return
	case a.err != nil:
		e.Result, e.Weight = "error: "+phrase.Error(a.err), explain.Notable
	case a.result.RequeueAfter > 0:
		e.Result = "again after " + a.result.RequeueAfter.String()
	case a.result.Requeue: //nolint:staticcheck // reconcilers still ask for it
		e.Result = "again"
	}
	t.add(e)
}

// call records a request of the process. changed is set if something has changed since it was sent.
func (t *timeline) call(c *call, fault Fault, err error, cache *informer, changed bool) {
	if t == nil {
		return
	}
	e := explain.Entry{
		Who: c.who, What: c.Act + " " + c.Kind, From: explain.TheProcess, To: explain.TheServer, Fault: fault,
		Failed: err != nil,
		Facts:  t.world.factsOf(c, err, changed && (err == nil || fault == FaultTimeoutApplied)),
	}
	switch {
	case c.outside:
		e.To = explain.TheOutside
	case c.cached:
		e.To = explain.CacheOf(c.gvk)
	}
	if c.Key.Name != "" {
		e.What += " " + phrase.Name(c.Key)
	}
	switch {
	case err != nil:
		e.Result = phrase.Error(err)
		if e.Weight = explain.Notable; apierrs.IsNotFound(err) && c.obj == nil {
			e.Weight = explain.Aside
		}
	case c.obj != nil:
		e.Result, e.Weight = "ok", explain.Write
		if c.Act == "create" {
			if name := c.obj.GetName(); name != "" && name != c.Key.Name {
				e.Result = "named " + name
			}
		}
		if version := c.obj.GetResourceVersion(); version != "" && c.Act != "delete" {
			e.Result += ", version " + version + t.world.changeOf(c)
		}
	case c.outside && c.effect:
		e.Result, e.Weight = "ok", explain.Write
	default:
		e.Result = "ok"
		if _, ok := c.out.(client.ObjectList); ok {
			e.Result = phrase.Plural(e.Items, "item")
		}
	}
	if c.cached {
		cache.readFrom(&e)
	}
	switch fault {
	case "":
	case FaultCrashBefore, FaultCrashAfter, FaultHandOver:
		e.Result, e.Mark, e.Weight, e.Turn = string(fault), explain.FaultMark, explain.Crucial, explain.Dying
	case FaultTimeoutApplied:
		e.Result, e.Mark, e.Weight = "timeout, APPLIED", explain.FaultMark, explain.Crucial
	case FaultTimeoutLost, FaultTooManyRequests, FaultServerError, FaultQuota, FaultForbidden:
		e.Mark, e.Weight = explain.FaultMark, explain.Crucial
	}
	t.add(e)
}

// readFrom adds the version of a cache that was read.
func (i *informer) readFrom(e *explain.Entry) {
	if i == nil {
		return
	}
	e.Position = i.position
	if len(i.coming) == 0 {
		e.Cache = fmt.Sprintf("cache@%d", i.position)
		return
	}
	e.Cache = fmt.Sprintf("cache@%d of %d", i.position, i.coming[len(i.coming)-1].Version)
	e.Mark, e.Weight = explain.StaleMark, explain.Crucial
}
