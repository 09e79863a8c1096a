// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi"
)

// assignmentOracle checks that each primary object is assigned to one program, and that only this one writes it and the
// objects that it controls. It only knows programs that say what is assigned to them.
type assignmentOracle struct{ Evidence }

// changed checks a write. The assignment is that of before the write, as a program may give an object away. Writes that
// were sent earlier, while the object was assigned to the program, are not checked.
func (o *assignmentOracle) changed(e memapi.Event) {
	assigned := o.Scenario.Assigned[e.Client]
	if assigned == nil || o.World.LateWrite {
		return
	}
	primary := o.primaryOf(e)
	if primary == nil || assigned(primary) {
		return
	}
	name, written := o.primaryName(primary), e.Kind.Kind+" "+phrase.Name(e.Key)
	o.Violate(finding.Violation{
		Oracle: finding.OracleAssignment, Cause: finding.CauseNotAssigned, About: name,
		Message: fmt.Sprintf("%s writes %s, although %s is assigned to %s", e.Client, written, name, o.listed(primary, "")),
	})
}

// primaryOf returns the primary object that a write is about, as it was before the write, or nil.
func (o *assignmentOracle) primaryOf(e memapi.Event) client.Object {
	if e.Kind == o.Running.Primary {
		return e.Old
	}
	ref := metav1.GetControllerOfNoCopy(e.Object)
	if ref == nil || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind) != o.Running.Primary {
		return nil
	}
	for _, namespace := range []string{e.Key.Namespace, ""} {
		key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
		if primary := o.World.Server.Get(o.Running.Primary, key); primary != nil && primary.GetUID() == ref.UID {
			return primary
		}
	}
	return nil
}

// Check checks that each primary object is assigned to one of the programs, other than one that is paused, or "".
func (o *assignmentOracle) Check(paused string) {
	if len(o.Scenario.Assigned) == 0 {
		return
	}
	for _, primary := range o.World.Server.List(o.Running.Primary) {
		to := o.assignedTo(primary, paused)
		if len(to) == 1 || primary.GetDeletionTimestamp() != nil {
			continue
		}
		name := o.primaryName(primary)
		message := fmt.Sprintf("%s is assigned to %s", name, o.listed(primary, paused))
		if paused != "" {
			message += " other than " + paused + ", which is paused"
		}
		o.Violate(finding.Violation{
			Oracle: finding.OracleAssignment, Cause: finding.CauseUnassigned, About: name, Message: message,
		})
		return
	}
}

// assignedTo returns the clients of the programs that a primary object is assigned to, without one that is paused.
func (o *assignmentOracle) assignedTo(primary client.Object, paused string) []string {
	var to []string
	for _, program := range slices.Sorted(maps.Keys(o.Scenario.Assigned)) {
		if program != paused && o.Scenario.Assigned[program](primary) {
			to = append(to, program)
		}
	}
	return to
}

// listed names the programs that a primary object is assigned to.
func (o *assignmentOracle) listed(primary client.Object, paused string) string {
	to := o.assignedTo(primary, paused)
	if len(to) == 0 {
		return "no program"
	}
	return strings.Join(to, " and ")
}
