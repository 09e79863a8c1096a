// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Filter drops events for the reconciler of New, as a predicate of For, Owns or Watches does.
type Filter struct {
	// Object has the kind of the events. The default is all kinds in For, Owns and Watches.
	Object client.Object
	// Predicate returns false for an event that leads to no request. All runs share it, so that it must have no state.
	// Required.
	Predicate predicate.Predicate
}
