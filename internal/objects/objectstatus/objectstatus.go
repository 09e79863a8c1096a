// SPDX-License-Identifier: Apache-2.0

// Package objectstatus finds the status of objects of a Go type, and its fields that have a conventional meaning.
package objectstatus

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fields locates the status in objects of one Go type.
type Fields struct {
	// Index is the index of the Status field, or nil if the type has no such field.
	Index []int
	// Type is the type of the status. If the Status field is a pointer, it is the type that the field points to.
	Type reflect.Type
	// IsPointer reports whether the Status field is a pointer.
	IsPointer bool
	// observedGeneration and conditions are the indexes of these fields in the status, or nil if the status has no such
	// field of a suitable type.
	observedGeneration, conditions []int
	// named reports whether the conditions have a type that is defined as []metav1.Condition.
	named bool
}

var (
	unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()

	conditionsType = reflect.TypeFor[[]metav1.Condition]()
	generationType = reflect.TypeFor[*int64]()
)

var known sync.Map // from reflect.Type to *Fields

// Of returns the fields of objects that have the Go type of obj, which may be a nil pointer. Unstructured objects have
// none.
func Of(obj client.Object) *Fields {
	t := reflect.TypeOf(obj)
	found, ok := known.Load(t)
	if !ok {
		found, _ = known.LoadOrStore(t, newFields(t))
	}
	return found.(*Fields)
}

func newFields(t reflect.Type) *Fields {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t == unstructuredType {
		return &Fields{}
	}
	status, ok := t.Elem().FieldByName("Status")
	if !ok {
		return &Fields{}
	}
	f := &Fields{Index: status.Index, Type: status.Type}
	if f.Type.Kind() == reflect.Pointer {
		f.Type, f.IsPointer = f.Type.Elem(), true
	}
	if f.Type.Kind() != reflect.Struct {
		return f
	}
	if field, ok := f.Type.FieldByName("ObservedGeneration"); ok && field.Type.Kind() == reflect.Int64 {
		f.observedGeneration = field.Index
	}
	if field, ok := f.Type.FieldByName("Conditions"); ok && field.Type.ConvertibleTo(conditionsType) {
		f.conditions, f.named = field.Index, field.Type != conditionsType
	}
	return f
}

// Value returns the addressable status of an object. The result is invalid if there is none, or if it is nil.
func (f *Fields) Value(obj client.Object) reflect.Value {
	if f.Index == nil {
		return reflect.Value{}
	}
	status, err := reflect.ValueOf(obj).Elem().FieldByIndexErr(f.Index)
	if err != nil {
		return reflect.Value{}
	}
	if f.IsPointer {
		status = status.Elem()
	}
	return status
}

// field returns a field of the status of an object. The result is invalid if the object does not have it.
func (f *Fields) field(obj client.Object, index []int) reflect.Value {
	status := f.Value(obj)
	if index == nil || !status.IsValid() {
		return reflect.Value{}
	}
	field, err := status.FieldByIndexErr(index)
	if err != nil {
		return reflect.Value{}
	}
	return field
}

// HasObservedGeneration reports whether the status has a field ObservedGeneration of type int64.
func (f *Fields) HasObservedGeneration() bool { return f.observedGeneration != nil }

// ObservedGeneration returns a pointer to the observedGeneration of an object, or nil.
func (f *Fields) ObservedGeneration(obj client.Object) *int64 {
	field := f.field(obj, f.observedGeneration)
	if !field.IsValid() {
		return nil
	}
	return field.Addr().Convert(generationType).Interface().(*int64)
}

// HasConditions reports whether the status has a field Conditions of type []metav1.Condition.
func (f *Fields) HasConditions() bool { return f.conditions != nil && !f.named }

// Conditions returns a pointer to the conditions of an object, or nil if they do not have the type []metav1.Condition.
func (f *Fields) Conditions(obj client.Object) *[]metav1.Condition {
	field := f.field(obj, f.conditions)
	if !field.IsValid() || f.named {
		return nil
	}
	return field.Addr().Interface().(*[]metav1.Condition)
}

// ReadConditions returns the conditions of an object, including conditions of a type that is defined as
// []metav1.Condition.
func (f *Fields) ReadConditions(obj client.Object) []metav1.Condition {
	field := f.field(obj, f.conditions)
	if !field.IsValid() {
		return nil
	}
	return field.Convert(conditionsType).Interface().([]metav1.Condition)
}
