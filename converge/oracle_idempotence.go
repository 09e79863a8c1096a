// SPDX-License-Identifier: Apache-2.0

package converge

import "trueup.dev/converge/internal/judge"

// idempotenceOracle reconciles all objects again when the controller is idle, which must not change anything, nor try
// to.
type idempotenceOracle struct {
	evidence

	// twice is set for a run that checks each state twice.
	twice bool
}

// check calls again, which reconciles all objects, once or twice.
func (o *idempotenceOracle) check(again func()) {
	rounds := 1
	if o.twice {
		rounds = 2
	}
	for range rounds {
		effects, needless, since := o.trace.effects, o.trace.needless, o.world.server.Version()
		again()
		if o.failed() {
			return
		}
		if _, off := o.plan.Off[OracleIdempotence]; off {
			continue
		}
		switch {
		case o.trace.effects != effects:
			o.redundant(o.trace.lastEffect, since, again)
			return
		case o.trace.needless != needless:
			if o.needless(again); o.failed() {
				return
			}
		}
	}
}

// redundant reports a write since a version. A write that is not repeated was due earlier.
func (o *idempotenceOracle) redundant(effect string, since int64, again func()) {
	v := Violation{
		Oracle: OracleIdempotence, Cause: CauseRedundantWrite, About: effect,
		Message: "another reconcile, without any change, writes: " + effect,
	}
	effects := o.trace.effects
	again()
	if !o.failed() && o.trace.effects == effects {
		v.Cause = CauseMissedWork
		v.Message += ", which was due before"
	}
	if f, ok := judge.FightIn(o.history().Revisions(since), judge.LeastTurns); ok && !o.failed() {
		v = Violation(f.Violation(o.history(), OracleIdempotence, "another reconcile, without any change, writes: "))
	}
	o.replace(v)
}

// needless reports an update or a patch without an effect if it is repeated: each reconcile makes a request for
// nothing.
func (o *idempotenceOracle) needless(again func()) {
	needless := o.trace.needless
	again()
	if o.failed() || o.trace.needless == needless {
		return
	}
	if f, ok := o.history().WebhookFight(o.trace.mutations); ok {
		o.violate(Violation(
			f.Violation(o.history(), OracleIdempotence, "each reconcile makes a request that changes nothing: "),
		))
		return
	}
	o.violate(Violation{
		Oracle: OracleIdempotence, Cause: CauseNoOpWrite, About: o.trace.lastNeedless,
		Message: "each reconcile makes a request that changes nothing: " + o.trace.lastNeedless,
	})
}
