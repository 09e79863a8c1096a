// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is the definition of a kind for a server.
//
// Its methods take objects of the Go type that the scheme has for the kind, or *unstructured.Unstructured if it has
// none. They change the object, which must belong to the caller, but never the old object. After PrepareForUpdate and
// PrepareForStatusUpdate, both share content. The Prepare methods only change fields of the object itself, not values
// that it points to, so a shallow copy keeps the request.
type Kind struct {
	schema.GroupVersionKind

	// Plural is the name of the resource, Singular its second name for mappers.
	Plural, Singular string
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
	// Custom kinds come from a CustomResourceDefinition, or are treated as if they did.
	Custom bool
	// Status reports whether the kind has a status subresource: other writes do not change the status, and writes to it
	// do not change the desired state.
	Status bool
	// Generations reports whether metadata.generation counts changes of the desired state.
	Generations bool
	// UnconditionalUpdate reports whether an update needs no resource version.
	UnconditionalUpdate bool
	// CreateOnUpdate reports whether an update of an object that does not exist creates it.
	CreateOnUpdate bool
	// Orphans reports whether dependents are orphaned by default when an object is deleted.
	Orphans bool
	// Graceful reports whether running objects have a grace period: their deletion is marked first, and a second deletion
	// without a grace period removes them.
	Graceful bool
	// Scale has the fields of the scale subresource. Nil if the kind does not have it.
	Scale *Scale
	// Selectable are the fields that field selectors for a custom kind support, like spec.color, besides name and
	// namespace.
	Selectable []string
	// ShortNames are other names of the resource, and Categories the groups of resources that it belongs to, for clients
	// for people. Columns are the columns of tables. They are the columns of the definition.
	ShortNames, Categories []string
	Columns                []apiextensionsv1.CustomResourceColumnDefinition
	// Versions are the versions of the definition of the kind. Nil without a definition: each version is a separate kind.
	Versions *Versions

	layout *layout // of the scheme's Go type, nil if it has none
	rules  rules
	// protobuf reports whether clients send and receive objects of the scheme's Go type as protobuf.
	protobuf bool
	// keepsStatus reports whether objects are created with their status.
	keepsStatus bool
	// unserved is set for a version that is only converted from and to.
	unserved bool
}

// Scale has the JSON paths of the fields in a scale subresource, like ".spec.replicas".
type Scale struct {
	SpecReplicas, StatusReplicas string
	// Selector is the path of a label selector, or of its text. Empty if the kind has none.
	Selector string
}

// rules differ between built-in kinds, custom kinds with a schema, and custom kinds without one.
type rules interface {
	// defaults also removes unknown fields.
	defaults(obj client.Object) error
	create(obj client.Object)
	// update prepares an object that has the status and generation of the old one, if the kind keeps them, and reports
	// whether its desired state changes.
	update(obj, old client.Object) (changed bool)
	// updateStatus prepares an object as it was sent.
	updateStatus(obj, old client.Object)
	validate(obj client.Object) field.ErrorList
	validateUpdate(obj, old client.Object, status bool) field.ErrorList
}

// Default sets defaults, and removes fields that the kind does not have. It must be called after decoding, for every
// write.
func (k *Kind) Default(obj client.Object) error {
	return k.rules.defaults(obj)
}

// DefaultApplied sets defaults after an apply. It removes nothing, because a server does not decode the result of an
// apply.
func (k *Kind) DefaultApplied(obj client.Object) error {
	if r, ok := k.rules.(*schemaRules); ok {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			defaulting.Default(u.Object, r.schema.structural)
			return nil
		}
	}
	return k.Default(obj)
}

// PrepareForCreate prepares an object for its creation: it removes the status and sets the first generation.
func (k *Kind) PrepareForCreate(obj client.Object) {
	if k.Status && !k.keepsStatus {
		k.setStatus(obj, nil)
	}
	if k.Generations {
		obj.SetGeneration(1)
	}
	k.rules.create(obj)
}

// PrepareForCreateByStatus prepares an object for its creation by a write to its status. Nothing is allocated for it.
func (k *Kind) PrepareForCreateByStatus(obj client.Object) {
	if service, ok := obj.(*corev1.Service); ok {
		service.Status = corev1.ServiceStatus{}
		return
	}
	k.PrepareForCreate(obj)
}

// PrepareForUpdate prepares an object that replaces the old one: it keeps the old status, and sets the next generation
// if the desired state changes.
func (k *Kind) PrepareForUpdate(obj, old client.Object) {
	if k.Status {
		k.setStatus(obj, old)
	}
	obj.SetGeneration(old.GetGeneration())
	if changed := k.rules.update(obj, old); changed && k.Generations {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// PrepareForStatusUpdate prepares an object that replaces the old one in a write to the status: all other fields are
// the fields of the old one. Built-in kinds also accept metadata.
func (k *Kind) PrepareForStatusUpdate(obj, old client.Object) {
	obj.SetGeneration(old.GetGeneration())
	k.rules.updateStatus(obj, old)
}

// Validate returns the problems of an object that is created.
func (k *Kind) Validate(obj client.Object) field.ErrorList {
	return inMapOrder(k.rules.validate(obj))
}

// ValidateUpdate returns the problems of an object that replaces the old one.
func (k *Kind) ValidateUpdate(obj, old client.Object) field.ErrorList {
	return inMapOrder(k.rules.validateUpdate(obj, old, false))
}

// ValidateStatusUpdate returns the problems of an object that replaces the old one in a write to the status.
func (k *Kind) ValidateStatusUpdate(obj, old client.Object) field.ErrorList {
	return inMapOrder(k.rules.validateUpdate(obj, old, true))
}

// setStatus sets the status of an object to the status of another one, or removes it. It ignores objects without a
// status field.
func (k *Kind) setStatus(obj, from client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		status, found := any(nil), false
		if from != nil {
			status, found = from.(*unstructured.Unstructured).Object["status"]
		}
		if found {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
		return
	}
	k.layout.setStatus(obj, from)
}
