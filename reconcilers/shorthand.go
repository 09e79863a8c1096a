// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shorthand holds the fields that configure an [UpdatingObjectManager] for a reconciler without a custom object
// manager.
type shorthand[T client.Object] struct {
	// field is the name of the object manager field, and verb is the verb for validation messages.
	field, verb string
	// given reports whether the user set an object manager.
	given     bool
	merge     func(current, desired T)
	harmonize func(current, desired T)
	sanitize  func(obj T) any
	finalizer string
}

// manager returns the object manager that the fields configure, or nil if they are not set.
func (s shorthand[T]) manager(objType T, track bool) ObjectManager[T] {
	if s.merge == nil {
		return nil
	}
	return &UpdatingObjectManager[T]{
		Name:                     typeName(objType) + "UpdatingObjectManager",
		Type:                     objType,
		Finalizer:                s.finalizer,
		TrackDesired:             track,
		HarmonizeImmutableFields: s.harmonize,
		MergeBeforeUpdate:        s.merge,
		Sanitize:                 s.sanitize,
	}
}

func (s shorthand[T]) validate(problems *problems, reconciler string) {
	if !s.given && s.merge == nil {
		problems.addHint(
			"set MergeBeforeUpdate to use the default UpdatingObjectManager", "%s must %s %s", reconciler, s.verb, s.field,
		)
	}
	for _, field := range []struct {
		name string
		used bool
	}{
		{"MergeBeforeUpdate", s.merge != nil},
		{"HarmonizeImmutableFields", s.harmonize != nil},
		{"Sanitize", s.sanitize != nil},
		{"Finalizer", s.finalizer != ""},
	} {
		if s.given && field.used {
			problems.add("%s may not %s both %s and %s", reconciler, s.verb, s.field, field.name)
		}
	}
}
