// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Touched is the annotation that another client writes, to cause conflicts. It is not compared, and operators may pass
// it on.
const Touched = "converge.trueup.dev/touched"

// Comparison compares the objects of two states.
type Comparison struct{ A, B *Snapshot }

// Alike reports whether two states are equal, except for versions, UIDs and times. It is fast, because most states are
// equal: only the objects that it cannot tell to be equal are compared field by field.
func Alike(a, b *Snapshot) bool {
	c := Comparison{a, b}
	if !slices.Equal(a.Kinds, b.Kinds) || !maps.Equal(a.Cloud, b.Cloud) || a.Outside.Text != b.Outside.Text {
		return false
	}
	for i, objects := range a.Objects {
		if len(objects) != len(b.Objects[i]) {
			return false
		}
		for n, obj := range objects {
			if !c.sameObject(obj, b.Objects[i][n]) {
				return false
			}
		}
	}
	return true
}

// sameObject reports whether two objects are equal. It may return false for equal ones, for example for those with
// generated names, or with lists in another order.
func (c Comparison) sameObject(a, b client.Object) bool {
	if a == b {
		return true
	}
	if u, ok := a.(*unstructured.Unstructured); ok {
		v, ok := b.(*unstructured.Unstructured)
		return ok && c.sameUntyped(u, v)
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Type() == y.Type() && c.same(x, y)
}

var (
	timeType     = reflect.TypeFor[metav1.Time]()
	microType    = reflect.TypeFor[metav1.MicroTime]()
	metaType     = reflect.TypeFor[metav1.ObjectMeta]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

func (c Comparison) same(a, b reflect.Value) bool {
	switch a.Type() {
	case timeType, microType:
		return a.IsZero() == b.IsZero()
	case metaType:
		x, y := a.Addr().Interface().(*metav1.ObjectMeta), b.Addr().Interface().(*metav1.ObjectMeta)
		return c.sameMetadata(x, y)
	case quantityType:
		x, y := a.Interface().(resource.Quantity), b.Interface().(resource.Quantity)
		return x.Cmp(y) == 0
	}
	switch a.Kind() {
	case reflect.Struct:
		t := a.Type()
		for i := range a.NumField() {
			if field := t.Field(i); !field.IsExported() || field.Name == "ObservedGeneration" {
				continue
			}
			if !c.same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		x, y := a.Elem(), b.Elem()
		return x.Type() == y.Type() && c.same(x, y)
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !c.same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for it := a.MapRange(); it.Next(); {
			other := b.MapIndex(it.Key())
			if !other.IsValid() || !c.same(it.Value(), other) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}

func (c Comparison) sameMetadata(a, b *metav1.ObjectMeta) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && maps.Equal(a.Labels, b.Labels) &&
		sameAnnotations(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		c.sameOwners(a.OwnerReferences, b.OwnerReferences)
}

func (c Comparison) sameOwners(a, b []metav1.OwnerReference) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !c.sameOwner(a[i], b[i]) {
			return false
		}
	}
	return true
}

// sameOwner compares references to owners, whose UIDs differ between runs.
func (c Comparison) sameOwner(a, b metav1.OwnerReference) bool {
	if a.UID != b.UID {
		if c.A.keyOf(a.UID) != c.B.keyOf(b.UID) {
			return false
		}
		a.UID, b.UID = "", ""
	}
	return c.same(reflect.ValueOf(a), reflect.ValueOf(b))
}

// keyOf identifies the object with a UID. Without one, that is the UID.
func (s *Snapshot) keyOf(uid types.UID) string {
	if s.byUID == nil {
		s.byUID = map[types.UID]string{}
		for i, kind := range s.Kinds {
			for _, obj := range s.Objects[i] {
				s.byUID[obj.GetUID()] = kind.String() + " " + client.ObjectKeyFromObject(obj).String()
			}
		}
	}
	return cmp.Or(s.byUID[uid], string(uid))
}

func sameAnnotations(a, b map[string]string) bool {
	if maps.Equal(a, b) {
		return true
	}
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, Touched)
	delete(b, Touched)
	return maps.Equal(a, b)
}

// sameUntyped compares objects without a Go type.
func (c Comparison) sameUntyped(a, b *unstructured.Unstructured) bool {
	if len(a.Object) != len(b.Object) {
		return false
	}
	for key, value := range a.Object {
		if other, ok := b.Object[key]; !ok || key != "metadata" && !sameValue(value, other) {
			return false
		}
	}
	return c.sameMetadata(comparedMetadata(a), comparedMetadata(b))
}

// comparedMetadata returns the metadata that is compared.
func comparedMetadata(obj client.Object) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(),
		Finalizers: obj.GetFinalizers(), DeletionTimestamp: obj.GetDeletionTimestamp(),
		OwnerReferences: obj.GetOwnerReferences(),
	}
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, ok := b[key]; !ok || key != "observedGeneration" && !sameValue(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	default:
		return a == b
	}
}
