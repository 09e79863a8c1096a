// SPDX-License-Identifier: Apache-2.0

package resource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TypedSpecObject is an object with a spec and no status. It needs no generated code: an alias makes it a kind's Go
// type.
//
//	type Theme = resource.TypedSpecObject[ThemeSpec]
//
// Copies use the DeepCopyInto(*Spec) method of the spec if it exists. Otherwise they are made as described for
// [TypedSpecStatusObject].
type TypedSpecObject[Spec any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec"`
}

// GetStaticMetadata returns [StaticMetadataOf] the object.
func (o *TypedSpecObject[Spec]) GetStaticMetadata() StaticMetadata { return StaticMetadataOf(o) }

// GetCommonMetadata returns [CommonMetadataOf] the object.
func (o *TypedSpecObject[Spec]) GetCommonMetadata() CommonMetadata { return CommonMetadataOf(o) }

// DeepCopyInto copies the object into out, which must not be nil.
func (o *TypedSpecObject[Spec]) DeepCopyInto(out *TypedSpecObject[Spec]) {
	out.TypeMeta = o.TypeMeta
	o.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	copyInto(&o.Spec, &out.Spec)
}

// DeepCopy returns a copy that shares no memory with the object; the copy of nil is nil.
func (o *TypedSpecObject[Spec]) DeepCopy() *TypedSpecObject[Spec] {
	if o == nil {
		return nil
	}
	out := new(TypedSpecObject[Spec])
	o.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements [runtime.Object].
func (o *TypedSpecObject[Spec]) DeepCopyObject() runtime.Object {
	if o == nil {
		return nil
	}
	return o.DeepCopy()
}

// TypedSpecStatusObject is an object with a spec and a status. It needs no generated code: an alias makes it a kind's
// Go type.
//
//	type MyKind = resource.TypedSpecStatusObject[MyKindSpec, MyKindStatus]
//
// An empty status is omitted from its JSON. If the status has the fields ObservedGeneration int64 and Conditions
// []metav1.Condition, or embeds apis.Status inline, the reconcilers of this module maintain them.
//
// # Copies
//
// Spec and status are copied with their DeepCopyInto method, if it is defined for their own type and not for an
// embedded field. Otherwise they are copied by reflection: pointers, slices, maps and interfaces are copied
// recursively, with the DeepCopyInto or DeepCopy methods of the types found there. Values of unexported fields are
// kept. Slices and maps in them are copied. Values that they point to are shared unless they have such a method,
// because types such as [time.Time] depend on the identity of pointers. Functions and channels are shared. A value must
// not contain itself.
type TypedSpecStatusObject[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// GetStaticMetadata returns [StaticMetadataOf] the object.
func (o *TypedSpecStatusObject[Spec, Status]) GetStaticMetadata() StaticMetadata {
	return StaticMetadataOf(o)
}

// GetCommonMetadata returns [CommonMetadataOf] the object.
func (o *TypedSpecStatusObject[Spec, Status]) GetCommonMetadata() CommonMetadata {
	return CommonMetadataOf(o)
}

// DeepCopyInto copies the object into out, which must not be nil.
func (o *TypedSpecStatusObject[Spec, Status]) DeepCopyInto(out *TypedSpecStatusObject[Spec, Status]) {
	out.TypeMeta = o.TypeMeta
	o.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	copyInto(&o.Spec, &out.Spec)
	copyInto(&o.Status, &out.Status)
}

// DeepCopy returns a copy that shares no memory with the object; the copy of nil is nil.
func (o *TypedSpecStatusObject[Spec, Status]) DeepCopy() *TypedSpecStatusObject[Spec, Status] {
	if o == nil {
		return nil
	}
	out := new(TypedSpecStatusObject[Spec, Status])
	o.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements [runtime.Object].
func (o *TypedSpecStatusObject[Spec, Status]) DeepCopyObject() runtime.Object {
	if o == nil {
		return nil
	}
	return o.DeepCopy()
}
