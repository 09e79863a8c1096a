// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"time"
)

// quiescenceOracle checks that reconciles stop, and that each one returns. It sees the scheduler, which knows how often
// a request was reconciled without a change.
type quiescenceOracle struct {
	evidence

	scheduler *scheduler
	faults    int
}

// limit is how many reconciles a Settle may take.
func (o *quiescenceOracle) limit() int {
	if o.plan.recordsReference() {
		return o.plan.MaxReconciles
	}
	return 5*o.plan.reference.reconciles + 10 + 15*o.faults
}

// finished checks the number of reconciles.
func (o *quiescenceOracle) finished(p *process) {
	if limit := o.limit(); o.scheduler.recent > limit && !o.scheduler.sleeping {
		o.notConverged(p, "after "+plural(limit, "reconcile"))
	}
}

// waiting checks the time that a Settle takes, and reports whether it takes too long.
func (o *quiescenceOracle) waiting(p *process) bool {
	if time.Since(o.scheduler.settleStart) <= o.plan.Patience {
		return false
	}
	o.notConverged(p, "for "+o.plan.Patience.String())
	return true
}

func (o *quiescenceOracle) notConverged(p *process, long string) {
	v := Violation{Oracle: OracleQuiescence, Cause: CauseNotQuiet, Message: "did not converge " + long}
	if a := o.trace.lastResult; a != nil {
		v.About = nameOf(a.NamespacedName)
		switch {
		case a.err != nil:
			v.Message += ", " + v.About + " fails: " + a.err.Error()
		case o.trace.lastEffect != "":
			v.Message += ", the last effect: " + o.trace.lastEffect
		}
	}
	if len(p.active) > 0 && time.Since(o.scheduler.settleStart) > o.plan.Patience {
		v.Cause = CauseHangs
		v.Message = "the reconcile of " + nameOf(p.active[0].NamespacedName) + " does not return"
	}
	o.violate(v)
}

// idle checks for hot loops when everything else is idle.
func (o *quiescenceOracle) idle(q *queue) {
	if _, off := o.plan.Off[OracleQuiescence]; off {
		return // a violation would stop the run, although it converges
	}
	took := time.Since(o.scheduler.lastChange)
	for _, item := range q.items {
		if idle := o.scheduler.idle[item.request]; idle >= maxPolls && took < hotTime {
			name := nameOf(item.request.NamespacedName)
			o.violate(Violation{
				Oracle: OracleQuiescence, Cause: CauseHotLoop, About: name,
				Message: fmt.Sprintf(
					"%s was reconciled %d times in %s without any change, and is queued again", name, idle,
					took.Round(time.Millisecond),
				),
			})
			return
		}
	}
}
