// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// endStateOracle compares the state at a Settle to Scenario.Desired or to the run without faults, and checks that a
// write does not revert a change of another client.
type endStateOracle struct {
	evidence

	// authors are the versions that have created objects, in an upgrade.
	authors map[types.UID]string
}

func newEndStateOracle(e evidence) endStateOracle {
	o := endStateOracle{evidence: e}
	if e.plan.upgrade != nil {
		o.authors = map[types.UID]string{}
	}
	return o
}

// changed records which version of an upgrade has created an object, and reports the deletion of one that a disturbance
// of users has created.
func (o *endStateOracle) changed(e memapi.Event) {
	if e.Type == watch.Deleted && o.world.foreign[e.Object.GetUID()] && o.plan.isProgram(e.Client) &&
		!o.losesOwner(e.Object) {
		name := e.Kind.Kind + " " + phrase.Name(o.world.generated.Key(e.Key))
		o.violate(Violation{
			Oracle: OracleEndState, Cause: CauseMissing, About: name,
			Message: name + " is missing: users have created it, and the controller deletes it",
		})
	}
	if o.authors == nil || e.Type != watch.Added || !o.plan.isProgram(e.Client) {
		return
	}
	o.authors[e.Object.GetUID()] = o.running.version
}

// losesOwner reports whether the garbage collector would delete an object, too: its controller is deleted.
func (o *endStateOracle) losesOwner(obj client.Object) bool {
	if metav1.GetControllerOf(obj) == nil {
		return false
	}
	return !slices.ContainsFunc(o.world.existingOwners(obj), func(owner client.Object) bool {
		return owner.GetDeletionTimestamp() == nil
	})
}

func (o *endStateOracle) check(s *state.Snapshot, skipped []int) {
	if o.running.Desired != nil {
		if err := o.desired(); err != nil {
			o.violate(Violation{Oracle: OracleEndState, Cause: CauseNotDesired, Message: err.Error()})
		}
		return
	}
	if o.plan.recordsReference() {
		return
	}
	reference := o.running.reference
	var found []state.Difference
	for i, b := range reference.baselines(skipped) {
		// A change of the users that was replaced before it was handled need not have an effect.
		if others := o.plan.reader().Differences(b.at(o.trace.step), s, reference.masked); i == 0 {
			found = others
		} else {
			found = inBoth(found, others)
		}
	}
	found = slices.DeleteFunc(found, func(d state.Difference) bool { return o.excepts(o.oracleOf(d), d.Name) })
	if len(found) == 0 {
		return
	}
	slices.SortStableFunc(found, func(a, b state.Difference) int { return cmp.Compare(a.Rank(), b.Rank()) })
	if stable := slices.DeleteFunc(slices.Clone(found), func(d state.Difference) bool {
		return o.unstable(d) != ""
	}); len(stable) > 0 {
		found = stable
	} else {
		o.violate(scenarioFailure(
			o.unstable(found[0]) + ": if it depends on time or chance which objects exist, Scenario.Desired is required",
		))
		return
	}
	first := found[0]
	v := Violation{
		Oracle: o.oracleOf(first), Cause: first.Cause, About: first.Name, Message: first.Lines[0], Details: first.Lines[1:],
	}
	for _, d := range found[1:] {
		v.Details = append(v.Details, d.Lines...)
	}
	if v.Oracle == OracleDuplicates {
		v.Cause = CauseDuplicate
	}
	o.describe(&v, first)
	o.violate(v)
}

// describe adds to a violation of an upgrade which version has created the object, and what it is compared with.
func (o *endStateOracle) describe(v *Violation, d state.Difference) {
	if o.plan.upgrade == nil {
		return
	}
	if author := o.authors[d.Uid]; author != "" && d.Cause == CauseUnexpected {
		v.Message += ": the " + author + " has created it"
		if author != o.running.version {
			v.Message += ", and the " + o.running.version + " does not delete it"
		}
	}
	expected := "expected is the state of the " + o.running.version + " alone, without faults"
	v.Details = append([]string{expected}, v.Details...)
}

// oracleOf returns the oracle that reports a difference.
func (o *endStateOracle) oracleOf(d state.Difference) Oracle {
	switch {
	case d.Cause == CauseUnexpected && o.existedBefore(d.Name):
		return OracleDeletion
	case d.Extra:
		return OracleDuplicates
	}
	return OracleEndState
}

// unstable returns why an object cannot be compared that is missing or should not exist, or "": the runs without faults
// differ in which objects of its kind exist.
func (o *endStateOracle) unstable(d state.Difference) string {
	if d.Cause == CauseDifferent {
		return ""
	}
	kind, _, _ := strings.Cut(d.Name, " ")
	return o.running.reference.unstable[kind]
}

// desired returns the error of Scenario.Desired, or why it could not read the state.
func (o *endStateOracle) desired() error {
	var failures []error
	err := o.running.Desired(State{world: o.world, failures: &failures})
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	return err
}

// inBoth returns the differences of objects that also differ from another state.
func inBoth(found, others []state.Difference) []state.Difference {
	return slices.DeleteFunc(found, func(d state.Difference) bool {
		return !slices.ContainsFunc(others, func(o state.Difference) bool { return o.Name == d.Name })
	})
}

// existedBefore reports whether an object existed at some Settle of the run without faults.
func (o *endStateOracle) existedBefore(name string) bool {
	return slices.ContainsFunc(o.running.reference.settled, func(s *state.Snapshot) bool {
		return o.plan.reader().Flatten(s)[name] != nil
	})
}

// written checks after a write of the process that it has not reverted what another client has written just before.
// Only an object that was read counts, which has a UID. An object that is built from scratch each time may be meant to
// replace all content.
func (o *endStateOracle) written(c *call, uid types.UID) {
	stored := o.world.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if uid == "" || stored == nil || stored.GetUID() != uid || stored.GetDeletionTimestamp() != nil {
		return
	}
	if _, ok := stored.GetAnnotations()[state.Touched]; !ok {
		name := c.gvk.Kind + " " + phrase.Name(o.world.generated.Key(c.Key))
		o.violate(Violation{
			Oracle: OracleEndState, Cause: CauseOverwritten, About: name,
			Message: c.Act + " " + name + " overwrites a change of another client",
		})
	}
}
