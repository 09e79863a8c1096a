// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/engine/calledby"
)

const (
	// OraclePath fails when a state depends on earlier specs: it is not the state of a new object with the same spec. Only
	// [States] checks it.
	OraclePath Oracle = finding.OraclePath
	// OracleEffect fails when no value of a property changes the state. Only [States] checks it.
	OracleEffect Oracle = finding.OracleEffect
)

// CauseIgnored is for properties that have no effect. It is the cause of [OracleEffect].
const CauseIgnored Cause = finding.CauseIgnored

// Space describes the specs of an object to [States]. The zero Space derives them from the schema of its kind, or from
// its Go type if [Scenario.CRDs] has no definition.
//
// Properties are identified by their paths, for example "spec.ports[0].name" or "spec.nodeSelector[example.com/zone]".
// A path stands for all properties below it, too.
type Space struct {
	// Generate returns an object with another spec. Its name does not matter. The default is to change properties only.
	Generate func(random *rand.Rand) client.Object
	// Values are further values of properties, as JSON has them, for those whose meaning the schema does not show.
	Values map[string][]any
	// Skip are properties that users do not change. The value is the reason, which is required and printed. Labels and
	// annotations are "metadata.labels" and "metadata.annotations".
	Skip map[string]string
	// Ignored are properties that need not have an effect on the state. The value is the reason, which is required and
	// printed.
	Ignored map[string]string
	// HistoryDependent are fields that may depend on earlier specs.
	HistoryDependent []HistoryDependent
}

// HistoryDependent is a field that may depend on earlier specs, for example the size of a volume, which cannot shrink.
type HistoryDependent struct {
	// Object has the kind of the field. The default is all kinds.
	Object client.Object
	// Field is a path, as in [Mask]. The default is the whole object, and whether it exists.
	Field string
	// Reason is required and printed.
	Reason string
}

// StatesOptions limit the search of [States].
type StatesOptions struct {
	// Requests limits the search: all its runs make about this number of requests. Each property is always changed on its
	// own, whatever that takes. Pairs of properties get half of the requests, and single faults the next third. While one
	// property changes, they get a tenth, at least 50 faults. 0 means no limit.
	Requests int
	// Budget limits the time of the search. By default, there is no limit.
	Budget time.Duration
	// Walks is the number of random walks that are tried for each property.
	Walks int
	// Seed is the seed of random choices.
	Seed uint64
}

// DefaultStatesOptions returns the options of States, as flags change them: runs that make 15,000 requests, which takes
// a few seconds, and ten random walks for each property. With the race detector, which makes runs ten times slower, it
// is a tenth of that. -converge.budget replaces these limits by a time.
func DefaultStatesOptions() StatesOptions {
	o := StatesOptions{Requests: 15_000, Budget: *budgetFlag, Walks: 10, Seed: *seedFlag}
	if raceDetector {
		o.Requests, o.Walks = o.Requests/10, 1
	}
	if o.Budget > 0 {
		o.Requests, o.Walks = 0, 1<<40
	}
	return o
}

// States proves that the state depends on the spec alone, and not on the way to it. It takes the first object of the
// kind For from the steps or from Given, without the steps after it, and changes its spec: each property on its own and
// back, pairs of properties, random sequences, deletion and recreation, also with single faults. It adds a label and an
// annotation to the object, and removes them. It fails the test if
//   - a state is not the state of a new object with the same spec,
//   - no value of a property changes the state, or
//   - an oracle fails that [Run] checks too, except that Scenario.Desired is not called.
//
// While a reconcile fails, or the status or a Warning event says that the spec is refused, objects may also remain as
// they were. The way back must work. A refused change that was made in part is advice in the certificate. So are labels
// and annotations of the object that have an effect, and numbers for which 0 has the same effect as no value.
//
// The failure has the fewest and smallest changes that lead to it. It is saved below testdata/converge, and the next
// test run tries it first. With the flag -converge.html it is also written as a page.
func States(t *testing.T, s Scenario) {
	t.Helper()
	newSearch := func() *statesSearch {
		x, err := newStates(t, s, DefaultStatesOptions())
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if *replayFlag != "" {
		newSearch().replay(*replayFlag)
		return
	}
	for _, saved := range savedRuns(t, savedWalk) {
		f, err := newSearch().rerun(saved.replay)
		if err != nil {
			t.Logf("%s: %v", saved.file, err)
		} else if f.failed() {
			f.fail(t)
			return
		}
	}
	report := newSearch().search()
	if report.Failure != nil {
		report.Failure.fail(t)
		return
	}
	t.Log(report.Certificate)
}

// CheckStates is [States] that returns the report instead of failing the test.
func CheckStates(t *testing.T, s Scenario, o StatesOptions) (*StatesReport, error) {
	x, err := newStates(t, s, o)
	if err != nil {
		return nil, err
	}
	return x.search(), nil
}

func newStates(t *testing.T, s Scenario, o StatesOptions) (*statesSearch, error) {
	s.Desired = nil // it describes other steps
	p, err := newPlan(s)
	if err != nil {
		return nil, err
	}
	p.seed, p.random = o.Seed, state.RandomNames{}
	space, err := newSpecSpace(p)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	calledby.Controller() // outside of any bubble
	x := &statesSearch{
		t: t, specSpace: space, options: o, begin: time.Now(), news: map[string]*newObject{},
		transitions: map[[2]string]bool{}, halves: map[string]bool{},
	}
	x.Walks = search.Walks{
		Seed: o.Seed, RandomWalks: o.Walks, Properties: space.properties, Run: x.checkWrites, Stored: x.stores,
		Accepted: x.accepts, Affects: x.affects, OutOf: x.outOf, Affecting: map[string]bool{},
		OnEffect: x.adviseZero,
	}
	for _, step := range p.Disturbances {
		x.Disturbances = append(x.Disturbances, step.plain.Name)
	}
	if p.Space.Generate != nil {
		x.Generate = func(random *rand.Rand) walk.Spec { return x.specOfObject(p.Space.Generate(random)) }
	}
	return x, nil
}

// StatesReport is the result of a search of [States].
type StatesReport struct {
	// Failure is nil if no failure was found.
	Failure     *StatesFailure
	Certificate StatesCertificate
}

// StatesFailure is a violation, and the fewest changes that cause it.
type StatesFailure struct {
	Violation Violation
	// Walk describes the changes of the object by users, for people. Faults are injected faults.
	Walk, Faults []string
	// Replay is the walk for the flag -converge.replay. It is empty for properties that have no effect.
	Replay string
	// Hint is the usual reason for such a failure, and its solution.
	Hint string

	failure *Failure
}

// String formats the failure with its timeline.
func (f *StatesFailure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  changes=%d faults=%d\n", f.Violation, max(len(f.Walk)-1, 0), len(f.Faults))
	for _, line := range f.Violation.Details[:min(len(f.Violation.Details), 8)] {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	for i, line := range f.Walk {
		fmt.Fprintf(&b, "%d: %s\n", i+1, line)
	}
	for _, fault := range f.Faults {
		fmt.Fprintf(&b, "fault: %s\n", fault)
	}
	if f.failure != nil {
		b.WriteString(f.failure.Timeline())
	}
	if f.Hint != "" {
		fmt.Fprintf(&b, "hint: %s\n", f.Hint)
	}
	return b.String()
}

func (f *StatesFailure) failed() bool { return f.Violation.Oracle != "" }

// fail fails the test, and saves the failure, unless it is about a property without an effect.
func (f *StatesFailure) fail(t *testing.T) {
	t.Helper()
	if f.failure == nil {
		t.Error(f)
		return
	}
	t.Errorf("%s%s%sreplay: %s", f, saveLine(t, f.failure), page(t, f.failure), f.failure.command())
}

// StatesCertificate counts what was tried.
type StatesCertificate struct {
	Seed uint64
	// Properties is the number of properties, and Changed that of properties with a value that the API server accepts.
	Properties, Changed int
	// Values counts accepted values, and Rejected those that the API server rejects.
	Values, Rejected int
	// Specs counts different specs, and Transitions different changes from one spec to another.
	Specs, Transitions int
	// Pairs counts the pairs of properties that were tried, of PairsInAll, and Walks the random walks.
	Pairs, PairsInAll, Walks int
	// Faults counts runs with a fault, during the changes of FaultProperties properties. FaultsLeft counts those that were
	// not tried while these change.
	Faults, FaultsLeft, FaultProperties int
	// Runs is the number of runs without faults.
	Runs int
	// Advice lists what may be intended or not: refused changes that were made in part, labels and annotations of the
	// object that have an effect, and numbers whose 0 is taken for no value.
	Advice []string
	// LeftOut lists what was not checked or not tried, with the reasons.
	LeftOut []string
	Elapsed time.Duration
}

// String formats the certificate as a paragraph, a line for each advice, and a line for each reason why something was
// left out.
func (c StatesCertificate) String() string {
	paragraph := fmt.Sprintf(
		"the state depends on the spec alone, as far as tried: %d of %s with %s (%d more are rejected), %s, "+
			"%s; %d of %d pairs; %d random walks; %d of %d single faults while %s changed; seed %d",
		c.Changed, phrase.Plural(c.Properties, "property"), phrase.Plural(c.Values, "value"), c.Rejected,
		phrase.Plural(c.Specs, "spec"), phrase.Plural(c.Transitions, "transition"), c.Pairs, c.PairsInAll, c.Walks, c.Faults,
		c.Faults+c.FaultsLeft, phrase.Plural(c.FaultProperties, "property"), c.Seed,
	)
	return search.Certificate(paragraph, nil, c.Advice, c.LeftOut)
}
