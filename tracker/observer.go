// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observerKind is what kind of object an observer is: the group and kind, or
// where these cannot be determined its Go type.
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

// observers are those of one kind.
type observers struct {
	kind observerKind
	table[types.NamespacedName, *observer]
}

// observer is who watches one or more targets.
type observer struct {
	// of are all of its kind.
	of *observers
	// tracks are what it watches, each target once, in no order.
	tracks []*track
}
