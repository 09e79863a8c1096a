// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
)

// statusType describes the status of resources of one Go type. It is computed once.
type statusType struct {
	unstructured bool
	// field is the index of the Status field, or nil if the type has no such field.
	field []int
	// nilable reports whether the Status field is a pointer.
	nilable bool
	// observedGeneration and conditions are the indexes of these fields in the status, or nil if the status has no such
	// field of the expected type.
	observedGeneration []int
	conditions         []int
	// initialize reports whether the status has an InitializeConditions method, and withContext whether the method
	// takes a context.
	initialize  bool
	withContext bool

	carriers carriers
}

var (
	contextType    = reflect.TypeFor[context.Context]()
	conditionsType = reflect.TypeFor[[]metav1.Condition]()
)

func newStatusType(obj client.Object) *statusType {
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return &statusType{unstructured: true}
	}
	t := reflect.TypeOf(obj).Elem()
	if t.Kind() != reflect.Struct {
		return &statusType{}
	}
	field, ok := t.FieldByName("Status")
	if !ok {
		return &statusType{}
	}
	s := &statusType{field: field.Index}
	status := field.Type
	if status.Kind() == reflect.Pointer {
		s.nilable = true
		status = status.Elem()
	}
	if method, ok := reflect.PointerTo(status).MethodByName("InitializeConditions"); ok && method.Type.NumOut() == 0 {
		switch in := method.Type.NumIn(); {
		case in == 1:
			s.initialize = true
		case in == 2 && method.Type.In(1) == contextType:
			s.initialize, s.withContext = true, true
		}
	}
	if status.Kind() != reflect.Struct {
		return s
	}
	if f, ok := status.FieldByName("ObservedGeneration"); ok && f.Type.Kind() == reflect.Int64 {
		s.observedGeneration = f.Index
	}
	if f, ok := status.FieldByName("Conditions"); ok && f.Type == conditionsType {
		s.conditions = f.Index
	}
	return s
}

// value returns the addressable status struct of obj. The result is invalid if obj has no status or the status is nil.
func (s *statusType) value(obj client.Object) reflect.Value {
	if s.field == nil {
		return reflect.Value{}
	}
	status, err := reflect.ValueOf(obj).Elem().FieldByIndexErr(s.field)
	if err != nil {
		return reflect.Value{}
	}
	if s.nilable {
		status = status.Elem()
	}
	return status
}

// initializeConditions calls the InitializeConditions method of the status.
func (s *statusType) initializeConditions(ctx context.Context, obj client.Object) {
	status := s.value(obj)
	if !s.initialize || !status.IsValid() {
		return
	}
	switch status := status.Addr().Interface().(type) {
	case interface{ InitializeConditions(context.Context) }:
		status.InitializeConditions(ctx)
	case interface{ InitializeConditions() }:
		status.InitializeConditions()
	}
}

// observeGeneration copies the generation of the resource to its status.
func (s *statusType) observeGeneration(obj client.Object) {
	if status := s.value(obj); s.observedGeneration != nil && status.IsValid() {
		if field, err := status.FieldByIndexErr(s.observedGeneration); err == nil {
			field.SetInt(obj.GetGeneration())
		}
	}
}

// snapshot returns an object of the Go type of obj with only a copy of the status. If the status is not a known struct,
// it returns a copy of obj.
func (s *statusType) snapshot(obj client.Object) client.Object {
	status := s.value(obj)
	if !status.IsValid() || s.nilable {
		return obj.DeepCopyObject().(client.Object)
	}
	return s.carriers.copyPart(obj, func(carrier reflect.Value) { carrier.FieldByIndex(s.field).Set(status) })
}

// equal reports whether the status of two versions of a resource is equal.
func (s *statusType) equal(a, b client.Object) bool {
	return difference.Equal(s.of(a), s.of(b))
}

// of returns the status of obj for comparisons and logs, or nil if obj has no status.
func (s *statusType) of(obj client.Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object["status"]
	}
	if status := s.value(obj); status.IsValid() {
		return status.Addr().Interface()
	}
	return nil
}
