// SPDX-License-Identifier: Apache-2.0

package converge

// leaksOracle reports goroutines that outlive their process. The bubble of testing/synctest detects them.
type leaksOracle struct{ evidence }

// deadlocked is called when the bubble has ended with blocked goroutines. The violation counts even if the oracle is
// off: such a run has not ended properly, and may be incomplete.
func (o *leaksOracle) deadlocked() {
	v := Violation{
		Oracle: OracleLeaks, Cause: CauseGoroutines, Message: "goroutines of the reconciler outlive the process",
	}
	o.violations = append(o.violations, v)
	o.trace.violation(v)
}
