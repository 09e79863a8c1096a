// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler fills Go values at random with values that programs leave in them: empty lists, times with a monotonic clock,
// quantities with several spellings.
type filler struct {
	*rand.Rand
	// rare leaves most fields empty, as in most objects.
	rare int
}

func (f filler) text() string {
	return []string{"", "a", "kube-system", "<b>", "ü"}[f.IntN(5)]
}

func (f filler) fill(v reflect.Value, depth int) {
	switch to := v.Addr().Interface().(type) {
	case *metav1.Time:
		if f.IntN(3) > 0 {
			to.Time = time.Now().Add(time.Duration(f.Int64N(int64(time.Hour)))).In(
				[]*time.Location{time.UTC, time.Local, time.FixedZone("x", 3600)}[f.IntN(3)],
			)
		}
		return
	case *metav1.MicroTime:
		to.Time = time.Now().Add(time.Duration(f.Int64N(int64(time.Hour))))
		return
	case *resource.Quantity:
		switch f.IntN(3) {
		case 0:
			*to = resource.MustParse([]string{"1000m", "0.5", "1Gi", "1024Mi", "1e3", "0", "123456789012345678901"}[f.IntN(7)])
		case 1:
			*to = *resource.NewQuantity(f.Int64N(5000), resource.BinarySI)
		}
		return
	case *intstr.IntOrString:
		*to = intstr.IntOrString{Type: intstr.Type(f.IntN(2)), IntVal: f.Int32(), StrVal: f.text()}
		return
	case *runtime.RawExtension:
		to.Raw = []byte(`{"a":1,"b":"x"}`)
		return
	case *apiextensionsv1.JSON:
		to.Raw = []byte([]string{`{"a":1,"b":"x"}`, `null`, `[1,1.5]`}[f.IntN(3)])
		return
	case *metav1.FieldsV1:
		*to = *metav1.NewFieldsV1(`{"f:a":{}}`)
		return
	}
	if depth > 0 && f.IntN(f.rare) > 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth < 12 && f.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		n := f.IntN(4) - 1
		if n < 0 || depth > 12 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		n := f.IntN(4) - 1
		if n < 0 || depth > 12 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for i := range n {
			entry := reflect.New(v.Type().Elem()).Elem()
			f.fill(entry, depth+1)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", i)).Convert(v.Type().Key()), entry)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(f.Int64N(100))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.Uint64N(100))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(f.Float64())
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(json.Number("1")))
		}
	}
}
