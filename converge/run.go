// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// run is one way that a scenario can go. Everything in it belongs to the goroutine that made it, and happens in one
// bubble of synctest.
type run struct {
	plan     *plan
	schedule schedule
	// shuffled has lists come in another order each time, from this one on, unless it is 0.
	shuffled int
	begin    time.Time
	ctx      context.Context
	// woken tells that a process has something to be served.
	woken chan struct{}

	server *memapi.Server
	user   client.Client
	other  client.Client
	// acting is who writes at the moment.
	acting string
	// own are the objects that the process has created.
	own   map[types.UID]bool
	cloud cloudState

	process *process
	// routed is the version up to which events have gone to caches and actors, and routing is true while they are going.
	routed  int64
	routing bool
	actors  []*actorState
	// rubbish is true when there may be something for the garbage collector, and spared what it is late with.
	rubbish bool
	spared  map[string]bool
	acts    int
	// later is what will be done at a time.
	later []postponed

	// twice has everything reconciled again twice when all is quiet, and not once.
	twice bool
	// slow has actors act only when all else is quiet, and reverse in the opposite order.
	slow, reverse bool
	// flapped is a workload that has no replica for a while.
	flapped thing
	// skip is the number of a step that is not taken, and skipped are those whose settling users did not wait for.
	skip    int
	skipped []int
	// step is the step that is done, or the one that settles.
	step   int
	visits map[site]int
	// met are the points of this run at which something could go wrong, in their order.
	met []meeting
	// hit is how many faults of the schedule have come true.
	hit int

	// changes counts the changes of the state, of which only those of the process are effects.
	changes int
	effects int
	idle    int // requests of the process that had no effect
	// requests counts those of the process. To apply takes as long as ten others, and to patch as long as three.
	requests int
	// calm is how often a request was worked on since the last change, with nothing to do.
	calm map[request]int
	// far is when requests come back that only do after a long time, patient are those that ever did, which later may be
	// asked while they wait, and waited are those that have been waited for.
	far     map[request]time.Time
	patient map[request]bool
	waited  map[request]wait
	// changesOfOthers counts the changes that are not of the process.
	changesOfOthers int
	// stirred is when there was the last change.
	stirred time.Time
	// reconciles is how many there were, and since the last settling.
	reconciles, recent int
	quietAt            time.Time

	made ledger
	// lastEffect is the last write of the process, and lastResult the last reconcile.
	lastEffect string
	lastResult *activity
	readies    []readiness
	// unprotected are the objects that had no finalizer when something happened outside, and finalized those that have got
	// one from the process.
	unprotected []unprotected
	finalized   map[string]bool
	// serving is the request that is being answered.
	serving *call
	// requested are the requests that there were since all was quiet, in their order.
	requested []request
	// unsettled counts what users have done to objects since all was quiet, and between is true if the process may have
	// seen what was only there in between.
	unsettled map[types.NamespacedName]int
	between   bool
	// late is true while a write of an earlier process has its effect.
	late bool
	// landing are writes that have not had their effect yet.
	landing []landing
	// stale are the caches that the next process begins with an old list of.
	stale []staleStart

	violations []Violation
	// advices are what is dangerous but did no harm.
	advices   []string
	settled   []*snapshot
	settledAt []int
	log       *timeline
	over      bool
	// ended is when the run came to its end.
	ended time.Duration
	// restartWhenQuiet is true when the process is to be ended as soon as all is quiet.
	restartWhenQuiet bool
	// sleeping is true while users let time pass, in which as much may happen as likes to.
	sleeping bool
	// stopped is true when there is no end, and the oracle that says so is off.
	stopped bool
	// checking is true while all is reconciled again, which is no time for faults.
	checking bool
}

// meeting is a point, and what could go wrong there.
type meeting struct {
	point

	faults faultSet
	// version and step tell which crashes are the same.
	version int64
	step    int
	// after is the version when it had happened.
	after int64
}

// postponed is something that will be done.
type postponed struct {
	at time.Time
	do func()
}

// meet is called where something can go wrong, and returns what does.
func (r *run) meet(s site, faults faultSet) Fault {
	if r.over || r.checking {
		return ""
	}
	r.visits[s]++
	p := point{s, r.visits[s]}
	if faults &= r.plan.faults; faults == 0 {
		return ""
	}
	r.met = append(r.met, meeting{point: p, faults: faults, version: r.total(), step: r.step})
	fault := r.schedule.at(p)
	if fault == "" || !faults.has(fault) {
		return ""
	}
	r.hit++
	r.log.hit(p)
	return fault
}

// total counts all changes of the API server and of the cloud.
func (r *run) total() int64 { return r.server.Version() + int64(r.cloud.version)<<32 }

func (r *run) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// now is how much time has passed since the beginning, at most until the end.
func (r *run) now() time.Duration {
	if r.ended > 0 {
		return r.ended
	}
	return time.Since(r.begin)
}

// missed notes that what was to go wrong did not: somebody else could not do it.
func (r *run) missed() { r.hit-- }

// steps does what users do, one after the other.
func (r *run) steps() {
	// Users may have been quicker than the process has started.
	for ; r.step < len(r.plan.Steps) && !r.failed(); r.step++ {
		if r.step+1 != r.skip {
			r.take(r.plan.Steps[r.step])
		}
	}
	r.over = true
}

func (r *run) take(step Step) {
	switch {
	case step.settle:
		r.settle()
	case step.sleep > 0:
		r.log.user(r, step, nil)
		r.sleeping = true
		r.work(time.Now().Add(step.sleep))
		r.sleeping = false
	default:
		done := r.as("user")
		err := step.do(r.ctx, r.user)
		r.log.user(r, step, err)
		done()
		if err != nil && len(r.schedule) == 0 {
			r.violate(scenarioFailure("step " + step.name + ": " + err.Error()))
		}
	}
}

// meanwhile takes the next steps before their time, up to the next settling, which then ends the present one.
func (r *run) meanwhile() {
	r.skipped = append(r.skipped, r.step)
	for next := r.step + 1; next < len(r.plan.Steps); next++ {
		r.step = next
		if r.plan.Steps[next].settle {
			return
		}
		if r.plan.Steps[next].sleep == 0 {
			r.take(r.plan.Steps[next])
		}
	}
}

// canMeanwhile is true if there is a step after the present settling.
func (r *run) canMeanwhile() bool {
	// What is under way lands before users go on: what comes after everybody has cleaned up nobody can help.
	return len(r.landing) == 0 && r.plan.Steps[r.step].settle && r.step+1 < len(r.plan.Steps) &&
		(r.plan.reference == nil || r.plan.reference.quick[r.step] != nil)
}

// changed is called after whatever may have changed the state, and passes the events on.
func (r *run) changed() {
	if r.routing || r.routed == r.server.Version() {
		return // what is written meanwhile is passed on in its turn
	}
	r.routing = true
	defer func() { r.routing = false }()
	r.stir()
	for events := r.server.Events(r.routed); len(events) > 0; events = r.server.Events(r.routed) {
		e := events[0]
		r.routed = e.Version
		r.changes++
		if r.acting != byProcess {
			r.changesOfOthers++
		}
		r.observe(e)
		if i := r.process.existing(e.Kind); i != nil {
			r.arrive(i, e)
		}
		r.tellActors(e)
	}
}

// arrive puts an event on its way to a cache.
func (r *run) arrive(i *informer, e memapi.Event) {
	i.coming = append(i.coming, e)
	if i.held != nil {
		return
	}
	switch fault := r.meet(site{"event " + eventNames[e.Type], e.Kind.Kind, keyOf(e.Object)}, eventFaults); fault {
	case "":
	case FaultResync:
		r.log.watch(r, i, "all "+e.Kind.Kind+" again", fault)
		i.resync = true
	default:
		r.between = r.between || r.acting == "user" && r.unsettled[e.Key] > 1
		i.held = &hold{fault: fault, from: e.Version, reconcile: r.reconciles}
		r.log.watch(r, i, eventNames[e.Type]+" "+e.Kind.Kind+" "+nameOf(e.Key)+" is late", fault)
		held := i.held
		r.after(longLag, func() {
			if i.held == held {
				r.release(i)
			}
		})
	}
}

var eventNames = map[watch.EventType]string{watch.Added: "added", watch.Modified: "modified", watch.Deleted: "deleted"}

var eventFaults = faultsAt(atEvent)

// release ends what holds up a watch.
func (r *run) release(i *informer) {
	if i.held == nil {
		return
	}
	relist := i.held.fault == FaultRelist
	i.held = nil
	r.log.watch(r, i, i.kind.Kind+" catches up", "")
	if relist {
		r.stir()
		r.deliver(i, i.relist(r.server.List(i.kind), r.server.Version()))
	}
}

func (r *run) after(d time.Duration, do func()) {
	r.later = append(r.later, postponed{at: time.Now().Add(d), do: do})
}

func (p *process) existing(kind schema.GroupVersionKind) *informer {
	for _, i := range p.informers {
		if i.kind == kind {
			return i
		}
	}
	return nil
}
