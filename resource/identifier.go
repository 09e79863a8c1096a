// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Identifier identifies an object among all objects of its kind. It has the fields of [types.NamespacedName], so that
// one converts to the other: resource.Identifier(req.NamespacedName).
type Identifier struct {
	// Namespace of the object, empty for kinds of cluster scope.
	Namespace string
	// Name of the object.
	Name string
}

// IdentifierOf returns the identifier of an object.
func IdentifierOf(obj Object) Identifier {
	return Identifier{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// NamespacedName returns the identifier in the type that clients use.
func (i Identifier) NamespacedName() types.NamespacedName {
	return types.NamespacedName(i)
}

// String returns "namespace/name", or only the name if the namespace is empty.
func (i Identifier) String() string {
	if i.Namespace == "" {
		return i.Name
	}
	return i.Namespace + "/" + i.Name
}

// FullIdentifier identifies an object among all objects in a cluster.
type FullIdentifier struct {
	Namespace string
	Name      string
	Group     string
	Version   string
	Kind      string
	// Plural is the name of the kind in API paths. It is empty if it is derived from the object alone, which does not have
	// it.
	Plural string
}

// Identifier returns the identifier of the object within its kind.
func (i FullIdentifier) Identifier() Identifier {
	return Identifier{Namespace: i.Namespace, Name: i.Name}
}

// GroupVersionKind returns the kind of the object.
func (i FullIdentifier) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.Group, Version: i.Version, Kind: i.Kind}
}
