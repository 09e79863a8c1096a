// SPDX-License-Identifier: Apache-2.0

package resource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TypedList is a list of objects. T is the Go type of the objects, or a pointer to it:
//
//	type MyKindList = resource.TypedList[MyKind]
type TypedList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []T `json:"items"`
}

// DeepCopyInto copies the list into out, which must not be nil.
func (l *TypedList[T]) DeepCopyInto(out *TypedList[T]) {
	out.TypeMeta = l.TypeMeta
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	if l.Items != nil {
		out.Items = make([]T, len(l.Items))
		for i := range l.Items {
			copyInto(&l.Items[i], &out.Items[i])
		}
	}
}

// DeepCopy returns a copy that shares no memory with the list; the copy of nil is nil.
func (l *TypedList[T]) DeepCopy() *TypedList[T] {
	if l == nil {
		return nil
	}
	out := new(TypedList[T])
	l.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements [runtime.Object].
func (l *TypedList[T]) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	return l.DeepCopy()
}
