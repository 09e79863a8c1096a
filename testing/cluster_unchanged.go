// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noteUnchanged notes an update in which the server has found nothing to change, such as one that only leaves out
// defaults.
func (a *clusterAPI) noteUnchanged(rec *record, sent, changed *unstructured.Unstructured) {
	a.lock.Lock()
	unchanged := changed.GetResourceVersion() == rec.current().real
	if unchanged {
		a.unchanged = append(a.unchanged, sent.DeepCopy())
	}
	a.lock.Unlock()
	if unchanged {
		a.note("%s: was updated although the API has found nothing to change, which need not be expected", rec.id)
	}
}

// changedNothing implements [api.changedNothing].
func (a *clusterAPI) changedNothing(update client.Object) bool {
	u, err := a.toUnstructured(update)
	if err != nil {
		return false
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	return slices.ContainsFunc(a.unchanged, func(sent *unstructured.Unstructured) bool {
		return equality.Semantic.DeepEqual(sent.Object, u.Object)
	})
}

// withoutIdle returns the updates without those that are not expected and that a server has found nothing to change in.
// In memory every update changes the resource version, and defaults are not there to be left out, so cases know nothing
// of them.
func (c *ExpectConfig) withoutIdle(updates []objectAction) []objectAction {
	api := c.open().api
	if api == nil || api.changedNothing == nil {
		return updates
	}
	kept := slices.Clone(updates)
	for i := 0; i < len(kept) && len(kept) > len(c.ExpectUpdates); {
		if update := kept[i].GetObject().(client.Object); api.changedNothing(update) {
			kept = slices.Delete(kept, i, i+1)
			continue
		}
		i++
	}
	return kept
}
