// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"trueup.dev/internal/ctrlfields"
)

// unfilled returns the kinds whose informers a cache of controller-runtime has started and not filled, sorted.
func unfilled(informers cache.Cache) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for _, informer := range ctrlfields.StartedInformers(informers) {
		if !informer.HasSynced() {
			found = append(found, informer.Kind)
		}
	}
	slices.SortFunc(found, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(found)
}
