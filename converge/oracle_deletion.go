// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/objects/nilcheck"
)

// deletionOracle checks that deleted objects disappear with their dependents, and that a finalizer precedes the first
// effect outside of the cluster.
type deletionOracle struct {
	evidence

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
	if o.trace.step < len(o.plan.Steps)-1 {
		return // a deletion may wait for the users
	}
	if o.stuck(again) || len(o.world.server.List(o.running.primary)) > 0 || o.plan.Desired != nil {
		return
	}
	for i, kind := range s.Kinds {
		for _, obj := range s.Objects[i] {
			if o.world.leftOver(obj) && o.leftOver(s.Generated.Thing(kind, obj).String()) {
				return
			}
		}
	}
	for _, key := range phrase.SortedKeys(s.Cloud) {
		if o.leftOver("cloud " + key) {
			return
		}
	}
	for _, key := range phrase.SortedKeys(s.Outside.Values) {
		if _, given := o.world.given.Values[key]; !given && o.leftOver(state.OutsideName(key)) {
			return
		}
	}
}

// stuck reports objects that wait for each other to be deleted, or a primary object that waits, and whether it has
// found one. Other objects may wait, for example while they are in use.
func (o *deletionOracle) stuck(again func()) bool {
	all := o.history().StuckObjects(o.running.primary)
	at := slices.IndexFunc(all, func(s *judge.Stuck) bool { return s.Primary && !o.excepts(OracleDeletion, s.Name) })
	if len(all) > 1 {
		// Who has added a finalizer shows what an object waits for.
		o.trace.found = judge.Found{}
		again()
		judge.FindDependencies(all, o.trace.found)
		o.trace.found = nil
		if cycle := judge.Deadlock(all); cycle != nil && !slices.ContainsFunc(cycle, func(s *judge.Stuck) bool {
			return o.excepts(OracleDeletion, s.Name)
		}) {
			o.replace(Violation(judge.Deadlocked(cycle)))
			return true
		}
	}
	if at < 0 {
		return o.failed()
	}
	v := Violation{
		Oracle: OracleDeletion, Cause: CauseNotDeleted, About: all[at].Name,
		Message: fmt.Sprintf(
			"%s still exists; finalizers: %s", all[at].Name, strings.Join(all[at].Obj.GetFinalizers(), ", "),
		),
	}
	if len(all) > 1 {
		for _, s := range all {
			v.Details = append(v.Details, s.String())
		}
	}
	o.replace(v)
	return true
}

// leftOver reports an object, unless it is an exception.
func (o *deletionOracle) leftOver(name string) bool {
	if o.excepts(OracleDeletion, name) {
		return false
	}
	o.violate(Violation{
		Oracle: OracleDeletion, Cause: CauseLeftOver, About: name,
		Message: name + " is left over: its owner no longer exists",
	})
	return true
}

// checkProtected reports an object that got its finalizer only after the first external effect.
func (o *deletionOracle) checkProtected() {
	for _, u := range o.unprotected {
		if o.finalized[u.name] && !o.excepts(OracleDeletion, u.name) {
			o.violate(Violation{
				Oracle: OracleDeletion, Cause: CauseUnprotected, About: u.name,
				Message: fmt.Sprintf("%s has no finalizer yet at the first effect outside of the cluster: %s", u.name, u.effect),
			})
			return
		}
	}
}
