// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"trueup.dev/converge/internal/finding"
)

// idempotenceOracle reconciles all objects again when the controller is idle, which must not change anything, nor try
// to.
type idempotenceOracle struct {
	Evidence

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
		effects, needless, since := o.Trace.Effects, o.Trace.Needless, o.World.Server.Version()
		again()
		if o.Failed() {
			return
		}
		if _, off := o.Scenario.Off[finding.OracleIdempotence]; off {
			continue
		}
		switch {
		case o.Trace.Effects != effects:
			o.redundant(o.Trace.LastEffect, since, again)
			return
		case o.Trace.Needless != needless:
			if o.needless(again); o.Failed() {
				return
			}
		}
	}
}

// redundant reports a write since a version. A write that is not repeated was due earlier.
func (o *idempotenceOracle) redundant(effect string, since int64, again func()) {
	v := finding.Violation{
		Oracle: finding.OracleIdempotence, Cause: finding.CauseRedundantWrite, About: effect,
		Message: "another reconcile, without any change, writes: " + effect,
	}
	effects := o.Trace.Effects
	again()
	if !o.Failed() && o.Trace.Effects == effects {
		v.Cause = finding.CauseMissedWork
		v.Message += ", which was due before"
	}
	if f, ok := FightIn(o.history().Revisions(since), LeastTurns); ok && !o.Failed() {
		v = f.Violation(o.history(), finding.OracleIdempotence, "another reconcile, without any change, writes: ")
	}
	o.Replace(v)
}

// needless reports an update or a patch without an effect if it is repeated: each reconcile makes a request for
// nothing.
func (o *idempotenceOracle) needless(again func()) {
	needless := o.Trace.Needless
	again()
	if o.Failed() || o.Trace.Needless == needless {
		return
	}
	if f, ok := o.history().WebhookFight(o.Trace.Mutations); ok {
		o.Violate(
			f.Violation(o.history(), finding.OracleIdempotence, "each reconcile makes a request that changes nothing: "),
		)
		return
	}
	o.Violate(finding.Violation{
		Oracle: finding.OracleIdempotence, Cause: finding.CauseNoOpWrite, About: o.Trace.LastNeedless,
		Message: "each reconcile makes a request that changes nothing: " + o.Trace.LastNeedless,
	})
}
