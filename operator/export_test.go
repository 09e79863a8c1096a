// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Events returns the predicate that records the events of a cache.
func (r *WithEdge[T]) Events(resourceType client.Object) predicate.Predicate {
	r.init()
	return r.ledgerPredicate(resourceType)
}

// Records returns the number of records.
func (r *WithEdge[T]) Records() int { return r.ledger.len() }

// BelowController configures it as below a controller whose handlers receive only copies.
func (r *WithEdge[T]) BelowController() { r.under(place{handlesAbsent: true, patchesStatus: true}) }
