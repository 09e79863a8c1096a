// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// layout is what of a Go type has a meaning for all kinds.
type layout struct {
	goType reflect.Type
	meta   []int // the index of the field ObjectMeta
	status int   // the index of the field Status, -1 if there is none
	others []int // the fields that are neither of them nor the type
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

// setStatus gives an object the status of another one, or none.
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

// setOthers gives an object all that is neither metadata nor status of another one.
func (l *layout) setOthers(obj, from client.Object) {
	to, source := l.value(obj), l.value(from)
	for _, i := range l.others {
		to.Field(i).Set(source.Field(i))
	}
}

// equalOthers compares all that is neither metadata nor status.
func (l *layout) equalOthers(a, b client.Object) bool {
	x, y := l.value(a), l.value(b)
	for _, i := range l.others {
		if !equal(x.Field(i), y.Field(i)) {
			return false
		}
	}
	return true
}

// setMeta gives an object the metadata of another one.
func (l *layout) setMeta(obj, from client.Object) {
	l.value(obj).FieldByIndex(l.meta).Set(l.value(from).FieldByIndex(l.meta))
}

// equalMeta compares metadata but for what every write changes, and may be wrong about being different.
func (l *layout) equalMeta(a, b client.Object) bool {
	x, y := l.value(a).FieldByIndex(l.meta), l.value(b).FieldByIndex(l.meta)
	for _, i := range lastingMeta {
		if !equal(x.Field(i), y.Field(i)) {
			return false
		}
	}
	return true
}

// lastingMeta are the fields of metadata that stay when a client does not change them.
var lastingMeta = func() []int {
	var fields []int
	for f := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		if f.Name != "ResourceVersion" && f.Name != "Generation" && f.Name != "ManagedFields" {
			fields = append(fields, f.Index[0])
		}
	}
	return fields
}()

// of is true for objects of the Go type, and not for untyped ones of the kind.
func (l *layout) of(obj client.Object) bool { return reflect.TypeOf(obj).Elem() == l.goType }

// validateMetaUpdate refuses changes of metadata. What is not changed was good before.
func (l *layout) validateMetaUpdate(obj, old client.Object) field.ErrorList {
	if l != nil && l.of(obj) && l.of(old) && obj.GetResourceVersion() != "" && l.equalMeta(obj, old) {
		return nil
	}
	return validation.ValidateObjectMetaAccessorUpdate(obj, old, metaPath)
}

// equalStatus compares the status, if there is one.
func (l *layout) equalStatus(a, b client.Object) bool {
	return l.status < 0 || equal(l.value(a).Field(l.status), l.value(b).Field(l.status))
}
