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

// StaticMetadataOf returns the static metadata of an object. Group, version and kind are read from the apiVersion and
// kind fields of the object. These fields may be empty in objects with a Go type: stores and caches of this module and
// of controller-runtime set them, a client without a cache may not.
func StaticMetadataOf(obj Object) StaticMetadata {
	gvk := obj.GetObjectKind().GroupVersionKind()
	return StaticMetadata{
		Group:     gvk.Group,
		Version:   gvk.Version,
		Kind:      gvk.Kind,
		Namespace: obj.GetNamespace(),
		Name:      obj.GetName(),
	}
}

// Identifier returns the identifier of the object within its kind.
func (m StaticMetadata) Identifier() Identifier {
	return Identifier{Namespace: m.Namespace, Name: m.Name}
}

// FullIdentifier returns the identifier of the object within a cluster. Plural is empty; [Kind.FullIdentifier] sets it.
func (m StaticMetadata) FullIdentifier() FullIdentifier {
	return FullIdentifier{Namespace: m.Namespace, Name: m.Name, Group: m.Group, Version: m.Version, Kind: m.Kind}
}

// GroupVersionKind returns the kind of the object.
func (m StaticMetadata) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind}
}

// CommonMetadata is the metadata that all objects have and that changes during the lifetime of an object.
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
