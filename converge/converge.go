// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/search"
	"trueup.dev/internal/engine/calledby"
)

// The flags of test binaries that import this package.
var (
	budgetFlag = flag.Duration(
		"converge.budget", 0, "time limit of the search for failures of several faults; 0 tries a fixed number of schedules",
	)
	singlesFlag = flag.Bool("converge.singles", false, "try all single faults, even if that takes long")
	pairsFlag   = flag.Bool("converge.pairs", false, "try all pairs of faults")
	randomFlag  = flag.Int("converge.random", 0, "number of random schedules to try")
	seedFlag    = flag.Uint64(
		"converge.seed", 1, "seed of random choices; replayed schedules have their own",
	)
	replayFlag = flag.String("converge.replay", "", "a schedule to replay, as a failure prints it")
	htmlFlag   = flag.String(
		"converge.html", "", "an .html file for the page of a failure, or a directory for the pages of all tests",
	)
)

// Options limit the search.
type Options struct {
	// Budget limits the time of the search for failures of several faults. By default, there is no limit. It does not
	// limit the search for failures of single faults.
	Budget time.Duration
	// SingleRequests samples the single faults where runs are long, so that all runs with one fault make about this number
	// of requests: the first request or event of each kind with each fault, then the first ones of each object, and then
	// repetitions. The sample depends on nothing but the scenario. 0 means no limit: all single faults are tried.
	SingleRequests int
	// Recoveries limits the number of second faults that are tried at points that only exist after a first one; -1 means
	// no limit.
	Recoveries int
	// Pairs limits the number of random pairs of faults that are tried; -1 tries all pairs.
	Pairs int
	// Requests reduces Recoveries and Pairs where runs are long, so that all runs for either make about this number of
	// requests. 0 means no limit.
	Requests int
	// Random is the number of random schedules of up to six faults that are tried.
	Random int
	// Seed is the seed of random choices.
	Seed uint64
}

// DefaultOptions returns the options of Run, as flags change them: all single faults, or as many as make 500,000
// requests, which takes less than a minute; 1,000 second faults, and 1,000 pairs, or as many of each as make 20,000
// requests, which takes about a second. With the race detector, which makes runs ten times slower, it is a tenth of
// that.
func DefaultOptions() Options {
	some, requests, singles := 1000, 20_000, 500_000
	if raceDetector {
		some, requests, singles = some/10, requests/10, singles/10
	}
	o := Options{
		Budget: *budgetFlag, SingleRequests: singles, Recoveries: some, Pairs: some, Requests: requests,
		Random: *randomFlag, Seed: *seedFlag,
	}
	if *singlesFlag || *budgetFlag > 0 {
		o.SingleRequests = 0
	}
	if *pairsFlag {
		o.Pairs = -1
	}
	if o.Budget > 0 {
		o.Recoveries, o.Pairs = -1, -1
		if o.Random == 0 {
			o.Random = 1 << 40
		}
	}
	return o
}

// Run proves that a reconciler converges. It tries each single fault at each injection point, or a sample of them if
// that would take more than a minute, and some combinations, and fails the test with the timeline of the first failure,
// shrunk to the fewest faults. The failure is saved below testdata/converge, and the next test run tries it first. With
// the flag -converge.html it is also written as a page, see [Failure.HTML].
func Run(t *testing.T, s Scenario) {
	t.Helper()
	p, err := newPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	if *replayFlag != "" {
		p.replay(t, *replayFlag)
		return
	}
	p.seed = *seedFlag
	if failure := p.replaySaved(t); failure != nil {
		p.fail(t, failure)
		return
	}
	report := p.check(t, DefaultOptions())
	if report.Failure != nil {
		p.fail(t, report.Failure)
		return
	}
	t.Log(p.certificate(report))
}

// Check is [Run] that returns the report instead of failing the test.
func Check(t *testing.T, s Scenario, o Options) (*Report, error) {
	p, err := newPlan(s)
	if err != nil {
		return nil, err
	}
	p.seed = o.Seed
	return p.check(t, o), nil
}

// certificate formats what was tried, and what was left out.
func (p *plan) certificate(report *Report) string {
	advice := report.Certificate.Advice
	if _, off := p.Off[OracleAdvice]; off {
		advice = nil
	}
	return search.Certificate(report.Certificate.String(), nil, advice, report.Certificate.LeftOut)
}

// leftOut lists what is left out, with the reasons.
func (p *plan) leftOut() []string {
	var lines []string
	for _, oracle := range allOracles {
		if reason, off := p.Off[oracle]; off {
			lines = append(lines, fmt.Sprintf("without %s: %s", oracle, reason))
		}
	}
	for _, fault := range inject.All {
		if reason, without := p.Without[fault]; without {
			lines = append(lines, fmt.Sprintf("without %s: %s", fault, reason))
		}
	}
	for _, e := range p.except {
		lines = append(lines, e.String())
	}
	for _, path := range p.uncalled() {
		lines = append(lines, "the webhook at "+path+" is not called: no configuration in Webhooks names it")
	}
	if p.reference != nil {
		lines = append(lines, p.reference.MustSettle...)
	}
	return lines
}

// fail fails the test, and saves the failure.
func (p *plan) fail(t *testing.T, f *Failure) {
	t.Helper()
	saved := ""
	if len(f.schedule) > 0 {
		saved = saveLine(t, f)
	}
	recorded := ""
	if f.tried != nil && f.tried.Recorded != nil {
		recorded = f.tried.Recorded.String() + "\n"
	}
	t.Errorf("%s%s%s%sreplay: %s", f, recorded, saved, page(t, f), f.command())
}

// replaySaved tries the schedules that have failed before.
func (p *plan) replaySaved(t *testing.T) (failed *Failure) {
	runs := savedRuns(t, savedSchedule)
	if len(runs) == 0 {
		return nil
	}
	calledby.Controller()
	defer func(seed uint64) {
		if failed == nil {
			p.seed = seed
		}
	}(p.seed)
	for _, saved := range runs {
		if !p.isOwn(saved.replay) {
			continue
		}
		s, seed, err := p.decode(saved.replay)
		if err != nil {
			t.Fatalf("%s: %v", saved.file, err)
		}
		if p.reference == nil || p.seed != seed {
			p.seed = seed
			if _, ok := p.refer(t); !ok {
				t.Logf("%s: the run without faults fails with this seed", saved.file)
				return nil // the search reports it, if it fails with each seed
			}
		}
		if failure := p.failure(t, saved.file, s); failure != nil {
			return failure
		}
	}
	return nil
}

// failure runs the schedule of a file, and returns its failure, if it has one.
func (p *plan) failure(t *testing.T, file string, s inject.Schedule) *Failure {
	o := p.try(t, s, nil)
	if o.Injected < len(s) && len(o.Violations) == 0 {
		t.Logf(
			"%s: only %d of %d faults were injected: the scenario or the reconciler has changed, and the file is outdated", file,
			o.Injected, len(s),
		)
	}
	v, ok := o.First()
	if !ok {
		return nil
	}
	f := &Failure{Violation: Violation(v), schedule: s}
	p.record(t, f)
	return f
}

// replay runs one schedule, and prints its timeline.
func (p *plan) replay(t *testing.T, encoded string) {
	t.Helper()
	decoded, seed, err := p.decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	p.seed = seed
	calledby.Controller()
	if reference, ok := p.refer(t); !ok && len(decoded) > 0 {
		t.Errorf("without faults: %s", reference.Violations[0])
		return
	}
	f := &Failure{schedule: decoded}
	o := p.record(t, f)
	fmt.Print(f.FullTimeline()) // also without -v
	if o.Injected < len(decoded) {
		t.Errorf("only %d of %d faults were injected: the scenario or the reconciler has changed", o.Injected, len(decoded))
	}
	for _, v := range o.Violations {
		t.Error(v)
	}
	if len(o.Violations) > 0 {
		if line := page(t, f); line != "" {
			t.Log(line)
		}
	}
}
