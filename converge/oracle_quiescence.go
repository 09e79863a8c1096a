// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"time"

	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
)

// quiescenceOracle checks that reconciles stop, and that each one returns. It sees the scheduler, which knows how often
// a request was reconciled without a change.
type quiescenceOracle struct {
	evidence

	scheduler *scheduler
	faults    int
	// rates are those of the requests during a Sleep.
	rates map[request]rate
	// turns counts those of the loop since a reconcile has ended, or since everything waited for time to pass.
	turns int
}

// rate counts the reconciles of a request that have changed something or failed, within a time.
type rate struct {
	since time.Time
	times int
}

const (
	// rateTime is the time for which a rate is limited.
	rateTime = time.Minute
	// maxTurns limits the turns of the loop in which no reconcile ends.
	maxTurns = 20_000
)

// limit is how many reconciles a Settle may take.
func (o *quiescenceOracle) limit() int {
	if o.plan.recordsReference() {
		return o.plan.MaxReconciles
	}
	reconciles := 0
	for _, version := range o.plan.alone() {
		reconciles += version.reference.reconciles
	}
	return 5*reconciles + 10 + 15*o.faults
}

// finished checks the number of reconciles of a Settle, or the rate of those of a request during a Sleep.
func (o *quiescenceOracle) finished(of processes, a *activity) {
	o.turns = 0
	if o.scheduler.sleeping() {
		o.sleeping(of, a.request)
		return
	}
	if limit := o.limit(); o.scheduler.recent > limit {
		o.notConverged(of, "after "+phrase.Plural(limit, "reconcile"))
	}
}

// sleeping checks how often a request is reconciled during a Sleep. A Sleep may be long: only the rate is limited, and
// requests that poll without a change are not counted.
func (o *quiescenceOracle) sleeping(of processes, req request) {
	if idle := o.scheduler.idle[req]; idle.times > 0 {
		if idle.hot() && of[req.program].queue.has(req) {
			o.hotLoop(req, idle)
		}
		return
	}
	limit := o.plan.MaxReconciles
	if !o.plan.recordsReference() {
		limit *= 2
	}
	current := o.rates[req]
	if current.times == 0 || time.Since(current.since) >= rateTime {
		current = rate{since: time.Now()}
	}
	current.times++
	o.rates[req] = current
	if current.times > limit {
		o.notConverged(of, fmt.Sprintf(
			"during a sleep: %s was reconciled %d times in %s", phrase.Name(req.NamespacedName), current.times,
			time.Since(current.since).Round(time.Millisecond),
		))
	}
}

// turn checks that something other than the loop goes on: a reconcile that makes requests without end never waits.
func (o *quiescenceOracle) turn(of processes) {
	if o.turns++; o.turns <= maxTurns {
		return
	}
	o.turns = 0
	v := Violation{
		Oracle: OracleQuiescence, Cause: CauseNotQuiet,
		Message: fmt.Sprintf("did not converge: %d actions, and no reconcile has ended", maxTurns),
	}
	if a := of.active(); a != nil {
		v.Cause, v.About = CauseHangs, phrase.Name(a.NamespacedName)
		v.Message = "the reconcile of " + v.About + " does not return: it makes requests without end"
	}
	o.violate(v)
}

// waiting checks the time that a Settle takes, and reports whether it takes too long.
func (o *quiescenceOracle) waiting(of processes) bool {
	if time.Since(o.scheduler.settleStart) <= o.plan.Patience {
		return false
	}
	o.notConverged(of, "for "+o.plan.Patience.String())
	return true
}

func (o *quiescenceOracle) notConverged(of processes, long string) {
	v := Violation{Oracle: OracleQuiescence, Cause: CauseNotQuiet, Message: "did not converge " + long}
	if a := o.trace.lastResult; a != nil {
		v.About = phrase.Name(a.NamespacedName)
		switch {
		case a.err != nil:
			v.Message += ", " + v.About + " fails: " + a.err.Error()
		case o.trace.lastEffect != "":
			v.Message += ", the last effect: " + o.trace.lastEffect
			if o.dependsOnTime(a) {
				v.Details = append(v.Details, fmt.Sprintf(
					"%s has new work each time that its RequeueAfter of %s ends: if that is intended, users must suspend it before "+
						"they settle, see SleepThen", v.About, a.result.RequeueAfter.Round(time.Second)))
			}
		}
	}
	if a := of.active(); a != nil && !o.scheduler.sleeping() && time.Since(o.scheduler.settleStart) > o.plan.Patience {
		v.Cause = CauseHangs
		v.Message = "the reconcile of " + phrase.Name(a.NamespacedName) + " does not return"
	}
	if v.Cause == CauseNotQuiet {
		v = o.explained(v, "did not converge "+long+": ")
	}
	o.violate(v)
}

// explained names those who keep each other busy, if any.
func (o *quiescenceOracle) explained(v Violation, prefix string) Violation {
	h := o.history()
	revisions := h.Revisions(o.world.server.Version() - judge.MostRevisions)
	if f, ok := judge.FightIn(revisions, judge.LeastTurns); ok {
		return Violation(f.Violation(h, OracleQuiescence, prefix))
	}
	if c := h.CycleIn(revisions); c != nil {
		v.Cause, v.About, v.Message, v.Details = CauseChain, c[0].Object, prefix+c.Message(), c.Details(h)
		return v
	}
	if f, ok := h.WebhookFight(o.trace.mutations); ok {
		return Violation(f.Violation(h, OracleQuiescence, prefix))
	}
	return v
}

// slept checks, at the end of a Sleep, whether two writers have changed the same field in turn, if slowly.
func (o *quiescenceOracle) slept(since int64) {
	if o.failed() || !judge.Contested(o.world.server.Events(since), 2*judge.SlowTurns) {
		return
	}
	h := o.history()
	revisions := h.Revisions(since)
	if len(revisions) == 0 {
		return
	}
	end := revisions[len(revisions)-1].At
	revisions = slices.DeleteFunc(revisions, func(r judge.Revision) bool { return end.Sub(r.At) > time.Hour })
	if f, ok := judge.FightIn(revisions, judge.SlowTurns); ok {
		o.violate(Violation(f.Violation(h, OracleQuiescence, "did not converge during a sleep: ")))
	}
}

// dependsOnTime reports whether the reconciles since the start of the Settle were those of a request that polls.
func (o *quiescenceOracle) dependsOnTime(a *activity) bool {
	after := a.result.RequeueAfter
	return after >= time.Second && time.Since(o.scheduler.settleStart) >= time.Duration(o.scheduler.recent/4)*after
}

// idle checks for hot loops when everything else is idle.
func (o *quiescenceOracle) idle(of processes) {
	for item := range of.queued() {
		if idle := o.scheduler.idle[item.request]; idle.hot() {
			o.hotLoop(item.request, idle)
			return
		}
	}
}

func (o *quiescenceOracle) hotLoop(req request, idle idleCount) {
	if _, off := o.plan.Off[OracleQuiescence]; off {
		return // a violation would stop the run, although it converges
	}
	name := phrase.Name(req.NamespacedName)
	o.violate(Violation{
		Oracle: OracleQuiescence, Cause: CauseHotLoop, About: name,
		Message: fmt.Sprintf(
			"%s was reconciled %d times in %s without any change, and is queued again", name, maxPolls,
			idle.took.Round(time.Millisecond),
		),
	})
}
