// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/objects/nilcheck"
)

// deletionOracle checks that deleted objects disappear with their dependents, and that a finalizer precedes the first
// effect outside of the cluster.
type deletionOracle struct {
	Evidence

	// unprotected are the primary objects that had no finalizer at an external effect.
	unprotected []unprotected
	// finalized are the names of primary objects that the process has given a finalizer.
	finalized map[string]bool
}

// unprotected is a primary object that had no finalizer at an external effect.
type unprotected struct{ name, effect string }

// changed records finalizers that the process adds to a primary object.
func (o *deletionOracle) changed(e memapi.Event) {
	if slices.ContainsFunc(e.Object.GetFinalizers(), func(f string) bool {
		return nilcheck.IsNil(e.Old) || !slices.Contains(e.Old.GetFinalizers(), f)
	}) {
		o.finalized[o.primaryName(e.Object)] = true
	}
}

// effect records an external effect of a reconcile of a primary object.
func (o *deletionOracle) effect(primary client.Object, effect string) {
	if len(primary.GetFinalizers()) == 0 {
		o.unprotected = append(o.unprotected, unprotected{o.primaryName(primary), effect})
	}
}

// settled checks what exists when the controller is idle. again reconciles all objects once more.
func (o *deletionOracle) settled(s *state.Snapshot, again func()) {
	if o.Trace.Step < o.Scenario.LastStep {
		return // a deletion may wait for the users
	}
	if o.stuck(again) || len(o.World.Server.List(o.Running.Primary)) > 0 || o.Running.Desired != nil {
		return
	}
	for i, kind := range s.Kinds {
		for _, obj := range s.Objects[i] {
			if !o.World.LeftOver(obj) {
				continue
			}
			if o.leftOver(s.Generated.Thing(kind, obj).String(), missingControllers(o.history().stuckObject(kind, obj))) {
				return
			}
		}
	}
	for _, key := range phrase.SortedKeys(s.Cloud) {
		if o.leftOver("cloud "+key, "") {
			return
		}
	}
	for _, key := range phrase.SortedKeys(s.Outside.Values) {
		if _, given := o.World.Given.Values[key]; !given && o.leftOver(state.OutsideName(key), "") {
			return
		}
	}
}

// stuck reports objects that wait for each other to be deleted, or a primary object that waits, and whether it has
// found one. Other objects may wait, for example while they are in use.
func (o *deletionOracle) stuck(again func()) bool {
	all := o.history().StuckObjects(o.Running.Primary)
	at := slices.IndexFunc(all, func(s *Stuck) bool { return s.Primary && !o.excepts(finding.OracleDeletion, s.Name) })
	if len(all) > 1 {
		// Who has added a finalizer shows what an object waits for.
		o.Trace.Found = world.Found{}
		again()
		FindDependencies(all, o.Trace.Found)
		o.Trace.Found = nil
		if cycle := Deadlock(all); cycle != nil && !slices.ContainsFunc(cycle, func(s *Stuck) bool {
			return o.excepts(finding.OracleDeletion, s.Name)
		}) {
			o.Replace(Deadlocked(cycle))
			return true
		}
	}
	if at < 0 {
		return o.Failed()
	}
	v := finding.Violation{
		Oracle: finding.OracleDeletion, Cause: finding.CauseNotDeleted, About: all[at].Name,
		Message: fmt.Sprintf(
			"%s still exists; finalizers: %s", all[at].Name, strings.Join(all[at].Obj.GetFinalizers(), ", "),
		) + missingControllers(all...),
	}
	if len(all) > 1 {
		for _, s := range all {
			v.Details = append(v.Details, s.String())
		}
	}
	o.Replace(v)
	return true
}

// leftOver reports an object, with the reason why its deletion does not end, unless it is an exception.
func (o *deletionOracle) leftOver(name, reason string) bool {
	if o.excepts(finding.OracleDeletion, name) {
		return false
	}
	o.Violate(finding.Violation{
		Oracle: finding.OracleDeletion, Cause: finding.CauseLeftOver, About: name,
		Message: name + " is left over: its owner no longer exists" + reason,
	})
	return true
}

// checkProtected reports an object that got its finalizer only after the first external effect.
func (o *deletionOracle) checkProtected() {
	for _, u := range o.unprotected {
		if o.finalized[u.name] && !o.excepts(finding.OracleDeletion, u.name) {
			o.Violate(finding.Violation{
				Oracle: finding.OracleDeletion, Cause: finding.CauseUnprotected, About: u.name,
				Message: fmt.Sprintf("%s has no finalizer yet at the first effect outside of the cluster: %s", u.name, u.effect),
			})
			return
		}
	}
}
