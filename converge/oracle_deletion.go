// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/nilcheck"
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

// settled checks what exists when the controller is idle.
func (o *deletionOracle) settled(s *snapshot) {
	primaries := o.world.server.List(o.plan.primary)
	last := o.trace.step == len(o.plan.Steps)-1
	if len(primaries) > 0 || !last || o.plan.Desired != nil {
		// Before the last step, a deletion may wait for the users.
		for _, obj := range primaries {
			name := o.primaryName(obj)
			if obj.GetDeletionTimestamp() != nil && last && !o.excepts(OracleDeletion, name) {
				o.violate(Violation{
					Oracle: OracleDeletion, Cause: CauseNotDeleted, About: name,
					Message: fmt.Sprintf("%s still exists; finalizers: %s", name, strings.Join(obj.GetFinalizers(), ", ")),
				})
				return
			}
		}
		return
	}
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			if o.world.leftOver(obj) && o.leftOver(s.generated.thing(kind, obj).String()) {
				return
			}
		}
	}
	for _, key := range sortedKeys(s.cloud) {
		if o.leftOver("cloud " + key) {
			return
		}
	}
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
