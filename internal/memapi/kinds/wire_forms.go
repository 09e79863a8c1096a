// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// formOf returns the plan for types with an encoding of their own.
func formOf(t wireType) (plan, bool) {
	switch t.Type {
	case reflect.TypeFor[metav1.Time]():
		return ofTime(
			t, func(v reflect.Value) *time.Time { return &v.Addr().Interface().(*metav1.Time).Time }, int(time.Second),
		), true
	case reflect.TypeFor[metav1.MicroTime]():
		return ofTime(
			t, func(v reflect.Value) *time.Time { return &v.Addr().Interface().(*metav1.MicroTime).Time }, int(time.Microsecond),
		), true
	case reflect.TypeFor[resource.Quantity]():
		return plan{run: quantity}, true
	case reflect.TypeFor[metav1.Duration]():
		return plan{}, true
	case reflect.TypeFor[intstr.IntOrString]():
		if t.protobuf {
			return plan{}, true
		}
		return plan{run: intOrString}, true
	case reflect.TypeFor[apiextensionsv1.JSON]():
		return ofRaw(func(v reflect.Value) *[]byte { return &v.Addr().Interface().(*apiextensionsv1.JSON).Raw }), true
	case reflect.TypeFor[runtime.RawExtension]():
		if t.protobuf {
			return plan{}, true
		}
		raw := ofRaw(func(v reflect.Value) *[]byte { return &v.Addr().Interface().(*runtime.RawExtension).Raw })
		sort := raw.run
		raw.run = func(v reflect.Value) bool { return encodeObject(v) || sort(v) }
		return raw, true
	case reflect.TypeFor[metav1.TypeMeta]():
		if t.protobuf {
			return plan{run: clearValue}, true // only within an object
		}
		return plan{}, true
	case reflect.TypeFor[metav1.FieldsV1]():
		return plan{}, true
	}
	if marshals(t.Type) {
		return throughJSON(t.Type), true
	}
	return plan{}, false
}

var marshalers = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextMarshaler](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
}

// marshals reports whether a type, or a pointer to it, has an encoding of its own.
func marshals(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	for _, m := range marshalers {
		if t.Implements(m) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(m) {
			return t.Kind() != reflect.Pointer // a pointer may be nil; its element is checked separately
		}
	}
	return false
}

// throughJSON is the plan for types that only their own code can encode.
func throughJSON(t reflect.Type) plan {
	return plan{whole: true, run: func(v reflect.Value) bool {
		if v.IsZero() && t.Kind() != reflect.Struct {
			return false
		}
		data, err := json.Marshal(v.Addr().Interface())
		if err != nil {
			return false
		}
		decoded := reflect.New(t)
		if utiljson.Unmarshal(data, decoded.Interface()) != nil ||
			reflect.DeepEqual(v.Interface(), decoded.Elem().Interface()) {
			return false
		}
		v.Set(decoded.Elem())
		return true
	}}
}

// ofTime is the plan for times, which are local and have the given precision.
func ofTime(t wireType, of func(reflect.Value) *time.Time, precision int) plan {
	p := plan{run: func(v reflect.Value) bool {
		t := of(v)
		if t.IsZero() {
			return clearValue(v)
		}
		if decoded := time.Unix(t.Unix(), int64(t.Nanosecond()/precision*precision)); *t != decoded {
			*t = decoded
			return true
		}
		return false
	}}
	if !t.protobuf {
		p.null = func(v reflect.Value) bool { return of(v).IsZero() }
	}
	return p
}

// quantity makes a quantity canonical. The quantity caches its text, so that reading it later does not write, and the
// cached text marks quantities that have been processed.
func quantity(v reflect.Value) bool {
	if v.FieldByIndex(quantityText).Len() > 0 {
		return false
	}
	q := v.Addr().Interface().(*resource.Quantity)
	decoded, err := resource.ParseQuantity(q.String())
	if err == nil {
		_ = decoded.String()
		*q = decoded
	}
	return true
}

var quantityText = func() []int {
	f, ok := reflect.TypeFor[resource.Quantity]().FieldByName("s")
	if !ok || f.Type.Kind() != reflect.String {
		panic("a quantity no longer caches its text") // found by every test
	}
	return f.Index
}()

func intOrString(v reflect.Value) bool {
	i := v.Addr().Interface().(*intstr.IntOrString)
	decoded := *i
	switch i.Type {
	case intstr.Int:
		decoded.StrVal = ""
	case intstr.String:
		decoded.IntVal = 0
	}
	if *i == decoded {
		return false
	}
	*i = decoded
	return true
}

// ofRaw is the plan for raw JSON within a value.
func ofRaw(of func(reflect.Value) *[]byte) plan {
	return plan{
		null: func(v reflect.Value) bool { return len(*of(v)) == 0 || bytes.Equal(*of(v), []byte("null")) },
		run: func(v reflect.Value) bool {
			raw := of(v)
			if len(*raw) == 0 || bytes.Equal(*raw, []byte("null")) {
				return clearValue(v)
			}
			var content any
			if utiljson.Unmarshal(*raw, &content) != nil {
				return false
			}
			data, err := json.Marshal(content)
			if err != nil || bytes.Equal(*raw, data) {
				return false
			}
			*raw = data
			return true
		},
	}
}

// encodeObject replaces the object in an extension by its JSON.
func encodeObject(v reflect.Value) bool {
	e := v.Addr().Interface().(*runtime.RawExtension)
	if e.Object == nil {
		return false
	}
	if data, err := e.MarshalJSON(); err == nil {
		*e = runtime.RawExtension{Raw: data}
	}
	return true
}
