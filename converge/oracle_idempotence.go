// SPDX-License-Identifier: Apache-2.0

package converge

// idempotenceOracle reconciles all objects again when the controller is idle, which must not change anything.
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
		effects, noOps := o.trace.effects, o.trace.noOps
		again()
		if o.failed() {
			return
		}
		if effect := o.trace.lastEffect; o.trace.effects != effects {
			if _, off := o.plan.Off[OracleIdempotence]; off {
				continue
			}
			o.redundant(effect, again)
			return
		}
		if o.trace.noOps != noOps && o.plan.Strict {
			o.violate(Violation{
				Oracle: OracleAdvice, Cause: CauseNoOpWrite,
				Message: plural(o.trace.noOps-noOps, "request") + " without an effect when all objects are reconciled again",
			})
		}
	}
}

// redundant reports a write. A write that is not repeated was due earlier.
func (o *idempotenceOracle) redundant(effect string, again func()) {
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
	o.replace(v)
}
