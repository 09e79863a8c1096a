// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// layout has the indexes of the fields in a Go type that are common to all kinds.
type layout struct {
	goType reflect.Type
	meta   []int // the index of the field ObjectMeta
	status int   // the index of the field Status, -1 if it does not exist
	others []int // the other fields, without the type
}

func newLayout(t reflect.Type) *layout {
	l := &layout{goType: t, status: -1}
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Name == "ObjectMeta" && f.Anonymous:
			l.meta = f.Index
		case f.Name == "Status":
			l.status = i
		case f.Name != "TypeMeta" && f.IsExported():
			l.others = append(l.others, i)
		}
	}
	return l
}

func (l *layout) value(obj client.Object) reflect.Value {
	return reflect.ValueOf(obj).Elem()
}

// setStatus sets the status of an object to the status of another one, or removes it.
func (l *layout) setStatus(obj, from client.Object) {
	if l.status < 0 {
		return
	}
	if status := l.value(obj).Field(l.status); from == nil {
		status.SetZero()
	} else {
		status.Set(l.value(from).Field(l.status))
	}
}

// setOthers copies all fields except metadata and status from another object.
func (l *layout) setOthers(obj, from client.Object) {
	to, source := l.value(obj), l.value(from)
	for _, i := range l.others {
		to.Field(i).Set(source.Field(i))
	}
}

// equalOthers compares all fields except metadata and status.
func (l *layout) equalOthers(a, b client.Object) bool {
	x, y := l.value(a), l.value(b)
	for _, i := range l.others {
		if !equal(x.Field(i), y.Field(i)) {
			return false
		}
	}
	return true
}

// setMeta copies the metadata of another object.
func (l *layout) setMeta(obj, from client.Object) {
	l.value(obj).FieldByIndex(l.meta).Set(l.value(from).FieldByIndex(l.meta))
}

// equalMeta compares the metadata that not every write changes. It may return false for equal metadata.
func (l *layout) equalMeta(a, b client.Object) bool {
	x, y := l.value(a).FieldByIndex(l.meta), l.value(b).FieldByIndex(l.meta)
	for _, i := range lastingMeta {
		if !equal(x.Field(i), y.Field(i)) {
			return false
		}
	}
	return true
}

// lastingMeta are the metadata fields that only a client changes.
var lastingMeta = func() []int {
	var fields []int
	for f := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		if f.Name != "ResourceVersion" && f.Name != "Generation" && f.Name != "ManagedFields" {
			fields = append(fields, f.Index[0])
		}
	}
	return fields
}()

// of reports whether an object has the Go type, rather than being unstructured.
func (l *layout) of(obj client.Object) bool { return reflect.TypeOf(obj).Elem() == l.goType }

// validateMetaUpdate validates changes of metadata. Unchanged metadata is valid.
// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateObjectMetaAccessorUpdate
func (l *layout) validateMetaUpdate(obj, old client.Object) field.ErrorList {
	if l != nil && l.of(obj) && l.of(old) && obj.GetResourceVersion() != "" && l.equalMeta(obj, old) {
		return nil
	}
	return validation.ValidateObjectMetaAccessorUpdate(obj, old, metaPath)
}

// equalStatus compares the status, if the type has one.
func (l *layout) equalStatus(a, b client.Object) bool {
	return l.status < 0 || equal(l.value(a).Field(l.status), l.value(b).Field(l.status))
}
