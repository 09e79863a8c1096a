// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// Timeline lists what happens in a run, for people. A nil timeline records nothing: most runs need none.
type Timeline struct {
	Log

	world *world.World
	// Process is the number of the process of the first program.
	Process int
}

// Observe makes a timeline record a world.
func (t *Timeline) Observe(w *world.World) {
	if t != nil {
		t.world = w
	}
}

// ProcessStarted records the number of the process of the first program.
func (t *Timeline) ProcessStarted(number int) {
	if t != nil {
		t.Process = number
	}
}

func (t *Timeline) add(e Entry) {
	e.At, e.Version = t.world.Now(), t.world.Server.Version()
	if e.Process == 0 {
		e.Process = t.Process
	}
	t.Entries = append(t.Entries, e)
}

// User records a step of the users: a wait, or something else, which may be an action on the API server.
func (t *Timeline) User(step string, waits, acts bool, err error) {
	if t != nil {
		e := Entry{
			Who: "user", What: step, Result: phrase.Error(err), Weight: Write, From: Other("user"),
			Failed: err != nil,
		}
		switch {
		case waits:
			e.Weight = Aside
		case acts:
			e.To = TheServer
		}
		t.add(e)
	}
}

// Note records something else.
func (t *Timeline) Note(who, what string) {
	if t != nil {
		t.add(Entry{Who: who, What: what, Weight: Notable})
	}
}

// Fault records what a fault does.
func (t *Timeline) Fault(who, what string, fault inject.Fault) {
	if t == nil {
		return
	}
	e := Entry{
		Who: who, What: what, Result: string(fault), Mark: FaultMark, Weight: Crucial,
		From: Other(who), Fault: fault,
	}
	switch fault {
	case inject.Restart, inject.StaleStart:
		e.From, e.Turn = TheProcess, Dying
	case inject.Overtaken, inject.Pause:
		e.From = TheProcess
	case inject.ChildDeleted, inject.Flap, inject.Drift, inject.Disturbance, inject.KindRemoved:
		e.To = TheServer
	}
	t.add(e)
}

// Hit records the injection of a fault.
func (t *Timeline) Hit(p inject.Point) {
	if t == nil {
		return
	}
	if t.Hits == nil {
		t.Hits = map[inject.Point]int{}
	}
	t.Hits[p] = len(t.Entries)
}

// Missed records that the fault at a point was not injected after all.
func (t *Timeline) Missed(p inject.Point) {
	if t != nil {
		delete(t.Hits, p)
	}
}

// Watch records a delay of the watch of a kind or, without a fault, its end.
func (t *Timeline) Watch(kind schema.GroupVersionKind, what string, fault inject.Fault) {
	if t == nil {
		return
	}
	e := Entry{
		Who: "watch", What: what, Weight: Notable, From: TheServer, To: CacheOf(kind),
		News: CatchingUp,
	}
	if fault != "" {
		e.Result, e.Mark, e.Weight = string(fault), FaultMark, Crucial
		e.Fault, e.News = fault, Holding
	}
	if fault == inject.Resync {
		e.News = Repeating
	}
	t.add(e)
}

// Arrive records the arrival of the next event at a cache.
func (t *Timeline) Arrive(kind schema.GroupVersionKind, next memapi.Event) {
	if t == nil {
		return
	}
	t.Arrivals = append(t.Arrivals, Arrival{After: len(t.Entries), Entry: Entry{
		At: t.world.Now(), Who: "watch",
		What:  inject.EventNames[next.Type] + " " + next.Kind.Kind + " " + phrase.Name(next.Key),
		Cache: fmt.Sprintf("cache@%d", next.Version),
		From:  TheServer, To: CacheOf(kind), News: Arriving, Process: t.Process,
		Version: t.world.Server.Version(),
	}})
}

// Start records that a process starts after another one or, in an upgrade, with a version.
func (t *Timeline) Start(who string, number int, version string) {
	if t == nil {
		return
	}
	e := Entry{
		Who: who, What: "starts again", Weight: Notable, From: TheProcess, Turn: Starting,
		Process: number,
	}
	if version != "" {
		e.What, e.Program = fmt.Sprintf("process %d starts: %s", number, version), version
	}
	t.add(e)
}

// Violation records a finding of an oracle.
func (t *Timeline) Violation(v finding.Violation) {
	if t != nil {
		t.add(Entry{Who: "check", What: v.String(), Mark: HarmMark, Weight: Crucial})
	}
}

// Actor records an action of another controller, before its events are forwarded.
func (t *Timeline) Actor(name, what string, err error) {
	if t != nil {
		result := phrase.Error(err)
		if err == nil && name != "gc" {
			result = unforwarded(t.world)
		}
		t.add(Entry{
			Who:    name,
			What:   what,
			Result: result,
			Weight: Notable,
			From:   Other(name),
			To:     TheServer,
			Failed: err != nil,
		})
	}
}

// Foreign records a write of another client to the object of a call.
func (t *Timeline) Foreign(verb string, c *world.Call, err error) {
	if t != nil {
		t.add(Entry{
			Who: phrase.AnotherClient, What: verb + " " + c.Kind + " " + phrase.Name(c.Key), Result: phrase.Error(err),
			Weight: Crucial,
			Mark:   FaultMark,
			From:   Other(phrase.AnotherClient), To: TheServer, Failed: err != nil,
		})
	}
}

// Late records that a write takes effect after its process has ended.
func (t *Timeline) Late(c *world.Call, err error) {
	if t != nil {
		t.add(Entry{
			Who:    c.Who,
			What:   c.Act + " " + c.Kind + " " + phrase.Name(c.Key) + " takes effect late",
			Result: phrase.Error(err),
			Weight: Crucial,
			Mark:   StaleMark,
			From:   TheProcess,
			To:     TheServer,
			Failed: err != nil,
			Facts:  factsOf(t.world, c, err, err == nil),
		})
	}
}

// Begin records the start of a reconcile.
func (t *Timeline) Begin(a *world.Reconcile) {
	if t != nil {
		t.add(Entry{
			Who: a.Name, What: "begins: " + phrase.Name(a.NamespacedName), Weight: Aside, From: TheProcess,
			Turn: Beginning,
		})
	}
}

// End records the end of a reconcile.
func (t *Timeline) End(a *world.Reconcile) {
	if t == nil {
		return
	}
	e := Entry{
		Who: a.Name, What: "ends", Result: "ok", Weight: Aside, From: TheProcess, Turn: Ending,
		Failed: a.Panicked != nil || a.Err != nil,
		Facts:  Facts{Object: phrase.Name(a.NamespacedName), Retried: a.IsRetried(), After: a.Result.RequeueAfter},
	}
	switch {
	case a.Panicked != nil:
		e.Result, e.Weight = fmt.Sprintf("panic: %v", a.Panicked), Crucial
	case !a.Returned:
		return
	case a.Err != nil:
		e.Result, e.Weight = "error: "+phrase.Error(a.Err), Notable
	case a.Result.RequeueAfter > 0:
		e.Result = "again after " + a.Result.RequeueAfter.String()
	case a.Result.Requeue: //nolint:staticcheck // reconcilers still ask for it
		e.Result = "again"
	}
	t.add(e)
}

// Call records a request of the process. changed is set if something has changed since it was sent.
func (t *Timeline) Call(c *world.Call, fault inject.Fault, err error, cache Seen, changed bool) {
	if t == nil {
		return
	}
	e := Entry{
		Who: c.Who, What: c.Act + " " + c.Kind, From: TheProcess, To: TheServer, Fault: fault,
		Failed: err != nil,
		Facts:  factsOf(t.world, c, err, changed && (err == nil || fault == inject.TimeoutApplied)),
	}
	switch {
	case c.Outside:
		e.To = TheOutside
	case c.Cached:
		e.To = CacheOf(c.GVK)
	}
	if c.Key.Name != "" {
		e.What += " " + phrase.Name(c.Key)
	}
	switch {
	case err != nil:
		e.Result = phrase.Error(err)
		if e.Weight = Notable; apierrs.IsNotFound(err) && c.Obj == nil {
			e.Weight = Aside
		}
	case c.Obj != nil:
		e.Result, e.Weight = "ok", Write
		if c.Act == "create" {
			if name := c.Obj.GetName(); name != "" && name != c.Key.Name {
				e.Result = "named " + name
			}
		}
		if version := c.Obj.GetResourceVersion(); version != "" && c.Act != "delete" {
			e.Result += ", version " + version + changeOf(t.world, c)
		}
	case c.Outside && c.Effect:
		e.Result, e.Weight = "ok", Write
	default:
		e.Result = "ok"
		if _, ok := c.Out.(client.ObjectList); ok {
			e.Result = phrase.Plural(e.Items, "item")
		}
	}
	if c.Cached {
		cache.readFrom(&e)
	}
	switch fault {
	case "":
	case inject.CrashBefore, inject.CrashAfter, inject.HandOver:
		e.Result, e.Mark, e.Weight, e.Turn = string(fault), FaultMark, Crucial, Dying
	case inject.TimeoutApplied:
		e.Result, e.Mark, e.Weight = "timeout, APPLIED", FaultMark, Crucial
	case inject.TimeoutLost, inject.TooManyRequests, inject.ServerError, inject.Quota, inject.Forbidden,
		inject.KindRemoved:
		e.Mark, e.Weight = FaultMark, Crucial
	}
	t.add(e)
}

// Seen is the version of a cache when it is read: the version of its last event, and the version of the last event that
// is on its way, or 0. The zero value means that there was none.
type Seen struct {
	Exists           bool
	Position, Latest int64
}

// readFrom adds the version of a cache that was read.
func (s Seen) readFrom(e *Entry) {
	if !s.Exists {
		return
	}
	e.Position = s.Position
	if s.Latest == 0 {
		e.Cache = fmt.Sprintf("cache@%d", s.Position)
		return
	}
	e.Cache = fmt.Sprintf("cache@%d of %d", s.Position, s.Latest)
	e.Mark, e.Weight = StaleMark, Crucial
}
