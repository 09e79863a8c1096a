// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// outcome is the result of a run.
type outcome struct {
	violations []Violation
	advices    []string
	points     []injectionPoint
	// injected is how many faults of the schedule were injected.
	injected   int
	settled    []*snapshot
	settledAt  []int
	reconciles int
	ledger     ledger
	readies    []readiness
	noOps      int
	requests   int
	// informers are those of the last process.
	informers []*informer
}

// violation returns the first violation, if there is one.
func (o *outcome) violation() (Violation, bool) {
	if len(o.violations) == 0 {
		return Violation{}, false
	}
	return o.violations[0], true
}

// execute executes a schedule, in a bubble of its own.
func (p *plan) execute(t *testing.T, s schedule, v variation, log *timeline) (o outcome) {
	var r *run
	defer func() {
		if recovered := recover(); recovered != nil {
			message := fmt.Sprint(recovered)
			if r == nil || !strings.Contains(message, "deadlock") {
				panic(recovered)
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
		o = r.outcome()
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
	r.process.die()
	// A goroutine that waits for an event that will happen is not a leak.
	time.Sleep(leakTime)
	synctest.Wait()
}

// leakTime is how long goroutines may take to end.
const leakTime = 10 * time.Second

func (r *run) outcome() outcome {
	return outcome{
		violations: r.violations, advices: r.advices, points: r.faults.points, injected: r.faults.injected,
		settled: r.trace.settled, settledAt: r.trace.settledAt, reconciles: r.trace.reconciles,
		ledger: r.oracles.duplicates.ledger, readies: r.oracles.status.readies, noOps: r.trace.noOps,
		requests: r.trace.requests, informers: r.process.informers,
	}
}

// reference is the run without faults, which other runs are compared to.
type reference struct {
	outcome

	// quick are runs without faults in which users do not wait for a step to settle, by that step.
	quick map[int]*reference
	// mustSettle are the steps that users must wait for, with the failure if they do not.
	mustSettle []string
	// masked are the fields that differ between runs without faults.
	masked map[string]bool
}

// at returns the state at the end of a step.
func (o *outcome) at(step int) *snapshot {
	for i, at := range o.settledAt {
		if at == step {
			return o.settled[i]
		}
	}
	return &snapshot{}
}

// usual and other are two runs without faults. What differs between them depends on time, versions, UIDs or chance.
func (p *plan) usual() variation { return variation{seed: p.seed} }

func (p *plan) other() variation {
	return variation{seed: p.seed + 1, delay: 26*time.Hour + 17*time.Minute + 13*time.Second, versions: 7, twice: true}
}

// recordsReference reports whether the present run is one without faults, whose outcome others are compared with.
func (p *plan) recordsReference() bool { return p.reference == nil }

// refer executes the runs without faults. It returns the first of them that fails, or the usual one and true.
func (p *plan) refer(t *testing.T) (outcome, bool) {
	p.reference, p.read = nil, nil
	for _, informer := range p.execute(t, nil, p.usual(), nil).informers {
		p.read = append(p.read, informer.kind)
	}
	p.waits = false
	one := p.execute(t, nil, p.usual(), nil)
	if len(one.violations) > 0 {
		return one, false
	}
	other := p.execute(t, nil, p.other(), nil)
	if len(other.violations) > 0 {
		return other, false
	}
	slow, reverse := p.usual(), p.usual()
	slow.slow, reverse.slow, reverse.reverse = true, true, true
	if p.waits = readyMeansAvailable(p.execute(t, nil, slow, nil)) &&
		readyMeansAvailable(p.execute(t, nil, reverse, nil)); p.waits {
		// The status oracle needs to know that Ready means available.
		if one = p.execute(t, nil, p.usual(), nil); len(one.violations) > 0 {
			return one, false
		}
	}
	quick := map[int]*reference{}
	var mustSettle []string
	for step, s := range p.Steps[:len(p.Steps)-1] {
		if s.settle {
			v := p.usual()
			v.skip = step + 1
			// If that fails without a fault, users must wait.
			o := p.execute(t, nil, v, nil)
			if violation, failed := o.violation(); failed {
				mustSettle = append(
					mustSettle,
					fmt.Sprintf(
						"users always wait at step %d, %s: otherwise the run without faults fails: %s", step+1, s.name, violation,
					),
				)
				continue
			}
			quick[step] = &reference{outcome: o}
		}
	}
	for i := range one.points {
		if m := &one.points[i]; quick[m.step] == nil {
			m.faults &^= setOf(FaultMeanwhile)
		}
	}
	p.reference = &reference{
		outcome:    one,
		quick:      quick,
		mustSettle: mustSettle,
		masked:     p.masks(one.settled, other.settled),
	}
	return one, true
}
