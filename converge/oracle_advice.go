// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
)

// adviceOracle reports requests that are dangerous but do no harm in this run.
type adviceOracle struct{ evidence }

// writing checks a request before it is sent: without a precondition, it may write another object, or another version,
// than the one in the cache.
func (o *adviceOracle) writing(c *call, cache *informer) {
	if c.obj == nil || c.conditional || c.obj.GetName() == "" || c.Act != "delete" && c.Act != "update" {
		return
	}
	key := client.ObjectKeyFromObject(c.obj)
	stored := o.world.server.Get(c.gvk, key)
	if cache == nil || stored == nil {
		return
	}
	seen := cache.get(key)
	if seen == nil {
		return
	}
	name := c.gvk.Kind + " " + phrase.Name(key)
	switch {
	case c.Act == "delete" && seen.GetUID() != stored.GetUID():
		o.advise(CauseUnconditionalDelete, fmt.Sprintf(
			"the delete of %s deletes another object than that of the cache: use a precondition with its UID", name,
		))
	case c.Act == "update" && c.obj.GetResourceVersion() == "" && seen.GetResourceVersion() != stored.GetResourceVersion():
		o.advise(CauseUnconditionalUpdate, fmt.Sprintf(
			"the update of %s has no resource version, and overwrites a change that is not in the cache", name,
		))
	}
}

// advise records a dangerous request, which is a violation if the scenario is strict.
func (o *adviceOracle) advise(cause Cause, text string) {
	if !slices.Contains(o.advices, text) {
		o.advices = append(o.advices, text)
	}
	if o.plan.Strict {
		o.violate(Violation{Oracle: OracleAdvice, Cause: cause, Message: text})
	}
}
