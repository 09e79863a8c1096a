// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
)

// adviceOracle reports requests that are dangerous but do no harm in this run.
type adviceOracle struct{ Evidence }

// Writing checks a request before it is sent: without a precondition, it may write another object, or another version,
// than the one that was seen in the cache.
func (o *adviceOracle) Writing(c *world.Call, seen client.Object) {
	if seen == nil || c.Conditional || c.Obj.GetName() == "" || c.Act != "delete" && c.Act != "update" {
		return
	}
	key := client.ObjectKeyFromObject(c.Obj)
	stored := o.World.Server.Get(c.GVK, key)
	if stored == nil {
		return
	}
	name := c.GVK.Kind + " " + phrase.Name(key)
	switch {
	case c.Act == "delete" && seen.GetUID() != stored.GetUID():
		o.advise(finding.CauseUnconditionalDelete, fmt.Sprintf(
			"the delete of %s deletes another object than that of the cache: use a precondition with its UID", name,
		))
	case c.Act == "update" && c.Obj.GetResourceVersion() == "" && seen.GetResourceVersion() != stored.GetResourceVersion():
		o.advise(finding.CauseUnconditionalUpdate, fmt.Sprintf(
			"the update of %s has no resource version, and overwrites a change that is not in the cache", name,
		))
	}
}

// advise records a dangerous request, which is a violation if the scenario is strict.
func (o *adviceOracle) advise(cause finding.Cause, text string) {
	if !slices.Contains(o.Advices, text) {
		o.Advices = append(o.Advices, text)
	}
	if o.Scenario.Strict {
		o.Violate(finding.Violation{Oracle: finding.OracleAdvice, Cause: cause, Message: text})
	}
}
