// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Identifier tells an object from all others of its kind. It has the fields of [types.NamespacedName], so that one converts to the other:
// resource.Identifier(req.NamespacedName).
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

// NamespacedName returns the identifier as clients take it.
func (i Identifier) NamespacedName() types.NamespacedName {
	return types.NamespacedName(i)
}

// String returns "namespace/name", or the name alone where there is no namespace.
func (i Identifier) String() string {
	if i.Namespace == "" {
		return i.Name
	}
	return i.Namespace + "/" + i.Name
}

// FullIdentifier tells an object from all others in a cluster.
type FullIdentifier struct {
	Namespace string
	Name      string
	Group     string
	Version   string
	Kind      string
	// Plural is the name of the kind in paths of the API. It is empty where only the object itself has been asked, which does not know it.
	Plural string
}

// Identifier returns what tells the object from others of its kind.
func (i FullIdentifier) Identifier() Identifier {
	return Identifier{Namespace: i.Namespace, Name: i.Name}
}

// GroupVersionKind returns the kind of the object.
func (i FullIdentifier) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.Group, Version: i.Version, Kind: i.Kind}
}
