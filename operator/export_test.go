// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Events is how the events of a cache are noted.
func (r *WithEdge[T]) Events(resourceType client.Object) predicate.Predicate {
	r.init()
	return r.notes(resourceType)
}

// Records is how many resources are remembered.
func (r *WithEdge[T]) Records() int { return r.ledger.len() }

// BelowController makes it work as below a controller whose handlers see only copies.
func (r *WithEdge[T]) BelowController() { r.under(place{asksAbsent: true, patchesStatus: true}) }
