// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/objects/objectstatus"
)

// statusType describes the status of resources of one Go type. It is computed once.
type statusType struct {
	*objectstatus.Fields

	unstructured bool
	// initialize reports whether the status has an InitializeConditions method, and withContext whether the method
	// takes a context.
	initialize  bool
	withContext bool

	carriers carriers
}

var contextType = reflect.TypeFor[context.Context]()

func newStatusType(obj client.Object) *statusType {
	s := &statusType{Fields: objectstatus.Of(obj)}
	_, s.unstructured = obj.(*unstructured.Unstructured)
	if s.Type == nil {
		return s
	}
	if method, ok := reflect.PointerTo(s.Type).MethodByName("InitializeConditions"); ok && method.Type.NumOut() == 0 {
		switch in := method.Type.NumIn(); {
		case in == 1:
			s.initialize = true
		case in == 2 && method.Type.In(1) == contextType:
			s.initialize, s.withContext = true, true
		}
	}
	return s
}

// initializeConditions calls the InitializeConditions method of the status.
func (s *statusType) initializeConditions(ctx context.Context, obj client.Object) {
	status := s.Value(obj)
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
	if observed := s.ObservedGeneration(obj); observed != nil {
		*observed = obj.GetGeneration()
	}
}

// snapshot returns an object of the Go type of obj with only a copy of the status. If the status is not a known struct,
// it returns a copy of obj.
func (s *statusType) snapshot(obj client.Object) client.Object {
	status := s.Value(obj)
	if !status.IsValid() || s.IsPointer {
		return obj.DeepCopyObject().(client.Object)
	}
	return s.carriers.copyPart(obj, func(carrier reflect.Value) { carrier.FieldByIndex(s.Index).Set(status) })
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
	if status := s.Value(obj); status.IsValid() {
		return status.Addr().Interface()
	}
	return nil
}
