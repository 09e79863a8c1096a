// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/state"
)

// outcome is the result of a run.
type outcome struct {
	violations []Violation
	advices    []string
	points     []inject.Injectable
	// injected is how many faults of the schedule were injected.
	injected  int
	settled   []*state.Snapshot
	settledAt []int
	// settledErrs are the errors of the last reconciles before each Settle.
	settledErrs []error
	// skipped are the Settles that users did not wait for because of a fault.
	skipped    []int
	reconciles int
	ledger     judge.Ledger
	readies    []readiness
	noOps      int
	requests   int
	// processes are the last ones of each program.
	processes processes
	// starts are those of the injector.
	starts  []int
	lessons lessons
}

// violation returns the first violation, if there is one.
func (o *outcome) violation() (Violation, bool) {
	if len(o.violations) == 0 {
		return Violation{}, false
	}
	return o.violations[0], true
}

// execute executes a schedule, in a bubble of its own.
func (p *plan) execute(t *testing.T, s inject.Schedule, v variation, log *timeline) (o outcome) {
	var r *run
	complete := false
	defer func() { p.remember(o.lessons) }()
	defer func() {
		if recovered := recover(); recovered != nil {
			message := fmt.Sprint(recovered)
			if r == nil || !strings.Contains(message, "deadlock") {
				panic(recovered)
			}
			if _, off := p.Off[OracleLeaks]; off && complete {
				return // what is left of the process cannot change the outcome
			}
			r.oracles.leaks.deadlocked()
			o = r.outcome()
		}
	}()
	watchdog := time.AfterFunc(stuckTime, func() { warnStuck(t.Name()) })
	defer watchdog.Stop()
	synctest.Test(t, func(*testing.T) {
		r = newRun(p, s, v, log)
		r.execute()
		r.end()
		o, complete = r.outcome(), true
	})
	return o
}

// stuckTime is how long a run may take, in real time, until a warning is printed.
var stuckTime = 30 * time.Second

var warnStuck = func(test string) {
	fmt.Fprintf(os.Stderr, "%s: a run is stuck for %s; most runs take less than a millisecond. Does a goroutine wait for "+
		"a lock that is held across a request, for the network, or for an event outside of the scenario? SIGQUIT prints "+
		"its stack.\n", test, stuckTime)
}

// end ends the process, and so all that it has started.
func (r *run) end() {
	r.world.over, r.world.ended = true, r.world.now()
	for _, p := range r.processes {
		p.die()
	}
	// A goroutine that waits for an event that will happen is not a leak.
	time.Sleep(leakTime)
	synctest.Wait()
}

// leakTime is how long goroutines may take to end.
const leakTime = 10 * time.Second

func (r *run) outcome() outcome {
	return outcome{
		violations: r.violations, advices: r.advices, points: r.faults.points, injected: r.faults.injected,
		settled: r.trace.settled, settledAt: r.trace.settledAt, settledErrs: r.trace.settledErrs,
		skipped: r.users.skipped, reconciles: r.trace.reconciles,
		ledger: r.oracles.duplicates.Ledger, readies: r.oracles.status.readies, noOps: r.trace.noOps,
		requests: r.trace.requests, processes: r.processes, starts: r.faults.starts, lessons: r.lessons,
	}
}

// at returns the state at the end of a step.
func (o *outcome) at(step int) *state.Snapshot {
	for i, at := range o.settledAt {
		if at == step {
			return o.settled[i]
		}
	}
	return &state.Snapshot{}
}
