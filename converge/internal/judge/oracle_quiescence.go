// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"time"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
)

// quiescenceOracle checks that reconciles stop, and that each one returns. It sees the pace: how often a request was
// reconciled without a change.
type quiescenceOracle struct {
	Evidence

	pace   *Pace
	faults int
	// rates are the rates of the requests during a Sleep.
	rates map[world.RequestOf]rate
	// turns counts the turns of the loop since a reconcile has ended, or since everything waited for time to pass.
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
	if o.Scenario.Records {
		return o.Scenario.MaxReconciles
	}
	reconciles := 0
	for _, version := range o.Scenario.Versions {
		reconciles += version.Reference.Reconciles
	}
	return 5*reconciles + 10 + 15*o.faults
}

// Finished checks the number of reconciles of a Settle, or the rate of the reconciles of a request during a Sleep.
func (o *quiescenceOracle) Finished(a *world.Reconcile) {
	o.turns = 0
	if o.pace.Sleeping() {
		o.sleeping(a.RequestOf)
		return
	}
	if limit := o.limit(); o.pace.Recent > limit {
		o.notConverged("after " + phrase.Plural(limit, "reconcile"))
	}
}

// sleeping checks how often a request is reconciled during a Sleep. A Sleep may be long: only the rate is limited, and
// requests that poll without a change are not counted.
func (o *quiescenceOracle) sleeping(req world.RequestOf) {
	if idle := o.pace.Idle[req]; idle.Times > 0 {
		if idle.hot() && o.Queues.IsQueued(req) {
			o.hotLoop(req, idle)
		}
		return
	}
	limit := o.Scenario.MaxReconciles
	if !o.Scenario.Records {
		limit *= 2
	}
	current := o.rates[req]
	if current.times == 0 || time.Since(current.since) >= rateTime {
		current = rate{since: time.Now()}
	}
	current.times++
	o.rates[req] = current
	if current.times > limit {
		o.notConverged(fmt.Sprintf(
			"during a sleep: %s was reconciled %d times in %s", phrase.Name(req.NamespacedName), current.times,
			time.Since(current.since).Round(time.Millisecond),
		))
	}
}

// Turn checks that something other than the loop goes on: a reconcile that makes requests without end never waits.
func (o *quiescenceOracle) Turn() {
	if o.turns++; o.turns <= maxTurns {
		return
	}
	o.turns = 0
	v := finding.Violation{
		Oracle: finding.OracleQuiescence, Cause: finding.CauseNotQuiet,
		Message: fmt.Sprintf("did not converge: %d actions, and no reconcile has ended", maxTurns),
	}
	if a := o.Queues.Running(); a != nil {
		v.Cause, v.About = finding.CauseHangs, phrase.Name(a.NamespacedName)
		v.Message = "the reconcile of " + v.About + " does not return: it makes requests without end"
	}
	o.Violate(v)
}

// Waiting checks the time that a Settle takes, and reports whether it takes too long.
func (o *quiescenceOracle) Waiting() bool {
	if time.Since(o.pace.SettleStart) <= o.Scenario.Patience {
		return false
	}
	o.notConverged("for " + o.Scenario.Patience.String())
	return true
}

func (o *quiescenceOracle) notConverged(long string) {
	v := finding.Violation{
		Oracle: finding.OracleQuiescence, Cause: finding.CauseNotQuiet, Message: "did not converge " + long,
	}
	if a := o.Trace.LastResult; a != nil {
		v.About = phrase.Name(a.NamespacedName)
		switch {
		case a.Err != nil:
			v.Message += ", " + v.About + " fails: " + a.Err.Error()
		case o.Trace.LastWritten() != "":
			v.Message += ", the last effect: " + o.Trace.LastWritten()
			if o.dependsOnTime(a) {
				v.Details = append(v.Details, fmt.Sprintf(
					"%s has new work each time that its RequeueAfter of %s ends: if that is intended, users must suspend it before "+
						"they settle, see SleepThen", v.About, a.Result.RequeueAfter.Round(time.Second)))
			}
		}
	}
	if a := o.Queues.Running(); a != nil && !o.pace.Sleeping() && time.Since(o.pace.SettleStart) > o.Scenario.Patience {
		v.Cause = finding.CauseHangs
		v.Message = "the reconcile of " + phrase.Name(a.NamespacedName) + " does not return"
	}
	if v.Cause == finding.CauseNotQuiet {
		v = o.explained(v, "did not converge "+long+": ")
	}
	o.Violate(v)
}

// explained names those who keep each other busy, if any.
func (o *quiescenceOracle) explained(v finding.Violation, prefix string) finding.Violation {
	h := o.history()
	revisions := h.Revisions(o.World.Server.Version() - MostRevisions)
	if f, ok := FightIn(revisions, LeastTurns); ok {
		return f.Violation(h, finding.OracleQuiescence, prefix)
	}
	if c := h.CycleIn(revisions); c != nil {
		v.Cause, v.About, v.Message, v.Details = finding.CauseChain, c[0].Object, prefix+c.Message(), c.Details(h)
		return v
	}
	if f, ok := h.WebhookFight(o.Trace.Mutations); ok {
		return f.Violation(h, finding.OracleQuiescence, prefix)
	}
	return v
}

// SleepBegins is called at the start of a Sleep, and TimePasses when everything has waited for time to pass.
func (o *quiescenceOracle) SleepBegins() { clear(o.rates) }
func (o *quiescenceOracle) TimePasses()  { o.turns = 0 }

// Slept checks, at the end of a Sleep, whether two writers have changed the same field in turn, if slowly.
func (o *quiescenceOracle) Slept(since int64) {
	if o.Failed() || !Contested(o.World.Server.Events(since), 2*SlowTurns) {
		return
	}
	h := o.history()
	revisions := h.Revisions(since)
	if len(revisions) == 0 {
		return
	}
	end := revisions[len(revisions)-1].At
	revisions = slices.DeleteFunc(revisions, func(r Revision) bool { return end.Sub(r.At) > time.Hour })
	if f, ok := FightIn(revisions, SlowTurns); ok {
		o.Violate(f.Violation(h, finding.OracleQuiescence, "did not converge during a sleep: "))
	}
}

// dependsOnTime reports whether the reconciles since the start of the Settle were caused by a request that polls.
func (o *quiescenceOracle) dependsOnTime(a *world.Reconcile) bool {
	after := a.Result.RequeueAfter
	return after >= time.Second && time.Since(o.pace.SettleStart) >= time.Duration(o.pace.Recent/4)*after
}

// Idle checks for hot loops when everything else is idle.
func (o *quiescenceOracle) Idle() {
	if req, ok := o.Queues.FirstQueued(func(req world.RequestOf) bool { return o.pace.Idle[req].hot() }); ok {
		o.hotLoop(req, o.pace.Idle[req])
	}
}

func (o *quiescenceOracle) hotLoop(req world.RequestOf, idle IdleCount) {
	if _, off := o.Scenario.Off[finding.OracleQuiescence]; off {
		return // a violation would stop the run, although it converges
	}
	name := phrase.Name(req.NamespacedName)
	o.Violate(finding.Violation{
		Oracle: finding.OracleQuiescence, Cause: finding.CauseHotLoop, About: name,
		Message: fmt.Sprintf(
			"%s was reconciled %d times in %s without any change, and is queued again", name, MaxPolls,
			idle.took.Round(time.Millisecond),
		),
	})
}
