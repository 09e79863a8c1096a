// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
)

// Report is the result of a search.
type Report struct {
	// Failure is nil if no failure was found.
	Failure     *Failure
	Certificate Certificate
}

// Failure is a violation, and the fewest faults that cause it.
type Failure struct {
	Violation Violation
	// Faults are the faults and their points, for people. Replay is the schedule for the flag -converge.replay.
	Faults []string
	Replay string
	// Hint is the usual reason for such a failure, and its solution.
	Hint string
	// Shrinks is the number of runs that were needed to find the fewest faults.
	Shrinks int

	schedule inject.Schedule
	// walk describes the changes by users, if the failure is one of States.
	walk []string
	log  explain.Log
	// proof are the indexes of the entries that show what the hint states.
	proof []int
	// test is the name of the test. tried is what was tried before, or nil for a schedule that was saved or given.
	test  string
	tried *Certificate
	// leftOut are the oracles that are off and the faults that are disabled, with the reasons.
	leftOut []string
}

// Certificate counts what was tried. Without a failure, and if SinglesLeft is 0, it proves that no single fault of the
// model leads the reconciler to another state. For several faults it only counts the schedules that were tried.
type Certificate struct {
	Seed uint64
	// Programs is the number of programs, Points is the number of injection points in the run without faults, and
	// Reconciles is the number of its reconciles.
	Programs, Points, Reconciles int
	// Enumerated counts faults at points, Pruned those that are equivalent to another fault, and Singles those that were
	// tried. SinglesLeft counts those that were not, because that would have taken too long.
	Enumerated, Pruned, Singles, SinglesLeft int
	// Recoveries counts second faults at points that only exist after a first one, and RecoveriesLeft those that were not
	// tried.
	Recoveries, RecoveriesLeft int
	// Pairs counts the pairs of faults that were tried, of PairsInAll, and Random the schedules of up to six faults.
	Pairs, PairsInAll, Random int
	// Schedules is the number of runs with faults.
	Schedules int
	// Advice lists dangerous requests that did no harm, and rules of roles that no run has used.
	Advice []string
	// LeftOut lists what was not checked or not tried, with the reasons: oracles that are off, faults that are disabled,
	// and Settles that users must wait for, because the run without faults fails otherwise.
	LeftOut []string
	// Idle counts writes without an effect in the run without faults, most of them applies.
	Idle    int
	Elapsed time.Duration
	// Recorded says how much of a recording happened again. It is nil without a recording, and if the run without faults
	// fails.
	Recorded *Recorded

	failed bool
}

// String formats the certificate as one paragraph.
func (c Certificate) String() string {
	var b strings.Builder
	b.WriteString(search.Verdict(
		c.failed, "converges under every single fault", "converges under %d of %d single faults", c.Singles, c.SinglesLeft,
		c.LeftOut,
	))
	fmt.Fprintf(
		&b, ": %s%s with %d faults, %d of them equivalent to others, %d run", c.programs(), phrase.Plural(c.Points, "point"),
		c.Enumerated, c.Pruned, c.Singles,
	)
	b.WriteString(search.SinglesLeft(c.SinglesLeft, c.failed))
	fmt.Fprintf(&b, "; %d second faults%s", c.Recoveries, search.Left(c.RecoveriesLeft))
	fmt.Fprintf(&b, "; %d of %d pairs; %d random schedules; seed %d", c.Pairs, c.PairsInAll, c.Random, c.Seed)
	if c.Idle > 0 {
		fmt.Fprintf(&b, "; %s without an effect", phrase.Plural(c.Idle, "write"))
	}
	if c.Recorded != nil {
		b.WriteString("\n" + c.Recorded.String())
	}
	return b.String()
}

// programs names the number of programs if there are several.
func (c Certificate) programs() string {
	if c.Programs < 2 {
		return ""
	}
	return phrase.Plural(c.Programs, "program") + ", "
}

// String formats the failure with its timeline.
func (f *Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  faults=%d\n", f.Violation, len(f.Faults))
	for _, line := range f.Violation.Details[:min(len(f.Violation.Details), 8)] {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	for _, fault := range f.Faults {
		fmt.Fprintf(&b, "fault: %s\n", fault)
	}
	b.WriteString(f.Timeline())
	if f.Hint != "" {
		fmt.Fprintf(&b, "hint: %s\n", f.Hint)
	}
	return b.String()
}

// Timeline formats the most important lines of the timeline.
func (f *Failure) Timeline() string { return f.explained().Timeline() }

// FullTimeline formats the whole timeline, as -converge.replay prints it.
func (f *Failure) FullTimeline() string { return f.log.Full() }

// HTML returns the failure as a page: the violation, the faults, how to replay it, what was tried before, and a drawing
// of the run. The page is a single file without references, which can be kept, printed and sent.
func (f *Failure) HTML() ([]byte, error) { return f.explained().Html() }

// explained returns what the explanation of the failure is based on.
func (f *Failure) explained() *explain.Failure {
	return &explain.Failure{
		Violation: finding.Violation(f.Violation), Schedule: f.schedule, Log: f.log, Proof: f.proof, Walk: f.walk,
		Test: f.test,
		Hint: f.Hint, Command: f.command(), Tried: f.triedText(), LeftOut: f.leftOut,
	}
}

// explainMistake finds the usual reason for a failure and its solution, and the lines of the timeline that show it.
func (f *Failure) explainMistake() { f.Hint, f.proof = f.explained().Mistake() }

// triedText describes what was tried before the failure was found.
func (f *Failure) triedText() string {
	c := f.tried
	if len(f.walk) > 0 && c == nil {
		return "These changes lead to the failure without any fault. They are the fewest and smallest ones."
	}
	if c == nil {
		return "This schedule was saved or given. No other schedule was tried before."
	}
	if c.Schedules == 0 {
		return "The failure happens without any fault, so that no fault was tried."
	}
	var b strings.Builder
	fmt.Fprintf(
		&b, "%s in %s, with seed %d. ", phrase.Plural(c.Schedules, "run"), c.Elapsed.Round(time.Millisecond), c.Seed,
	)
	fmt.Fprintf(&b,
		"The run without faults has %s and %s for faults: %d faults, %d of them equivalent to "+
			"others, and %d tried one at a time.",
		phrase.Plural(c.Reconciles, "reconcile"), phrase.Plural(c.Points, "point"), c.Enumerated, c.Pruned, c.Singles)
	if c.Recoveries+c.Pairs+c.Random > 0 {
		fmt.Fprintf(&b, " After that %d second faults, %d pairs, and %d random schedules.", c.Recoveries, c.Pairs, c.Random)
	}
	fmt.Fprintf(&b, " The fewest faults were found with %s.", phrase.Plural(f.Shrinks, "further run"))
	return b.String()
}

// command returns the command that replays the failure.
func (f *Failure) command() string {
	return fmt.Sprintf(
		"go test -run '^%s$' -converge.replay='%s'", strings.ReplaceAll(regexp.QuoteMeta(f.test), "/", "$/^"), f.Replay,
	)
}
