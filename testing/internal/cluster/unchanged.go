// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noteUnchanged records an update in which the server found nothing to change, such as one that only leaves out
// defaults.
func (a *API) noteUnchanged(rec *record, sent, changed *unstructured.Unstructured) {
	a.lock.Lock()
	unchanged := changed.GetResourceVersion() == rec.current().real
	if unchanged {
		a.unchanged = append(a.unchanged, sent.DeepCopy())
	}
	a.lock.Unlock()
	if unchanged {
		a.note("%s: the API found nothing to change in an update, which need not be expected", rec.id)
	}
}

// ChangedNothing reports whether the server found nothing to change in an update of the case.
func (a *API) ChangedNothing(update client.Object) bool {
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
