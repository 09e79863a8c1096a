// SPDX-License-Identifier: Apache-2.0

package converge

// leaksOracle reports goroutines that outlive their process. The bubble of testing/synctest detects them.
type leaksOracle struct{ evidence }

// deadlocked is called when the bubble has ended with blocked goroutines. If the oracle is off, it is only called for
// runs that are incomplete, and the violation counts.
func (o *leaksOracle) deadlocked() {
	v := Violation{
		Oracle: OracleLeaks, Cause: CauseGoroutines, Message: "goroutines of the reconciler outlive the process",
	}
	o.violations = append(o.violations, v)
	o.trace.violation(v)
}
