// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is what a server knows of a kind.
//
// Its methods take objects of the Go type the scheme has for the kind, or *unstructured.Unstructured if it has none.
// They change the object, which is to be the caller's own, but never the old one. After PrepareForUpdate and
// PrepareForStatusUpdate the two share content. The Prepare methods only change fields of the object itself, not what
// it points to, so that a shallow copy of it still says what was asked for.
type Kind struct {
	schema.GroupVersionKind

	// Plural is the name of the resource, Singular the other one that mappers know.
	Plural, Singular string
	// Namespaced is false for objects of the cluster.
	Namespaced bool
	// Custom kinds come from a CustomResourceDefinition, or are treated as if they did.
	Custom bool
	// Status says that there is a status subresource: other writes do not change the status, and writes to it change
	// nothing else that matters.
	Status bool
	// Generations says that changes of desired state are counted in metadata.generation.
	Generations bool
	// UnconditionalUpdate says that an update needs no resource version.
	UnconditionalUpdate bool
	// CreateOnUpdate says that an update of what is not there creates it.
	CreateOnUpdate bool
	// Orphans says that dependents stay when an object is deleted without saying what becomes of them.
	Orphans bool
	// Graceful says that objects that run somewhere get time to end: their deletion is marked first, and a second delete
	// without grace removes them.
	Graceful bool
	// Scale says where the scale subresource finds its fields; nil if there is none.
	Scale *Scale
	// Selectable are the fields that objects of a custom kind can be selected by, like spec.color, besides name and
	// namespace.
	Selectable []string

	layout *layout // of the scheme's Go type, nil if it has none
	rules  rules
	// protobuf says that clients get and send objects of the scheme's Go type as protobuf.
	protobuf bool
	// keepsStatus says that objects are created with their status.
	keepsStatus bool
}

// Scale has the JSON paths of the fields that a scale subresource shows, like ".spec.replicas".
type Scale struct {
	SpecReplicas, StatusReplicas string
	// Selector is the path of a label selector, or of its text; empty if there is none.
	Selector string
}

// rules is what differs between built-in kinds, custom kinds with a schema, and those without one.
type rules interface {
	// defaults also drops what the kind has no field for.
	defaults(obj client.Object) error
	create(obj client.Object)
	// update gets an object that has the status and generation of the old one, if the kind keeps them, and reports whether
	// its desired state changes.
	update(obj, old client.Object) (changed bool)
	// updateStatus gets the object as it was written.
	updateStatus(obj, old client.Object)
	validate(obj client.Object) field.ErrorList
	validateUpdate(obj, old client.Object, status bool) field.ErrorList
}

// Default fills in what is left out of an object, and drops what the kind has no field for. It is called after
// decoding, for every write.
func (k *Kind) Default(obj client.Object) error {
	return k.rules.defaults(obj)
}

// DefaultApplied is Default for what a configuration was applied to, which a server does not decode: nothing is
// dropped.
func (k *Kind) DefaultApplied(obj client.Object) error {
	if r, ok := k.rules.(*schemaRules); ok {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			defaulting.Default(u.Object, r.schema.structural)
			return nil
		}
	}
	return k.Default(obj)
}

// PrepareForCreate makes of an object what is created: without status, of the first generation.
func (k *Kind) PrepareForCreate(obj client.Object) {
	if k.Status && !k.keepsStatus {
		k.setStatus(obj, nil)
	}
	if k.Generations {
		obj.SetGeneration(1)
	}
	k.rules.create(obj)
}

// PrepareForCreateByStatus is PrepareForCreate for an object that a write of its status creates: nothing is allocated
// for it.
func (k *Kind) PrepareForCreateByStatus(obj client.Object) {
	if service, ok := obj.(*corev1.Service); ok {
		service.Status = corev1.ServiceStatus{}
		return
	}
	k.PrepareForCreate(obj)
}

// PrepareForUpdate makes of an object what replaces the old one: with the old status, of the next generation if its
// desired state changes.
func (k *Kind) PrepareForUpdate(obj, old client.Object) {
	if k.Status {
		k.setStatus(obj, old)
	}
	obj.SetGeneration(old.GetGeneration())
	if changed := k.rules.update(obj, old); changed && k.Generations {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// PrepareForStatusUpdate makes of an object what replaces the old one when its status is written: all but the status is
// the old one's. Kinds of Kubernetes let metadata through, too.
func (k *Kind) PrepareForStatusUpdate(obj, old client.Object) {
	obj.SetGeneration(old.GetGeneration())
	k.rules.updateStatus(obj, old)
}

// Validate returns what is wrong with an object that is created.
func (k *Kind) Validate(obj client.Object) field.ErrorList {
	return inMapOrder(k.rules.validate(obj))
}

// ValidateUpdate returns what is wrong with an object that replaces the old one.
func (k *Kind) ValidateUpdate(obj, old client.Object) field.ErrorList {
	return inMapOrder(k.rules.validateUpdate(obj, old, false))
}

// ValidateStatusUpdate returns what is wrong with an object whose status replaces the old one's.
func (k *Kind) ValidateStatusUpdate(obj, old client.Object) field.ErrorList {
	return inMapOrder(k.rules.validateUpdate(obj, old, true))
}

// setStatus gives an object the status of another one, or none. Nothing happens to objects without such a field.
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
