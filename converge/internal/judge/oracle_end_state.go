// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// endStateOracle compares the state at a Settle to Scenario.Desired or to the run without faults, and checks that a
// write does not revert a change of another client.
type endStateOracle struct {
	Evidence

	// authors are the versions that have created objects, in an upgrade.
	authors map[types.UID]string
}

func newEndStateOracle(e Evidence) endStateOracle {
	o := endStateOracle{Evidence: e}
	if e.Scenario.upgrades() {
		o.authors = map[types.UID]string{}
	}
	return o
}

// changed records which version of an upgrade has created an object, and reports the deletion of one that a disturbance
// of users has created.
func (o *endStateOracle) changed(e memapi.Event) {
	if e.Type == watch.Deleted && o.World.Foreign[e.Object.GetUID()] && o.Scenario.IsProgram(e.Client) &&
		!o.losesOwner(e.Object) {
		name := e.Kind.Kind + " " + phrase.Name(o.World.Generated.Key(e.Key))
		o.Violate(finding.Violation{
			Oracle: finding.OracleEndState, Cause: finding.CauseMissing, About: name,
			Message: name + " is missing: users have created it, and the controller deletes it",
		})
	}
	if o.authors == nil || e.Type != watch.Added || !o.Scenario.IsProgram(e.Client) {
		return
	}
	o.authors[e.Object.GetUID()] = o.Running.Name
}

// losesOwner reports whether the garbage collector would delete an object, too: its controller is deleted.
func (o *endStateOracle) losesOwner(obj client.Object) bool {
	if metav1.GetControllerOf(obj) == nil {
		return false
	}
	return !slices.ContainsFunc(o.World.ExistingOwners(obj), func(owner client.Object) bool {
		return owner.GetDeletionTimestamp() == nil
	})
}

func (o *endStateOracle) check(s *state.Snapshot, skipped []int) {
	if o.Running.Desired != nil {
		if err := o.Running.Desired(o.World); err != nil {
			o.Violate(finding.Violation{Oracle: finding.OracleEndState, Cause: finding.CauseNotDesired, Message: err.Error()})
		}
		return
	}
	if o.Scenario.Records {
		return
	}
	reference := o.Running.Reference
	var found []state.Difference
	baselines := reference.Baselines(skipped)
	if b := reference.Interfered; b != nil {
		baselines = append(baselines, b) // what another client has deleted cannot always be restored after the next step
	}
	for i, b := range baselines {
		// A change of the users that was replaced before it was handled need not have an effect.
		if others := o.differences(b.At(o.Trace.Step), s); i == 0 {
			found = others
		} else {
			found = InBoth(found, others)
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
		o.Violate(finding.ScenarioFailure(
			o.unstable(found[0]) + ": if it depends on time or chance which objects exist, Scenario.Desired is required",
		))
		return
	}
	first := found[0]
	v := finding.Violation{
		Oracle: o.oracleOf(first), Cause: first.Cause, About: first.Name, Message: first.Lines[0], Details: first.Lines[1:],
	}
	for _, d := range found[1:] {
		v.Details = append(v.Details, d.Lines...)
	}
	if v.Oracle == finding.OracleDuplicates {
		v.Cause = finding.CauseDuplicate
	}
	o.describe(&v, first)
	o.Violate(v)
}

// differences compares a state with the state of a run without faults.
func (o *endStateOracle) differences(want, got *state.Snapshot) []state.Difference {
	masked := o.Running.Reference.Masked
	found := o.Scenario.Reader.Differences(want, got, masked)
	if len(found) == 0 || !o.Scenario.upgrades() || o.Running != o.Scenario.Sequence[0] {
		return found
	}
	return o.Scenario.Reader.Differences(want, got, o.withCopies(masked, want, got))
}

// withCopies adds fields to masked ones that may remain after a rollback: the new version writes a value under a new
// key, and the same value under the old key, too, for the old version, which does not know the new key.
func (o *endStateOracle) withCopies(masked map[string]bool, want, got *state.Snapshot) map[string]bool {
	masked = maps.Clone(masked)
	wanted, there := o.Scenario.Reader.Flatten(want), o.Scenario.Reader.Flatten(got)
	for _, version := range o.Scenario.Versions {
		if version == o.Running {
			continue
		}
		newer := o.Scenario.Reader.Flatten(version.Reference.At(o.Trace.Step))
		for name, flat := range there {
			if wanted[name] == nil || newer[name] == nil {
				continue
			}
			old, current := wanted[name].Read(), newer[name].Read()
			for path, f := range flat.Read() {
				if _, known := old[path]; !known && f.Mask == path && isCopy(current[path], old, current) {
					masked[state.MaskKey(name, f, f)] = true
				}
			}
		}
	}
	return masked
}

// isCopy reports whether a new version also writes the value of a field to another field, which the old version has
// with the same value. Numbers and flags are often equal by chance.
func isCopy(f state.Field, old, current state.Fields) bool {
	if len(f.Value) <= len(`""`) || f.Value[0] != '"' {
		return false
	}
	for path, other := range old {
		if other.Value == f.Value && current[path].Value == f.Value {
			return true
		}
	}
	return false
}

// describe adds to a violation of an upgrade which version has created the object, and what it is compared with.
func (o *endStateOracle) describe(v *finding.Violation, d state.Difference) {
	if !o.Scenario.upgrades() {
		return
	}
	if author := o.authors[d.Uid]; author != "" && d.Cause == finding.CauseUnexpected {
		v.Message += ": the " + author + " has created it"
		if author != o.Running.Name {
			v.Message += ", and the " + o.Running.Name + " does not delete it"
		}
	}
	expected := "expected is the state of the " + o.Running.Name + " alone, without faults"
	v.Details = append([]string{expected}, v.Details...)
}

// oracleOf returns the oracle that reports a difference.
func (o *endStateOracle) oracleOf(d state.Difference) finding.Oracle {
	switch {
	case d.Cause == finding.CauseUnexpected && o.existedBefore(d.Name):
		return finding.OracleDeletion
	case d.Extra:
		return finding.OracleDuplicates
	}
	return finding.OracleEndState
}

// unstable returns why an object cannot be compared that is missing or should not exist, or "": the runs without faults
// differ in which objects of its kind exist.
func (o *endStateOracle) unstable(d state.Difference) string {
	if d.Cause == finding.CauseDifferent {
		return ""
	}
	kind, _, _ := strings.Cut(d.Name, " ")
	return o.Running.Reference.Unstable[kind]
}

// InBoth returns the differences of objects that also differ from another state.
func InBoth(found, others []state.Difference) []state.Difference {
	return slices.DeleteFunc(found, func(d state.Difference) bool {
		return !slices.ContainsFunc(others, func(o state.Difference) bool { return o.Name == d.Name })
	})
}

// existedBefore reports whether an object existed at some Settle of the run without faults.
func (o *endStateOracle) existedBefore(name string) bool {
	return slices.ContainsFunc(o.Running.Reference.Settled, func(s *state.Snapshot) bool {
		return o.Scenario.Reader.Flatten(s)[name] != nil
	})
}

// Written checks after a write of the process that it has not reverted what another client has written just before.
// Only an object that was read counts, which has a UID. An object that is built from scratch each time may be meant to
// replace all content.
func (o *endStateOracle) Written(c *world.Call, uid types.UID) {
	stored := o.World.Server.Get(c.GVK, client.ObjectKeyFromObject(c.Obj))
	if uid == "" || stored == nil || stored.GetUID() != uid || stored.GetDeletionTimestamp() != nil {
		return
	}
	if _, ok := stored.GetAnnotations()[state.Touched]; !ok {
		name := c.GVK.Kind + " " + phrase.Name(o.World.Generated.Key(c.Key))
		o.Violate(finding.Violation{
			Oracle: finding.OracleEndState, Cause: finding.CauseOverwritten, About: name,
			Message: c.Act + " " + name + " overwrites a change of another client",
		})
	}
}
