// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// timeline lists what happens in a run, for people. A nil timeline records nothing: most runs need none.
type timeline struct {
	told

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

func (t *timeline) add(e entry) {
	e.at, e.version = t.world.now(), t.world.server.Version()
	if e.process == 0 {
		e.process = t.process
	}
	t.entries = append(t.entries, e)
}

func (t *timeline) user(step Step, err error) {
	if t != nil {
		e := entry{
			who: "user", what: step.name, result: phrase.Error(err), weight: write, from: other("user"), failed: err != nil,
		}
		switch {
		case step.settle:
			e.weight = aside
		case step.do != nil:
			e.to = theServer
		}
		t.add(e)
	}
}

func (t *timeline) note(who, what string) {
	if t != nil {
		t.add(entry{who: who, what: what, weight: notable})
	}
}

func (t *timeline) fault(who, what string, fault Fault) {
	if t == nil {
		return
	}
	e := entry{
		who: who, what: what, result: string(fault), mark: faultMark, weight: crucial, from: other(who), fault: fault,
	}
	switch fault {
	case FaultRestart, FaultStaleStart:
		e.from, e.turn = theProcess, dying
	case FaultOvertaken:
		e.from = theProcess
	case FaultChildDeleted, FaultFlap, FaultDrift, FaultDisturbance:
		e.to = theServer
	}
	t.add(e)
}

// hit records the injection of a fault.
func (t *timeline) hit(p inject.Point) {
	if t == nil {
		return
	}
	if t.hits == nil {
		t.hits = map[inject.Point]int{}
	}
	t.hits[p] = len(t.entries)
}

// missed records that the fault at a point was not injected after all.
func (t *timeline) missed(p inject.Point) {
	if t != nil {
		delete(t.hits, p)
	}
}

// watch records a delay of the watch of a kind or, without a fault, its end.
func (t *timeline) watch(i *informer, what string, fault Fault) {
	if t == nil {
		return
	}
	e := entry{who: "watch", what: what, weight: notable, from: theServer, to: cacheOf(i.kind), news: catchingUp}
	if fault != "" {
		e.result, e.mark, e.weight, e.fault, e.news = string(fault), faultMark, crucial, fault, holding
	}
	if fault == FaultResync {
		e.news = repeating
	}
	t.add(e)
}

// arrive records the arrival of the next event at a cache.
func (t *timeline) arrive(i *informer) {
	if t == nil {
		return
	}
	next := i.coming[0]
	t.arrivals = append(t.arrivals, arrival{after: len(t.entries), entry: entry{
		at: t.world.now(), who: "watch", what: inject.EventNames[next.Type] + " " + next.Kind.Kind + " " + phrase.Name(next.Key),
		cache: fmt.Sprintf("cache@%d", next.Version),
		from:  theServer, to: cacheOf(i.kind), news: arriving, process: t.process, version: t.world.server.Version(),
	}})
}

// start records that a process starts after another one or, in an upgrade, with a version.
func (t *timeline) start(p *program, number int, version string) {
	if t == nil {
		return
	}
	e := entry{who: p.who(), what: "starts again", weight: notable, from: theProcess, turn: starting, process: number}
	if version != "" {
		e.what, e.program = fmt.Sprintf("process %d starts: %s", number, version), version
	}
	t.add(e)
}

func (t *timeline) violation(v Violation) {
	if t != nil {
		t.add(entry{who: "check", what: v.String(), mark: harmMark, weight: crucial})
	}
}

// actor records an action of another controller, before its events are forwarded.
func (t *timeline) actor(name, what string, err error) {
	if t != nil {
		result := phrase.Error(err)
		if err == nil && name != "gc" {
			result = t.world.unforwarded()
		}
		t.add(entry{
			who:    name,
			what:   what,
			result: result,
			weight: notable,
			from:   other(name),
			to:     theServer,
			failed: err != nil,
		})
	}
}

func (t *timeline) foreign(verb string, c *call, err error) {
	if t != nil {
		t.add(entry{
			who: phrase.AnotherClient, what: verb + " " + c.Kind + " " + phrase.Name(c.Key), result: phrase.Error(err), weight: crucial,
			mark: faultMark,
			from: other(phrase.AnotherClient), to: theServer, failed: err != nil,
		})
	}
}

func (t *timeline) late(c *call, err error) {
	if t != nil {
		t.add(entry{
			who:    c.who,
			what:   c.Act + " " + c.Kind + " " + phrase.Name(c.Key) + " takes effect late",
			result: phrase.Error(err),
			weight: crucial,
			mark:   staleMark,
			from:   theProcess,
			to:     theServer,
			failed: err != nil,
			facts:  t.world.factsOf(c, err, err == nil),
		})
	}
}

func (t *timeline) begin(a *activity) {
	if t != nil {
		t.add(entry{
			who: a.name, what: "begins: " + phrase.Name(a.NamespacedName), weight: aside, from: theProcess, turn: beginning,
		})
	}
}

func (t *timeline) end(a *activity) {
	if t == nil {
		return
	}
	e := entry{
		who: a.name, what: "ends", result: "ok", weight: aside, from: theProcess, turn: ending,
		failed: a.panicked != nil || a.err != nil,
		facts:  facts{object: phrase.Name(a.NamespacedName), retried: a.isRetried(), after: a.result.RequeueAfter},
	}
	switch {
	case a.panicked != nil:
		e.result, e.weight = fmt.Sprintf("panic: %v", a.panicked), crucial
	case !a.returned:
		return
	case a.err != nil:
		e.result, e.weight = "error: "+phrase.Error(a.err), notable
	case a.result.RequeueAfter > 0:
		e.result = "again after " + a.result.RequeueAfter.String()
	case a.result.Requeue: //nolint:staticcheck // reconcilers still ask for it
		e.result = "again"
	}
	t.add(e)
}

// call records a request of the process. changed is set if something has changed since it was sent.
func (t *timeline) call(c *call, fault Fault, err error, cache *informer, changed bool) {
	if t == nil {
		return
	}
	e := entry{
		who: c.who, what: c.Act + " " + c.Kind, from: theProcess, to: theServer, fault: fault, failed: err != nil,
		facts: t.world.factsOf(c, err, changed && (err == nil || fault == FaultTimeoutApplied)),
	}
	switch {
	case c.outside:
		e.to = theOutside
	case c.cached:
		e.to = cacheOf(c.gvk)
	}
	if c.Key.Name != "" {
		e.what += " " + phrase.Name(c.Key)
	}
	switch {
	case err != nil:
		e.result = phrase.Error(err)
		if e.weight = notable; apierrs.IsNotFound(err) && c.obj == nil {
			e.weight = aside
		}
	case c.obj != nil:
		e.result, e.weight = "ok", write
		if c.Act == "create" {
			if name := c.obj.GetName(); name != "" && name != c.Key.Name {
				e.result = "named " + name
			}
		}
		if version := c.obj.GetResourceVersion(); version != "" && c.Act != "delete" {
			e.result += ", version " + version + t.world.changeOf(c)
		}
	case c.outside && c.effect:
		e.result, e.weight = "ok", write
	default:
		e.result = "ok"
		if _, ok := c.out.(client.ObjectList); ok {
			e.result = phrase.Plural(e.items, "item")
		}
	}
	if c.cached {
		cache.readFrom(&e)
	}
	switch fault {
	case "":
	case FaultCrashBefore, FaultCrashAfter, FaultHandOver:
		e.result, e.mark, e.weight, e.turn = string(fault), faultMark, crucial, dying
	case FaultTimeoutApplied:
		e.result, e.mark, e.weight = "timeout, APPLIED", faultMark, crucial
	case FaultTimeoutLost, FaultTooManyRequests, FaultServerError, FaultQuota, FaultForbidden:
		e.mark, e.weight = faultMark, crucial
	}
	t.add(e)
}

// readFrom adds the version of a cache that was read.
func (i *informer) readFrom(e *entry) {
	if i == nil {
		return
	}
	e.position = i.position
	if len(i.coming) == 0 {
		e.cache = fmt.Sprintf("cache@%d", i.position)
		return
	}
	e.cache = fmt.Sprintf("cache@%d of %d", i.position, i.coming[len(i.coming)-1].Version)
	e.mark, e.weight = staleMark, crucial
}
