// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
)

// Outcome is the result of a run.
type Outcome struct {
	Violations []finding.Violation
	Advices    []string
	Points     []inject.Injectable
	// Injected is how many faults of the schedule were injected.
	Injected  int
	Settled   []*state.Snapshot
	SettledAt []int
	// SettledErrs are the errors of the last reconciles before each Settle.
	SettledErrs []error
	Warnings    world.Warnings
	// Skipped are the Settles that users did not wait for because of a fault.
	Skipped    []int
	Reconciles int
	Ledger     Ledger
	Readies    []readiness
	NoOps      int
	Requests   int
	// Processes are the last ones of each program.
	Processes []LastProcess
	// Starts are the starts that the injector has counted.
	Starts []int
}

// LastProcess is the last process of a program.
type LastProcess struct {
	// Number counts the processes of the program.
	Number int
	// Read are the kinds that it has read from caches.
	Read []schema.GroupVersionKind
}

// First returns the first violation, if there is one.
func (o *Outcome) First() (finding.Violation, bool) {
	if len(o.Violations) == 0 {
		return finding.Violation{}, false
	}
	return o.Violations[0], true
}

// At returns the state at the end of a step.
func (o *Outcome) At(step int) *state.Snapshot {
	for i, at := range o.SettledAt {
		if at == step {
			return o.Settled[i]
		}
	}
	return &state.Snapshot{}
}

// ErrAt returns the error of the last reconcile before the end of a step, or nil.
func (o *Outcome) ErrAt(step int) error {
	if at := slices.Index(o.SettledAt, step); at >= 0 {
		return o.SettledErrs[at]
	}
	return nil
}

// Reference has the runs without faults, which other runs are compared to.
type Reference struct {
	Baseline

	// Skipping are the runs in which users do not wait for some Settles, by the indexes of these. It is nil for Settles
	// that users must wait for.
	Skipping map[string]*Baseline
	// MustSettle describes the Settles that users must wait for, with the failure if they do not.
	MustSettle []string
	// Masked are the fields that differ between runs without faults.
	Masked map[string]bool
	// Unstable describes objects that only some of several equal runs without faults have, by kind.
	Unstable map[string]string
	// Interfered is the run in which another client deletes the same objects as in the present run, without other faults,
	// and users do not wait after that. It is nil unless a run may differ from the others because of that.
	Interfered *Baseline
}

// NewReference returns a reference that only has the usual run without faults.
func NewReference(o Outcome) *Reference {
	return &Reference{
		Baseline: Baseline{Outcome: o}, Skipping: map[string]*Baseline{}, Masked: map[string]bool{},
		Unstable: map[string]string{},
	}
}

// Baseline is a run without faults.
type Baseline struct {
	Outcome

	// Steps are the indexes of the Settles that users do not wait for.
	Steps []int
	// Repeated is set once the run was repeated to find out what differs each time.
	Repeated bool
}

// SkipKey returns the key of one or more steps. It is called for each request, and does not allocate for one step.
func SkipKey(steps []int) string {
	key := strconv.Itoa(steps[0])
	for _, step := range steps[1:] {
		key += "," + strconv.Itoa(step)
	}
	return key
}

// Without returns the run in which users do not wait for some Settles, or nil if they must.
func (r *Reference) Without(steps []int) *Baseline { return r.Skipping[SkipKey(steps)] }

// Baselines returns the runs that a run is compared with in which users have skipped Settles because of faults: the
// usual one, those that skip one of these, and the one that skips all. The reconciler may have handled some changes of
// the users, and not others.
func (r *Reference) Baselines(skipped []int) []*Baseline {
	found := []*Baseline{&r.Baseline}
	for _, step := range skipped {
		if b := r.Without([]int{step}); b != nil {
			found = append(found, b)
		}
	}
	if len(skipped) > 1 {
		if b := r.Without(skipped); b != nil {
			found = append(found, b)
		}
	}
	return found
}

// count sums up a number of the runs that a run is compared with in which users have skipped Settles: both may apply.
func (r *Reference) count(counts func(*Ledger) map[state.Thing]int, t state.Thing, skipped []int) int {
	n := 0
	for _, b := range r.Baselines(skipped) {
		n += counts(&b.Ledger)[t]
	}
	return n
}
