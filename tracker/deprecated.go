// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key identifies one object to watch.
//
// Deprecated: use [Reference].
type Key struct {
	GroupKind      schema.GroupKind
	NamespacedName types.NamespacedName
}

// NewKey returns the Key of an object; it ignores the version of the kind.
//
// Deprecated: use [Reference].
func NewKey(gvk schema.GroupVersionKind, namespacedName types.NamespacedName) Key {
	return Key{GroupKind: gvk.GroupKind(), NamespacedName: namespacedName}
}
