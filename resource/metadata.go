// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// StaticMetadata is the metadata of an object that never changes.
type StaticMetadata struct {
	Group     string
	Version   string
	Kind      string
	Namespace string
	Name      string
}

// StaticMetadataOf returns the static metadata of an object. Group, version and kind are those the object has in its own apiVersion and kind fields. Go
// types need not have them filled in: objects from stores and caches of this module and of controller-runtime do, those from a client without a cache may not.
func StaticMetadataOf(obj Object) StaticMetadata {
	gvk := obj.GetObjectKind().GroupVersionKind()
	return StaticMetadata{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Identifier returns what tells the object from others of its kind.
func (m StaticMetadata) Identifier() Identifier {
	return Identifier{Namespace: m.Namespace, Name: m.Name}
}

// FullIdentifier returns what tells the object from all others in a cluster. Plural is empty; [Kind.FullIdentifier] knows it.
func (m StaticMetadata) FullIdentifier() FullIdentifier {
	return FullIdentifier{Namespace: m.Namespace, Name: m.Name, Group: m.Group, Version: m.Version, Kind: m.Kind}
}

// GroupVersionKind returns the kind of the object.
func (m StaticMetadata) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind}
}

// CommonMetadata is the metadata that objects of all kinds have and that changes in the life of an object.
type CommonMetadata struct {
	UID               types.UID
	ResourceVersion   string
	Generation        int64
	Labels            map[string]string
	CreationTimestamp time.Time
	// DeletionTimestamp is nil unless the object is being deleted.
	DeletionTimestamp *time.Time
	Finalizers        []string
}

// CommonMetadataOf returns a copy of the common metadata of an object.
func CommonMetadataOf(obj Object) CommonMetadata {
	m := CommonMetadata{
		UID:               obj.GetUID(),
		ResourceVersion:   obj.GetResourceVersion(),
		Generation:        obj.GetGeneration(),
		Labels:            maps.Clone(obj.GetLabels()),
		CreationTimestamp: obj.GetCreationTimestamp().Time,
		Finalizers:        slices.Clone(obj.GetFinalizers()),
	}
	if deleted := obj.GetDeletionTimestamp(); deleted != nil {
		m.DeletionTimestamp = new(deleted.Time)
	}
	return m
}
