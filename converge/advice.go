// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// advise looks at a write that does harm some day: it hits another object, or another version, than the one that the
// reconciler has seen.
func (r *run) advise(c *call) {
	if c.obj == nil || c.conditional || c.obj.GetName() == "" || c.act != "delete" && c.act != "update" {
		return
	}
	key := client.ObjectKeyFromObject(c.obj)
	i, stored := r.process.existing(c.gvk), r.server.Get(c.gvk, key)
	if i == nil || stored == nil {
		return
	}
	seen := i.get(key)
	if seen == nil {
		return
	}
	name := c.gvk.Kind + " " + nameOf(key)
	switch {
	case c.act == "delete" && seen.GetUID() != stored.GetUID():
		r.advice(CauseUnconditionalDelete, fmt.Sprintf(
			"the delete of %s deletes another object than that of the cache: use a precondition with its UID", name,
		))
	case c.act == "update" && c.obj.GetResourceVersion() == "" && seen.GetResourceVersion() != stored.GetResourceVersion():
		r.advice(CauseUnconditionalUpdate, fmt.Sprintf(
			"the update of %s has no resource version, and overwrites a change that is not in the cache", name,
		))
	}
}

// advice notes something that is dangerous, and fails if the scenario is strict.
func (r *run) advice(cause Cause, text string) {
	if !slices.Contains(r.advices, text) {
		r.advices = append(r.advices, text)
	}
	if r.plan.Strict {
		r.violate(Violation{Oracle: OracleAdvice, Cause: cause, Message: text})
	}
}
