// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	UID               string
	ResourceVersion   string
	Generation        int64
	Labels            map[string]string
	CreationTimestamp time.Time
	// DeletionTimestamp is nil unless the object is being deleted.
	DeletionTimestamp *time.Time
	Finalizers        []string
	// UpdateTimestamp, CreatedBy and UpdatedBy are the values of the annotations [AnnotationUpdateTimestamp],
	// [AnnotationCreatedBy] and [AnnotationUpdatedBy]. They are empty unless a client or a webhook sets the annotations.
	UpdateTimestamp time.Time
	CreatedBy       string
	UpdatedBy       string
	// ExtraFields is not set by [CommonMetadataOf]. The methods GetCommonMetadata that Grafana App SDK generates set it.
	ExtraFields map[string]any
}

// CommonMetadataOf returns a copy of the common metadata of an object.
func CommonMetadataOf(obj Object) CommonMetadata {
	annotations := obj.GetAnnotations()
	m := CommonMetadata{
		UID:               string(obj.GetUID()),
		ResourceVersion:   obj.GetResourceVersion(),
		Generation:        obj.GetGeneration(),
		Labels:            maps.Clone(obj.GetLabels()),
		CreationTimestamp: obj.GetCreationTimestamp().Time,
		Finalizers:        slices.Clone(obj.GetFinalizers()),
		CreatedBy:         annotations[AnnotationCreatedBy],
		UpdatedBy:         annotations[AnnotationUpdatedBy],
	}
	// A value that is not a time is the same as none.
	m.UpdateTimestamp, _ = time.Parse(time.RFC3339, annotations[AnnotationUpdateTimestamp])
	if deleted := obj.GetDeletionTimestamp(); deleted != nil {
		m.DeletionTimestamp = new(deleted.Time)
	}
	return m
}
