// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observerKind is the kind of an observer: its group and kind, or its Go type if these cannot be determined.
type observerKind struct {
	schema.GroupKind
	goType reflect.Type
}

// observerKey identifies an observer.
type observerKey struct {
	kind observerKind
	name types.NamespacedName
}

func observerKeyOf(obj client.Object, scheme *runtime.Scheme) observerKey {
	key := observerKey{name: client.ObjectKeyFromObject(obj)}
	gk, err := groupKindOf(obj, scheme)
	if err != nil {
		key.kind.goType = reflect.TypeOf(obj)
	} else {
		key.kind.GroupKind = gk
	}
	return key
}

// observers holds the observers of one kind.
type observers struct {
	kind observerKind
	table[types.NamespacedName, *observer]
}

// observer watches one or more targets.
type observer struct {
	// of holds all observers of the same kind.
	of *observers
	// tracks has one track for each watched target, unordered.
	tracks []*track
	// held reports whether the tracks last until the observer is reconciled without renewing them. They are not in the
	// timetable then.
	held atomic.Bool
}
