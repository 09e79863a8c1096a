// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// everything has fields of all types that a spec can have, and more.
type everything struct {
	Text      string
	Number    *int
	Pointers  **string
	Slices    [][]string
	Maps      map[string]map[string][]int
	Structs   map[string]nested
	Array     [2]*nested
	Any       any
	Anys      []any
	Recursive *everything
	Children  []everything
	Quantity  apiresource.Quantity
	Limits    corev1.ResourceList
	Time      metav1.Time
	Times     []*metav1.Time
	Micro     *metav1.MicroTime
	Duration  metav1.Duration
	GoTime    time.Time
	Port      *intstr.IntOrString
	Raw       runtime.RawExtension
	Pod       *corev1.PodSpec
	Address   netip.Addr
	Big       *big.Int
	Method    ownMethod
	Methods   map[string]*ownMethod
	Value     valueMethod
	nested
	*embedded
	metav1.LabelSelector
	hidden      string
	hiddenSlice []string
	hiddenMap   map[string][]int
	hiddenPlain *nested
	hiddenOwn   *ownMethod
}

type nested struct {
	Names  []string
	Labels map[string]string
}

type embedded struct{ Inner []string }

// ownMethod is copied by its own method, which keeps shared memory shared.
type ownMethod struct {
	Names  []string
	shared *int
}

func (m *ownMethod) DeepCopyInto(out *ownMethod) {
	*out = ownMethod{Names: slices.Clone(m.Names), shared: m.shared}
}

// valueMethod is a map with a method.
type valueMethod map[string][]string

func (m valueMethod) DeepCopy() valueMethod {
	if m == nil {
		return nil
	}
	out := valueMethod{}
	for key, values := range m {
		out[key] = slices.Clone(values)
	}
	return out
}

var berlin = time.FixedZone("berlin", 3600)

// filler fills values of any type.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value, depth int) {
	switch value := v.Addr().Interface().(type) {
	case *apiresource.Quantity:
		*value = apiresource.MustParse([]string{"1", "1500m", "123456789123456789123456789", "0.5Gi"}[f.IntN(4)])
		return
	case *metav1.Time:
		*value = metav1.NewTime(time.Unix(f.Int64N(1e9), 0))
		return
	case *metav1.MicroTime:
		*value = metav1.NewMicroTime(time.Unix(f.Int64N(1e9), 0).UTC())
		return
	case *time.Time:
		*value = time.Unix(f.Int64N(1e9), 0).In(berlin)
		return
	case *netip.Addr:
		*value = netip.MustParseAddr([]string{"10.0.0.1", "fe80::1%eth0"}[f.IntN(2)])
		return
	case *big.Int:
		value.Lsh(big.NewInt(f.Int64()), uint(f.IntN(200)))
		return
	case *runtime.Object:
		*value = &corev1.ConfigMap{Data: map[string]string{"key": "value"}}
		return
	case *any:
		*value = []any{
			nil, "text", 1.5, map[string]any{"a": []any{"b", map[string]any{}}}, &nested{Names: []string{"n"}}, []string{"s"},
		}[f.IntN(6)]
		return
	}
	f.fillKind(v, depth)
}

func (f filler) fillKind(v reflect.Value, depth int) {
	n := 0
	if depth > 0 {
		n = f.IntN(3)
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "b"}[f.IntN(3)])
	case reflect.Bool:
		v.SetBool(n > 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.IntN(100)))
	case reflect.Uint8:
		v.SetUint(uint64(f.IntN(100)))
	case reflect.Pointer:
		if n > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n+1))
		}
		for i := range v.Len() {
			f.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		if n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for range n {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, 0)
			f.fill(value, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			if !field.CanSet() {
				field = reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
			}
			f.fill(field, depth-1)
		}
	}
}

// memory records the addresses of everything that a value refers to.
type memory map[uintptr]string

// sharedOnPurpose holds types that are shared in unexported fields, or have no state.
var sharedOnPurpose = map[reflect.Type]bool{reflect.TypeFor[time.Time](): true, reflect.TypeFor[netip.Addr](): true}

func (m memory) note(v reflect.Value, path string, hidden bool) {
	if sharedOnPurpose[v.Type()] {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || hidden && v.Type() != reflect.TypeFor[*ownMethod]() {
			return
		}
		if v.Type().Elem().Size() > 0 {
			m[v.Pointer()] = path
		}
		m.note(v.Elem(), path, hidden)
	case reflect.Slice:
		if v.Cap() > 0 {
			m[v.Pointer()] = path
		}
		for i := range v.Len() {
			m.note(v.Index(i), path, hidden)
		}
	case reflect.Map:
		if !v.IsNil() {
			m[v.Pointer()] = path
		}
		for iter := v.MapRange(); iter.Next(); {
			m.note(iter.Value(), path, hidden)
		}
	case reflect.Interface:
		if !v.IsNil() && !hidden {
			m.note(v.Elem(), path, hidden)
		}
	case reflect.Array:
		for i := range v.Len() {
			m.note(v.Index(i), path, hidden)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			m.note(v.Field(i), path+"."+field.Name, hidden || !field.IsExported() && !field.Anonymous)
		}
	}
}

func checkCopy(t *testing.T, seed uint64, depth int) {
	t.Helper()
	var in, out, pristine everything
	filler{rand.New(rand.NewPCG(seed, 1))}.fill(reflect.ValueOf(&in).Elem(), depth)
	filler{rand.New(rand.NewPCG(seed, 1))}.fill(reflect.ValueOf(&pristine).Elem(), depth)
	in.Method.shared = new(int)
	pristine.Method.shared = in.Method.shared
	copyInto(&in, &out)
	if !reflect.DeepEqual(pristine, out) {
		t.Fatalf(
			"seed %d: the copy differs (-want +got):\n%s", seed,
			cmp.Diff(pristine, out, cmp.Exporter(func(reflect.Type) bool { return true })),
		)
	}
	if !reflect.DeepEqual(pristine, in) {
		t.Fatalf("seed %d: copying has changed the original", seed)
	}
	if in.Method.shared != out.Method.shared {
		t.Fatalf("seed %d: the type's own method was not used", seed)
	}
	before, after := memory{}, memory{}
	before.note(reflect.ValueOf(in), "in", false)
	after.note(reflect.ValueOf(out), "out", false)
	for address, path := range after {
		if from, ok := before[address]; ok {
			t.Fatalf("seed %d: %s shares memory with %s", seed, path, from)
		}
	}
}

func TestCopyInto(t *testing.T) {
	for seed := range uint64(3000) {
		checkCopy(t, seed, 2+int(seed%5))
	}
}

func FuzzCopyInto(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, depth uint8) { checkCopy(t, seed, int(depth%7)) })
}

// Goroutines that copy a type for the first time concurrently make its plan independently.
func TestCopyInto_concurrently(t *testing.T) {
	type fresh struct {
		Self *fresh
		Many []map[string]*fresh
	}
	in := fresh{Self: &fresh{}, Many: []map[string]*fresh{{"a": {Many: []map[string]*fresh{{}}}}}}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			var out fresh
			copyInto(&in, &out)
			if !reflect.DeepEqual(in, out) || in.Self == out.Self || in.Many[0]["a"] == out.Many[0]["a"] {
				t.Errorf("got %+v", out)
			}
		})
	}
	group.Wait()
}

func TestCopyInto_particulars(t *testing.T) {
	type pointer *nested
	type particular struct {
		Function func() int
		Channel  chan int
		Keys     map[*int]string
		Named    pointer
		Shared   *sync.Mutex
		loop     *particular
		location *time.Location
		hidden   any
	}
	in := particular{
		Function: func() int { return 1 }, Channel: make(chan int), Keys: map[*int]string{new(1): "one"},
		Named: &nested{Names: []string{"a"}}, Shared: &sync.Mutex{}, location: time.Local, hidden: []string{"a"},
	}
	in.loop = &in // ignored, because the field is unexported
	var out particular
	copyInto(&in, &out)
	if out.Function() != 1 || out.Channel != in.Channel || out.loop != &in || out.location != time.Local {
		t.Errorf("a value with an identity was copied: %+v", out)
	}
	if diff := cmp.Diff(in.Keys, out.Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	out.Named.Names[0] = "changed"
	out.Keys[nil] = "added"
	if in.Named.Names[0] != "a" || len(in.Keys) != 1 || out.Shared == in.Shared {
		t.Errorf("the copy shares memory: %+v", in)
	}
	if &in.hidden.([]string)[0] != &out.hidden.([]string)[0] {
		t.Error("an unexported interface was followed")
	}
}

func TestCopyInto_unexported(t *testing.T) {
	in := everything{
		hidden: "text", hiddenSlice: []string{"a"}, hiddenMap: map[string][]int{"a": {1}},
		hiddenPlain: &nested{Names: []string{"a"}}, hiddenOwn: &ownMethod{Names: []string{"a"}},
	}
	var out everything
	copyInto(&in, &out)
	if out.hidden != in.hidden || out.hiddenPlain != in.hiddenPlain {
		t.Errorf("lost %+v", out)
	}
	out.hiddenSlice[0], out.hiddenMap["a"][0], out.hiddenMap["b"], out.hiddenOwn.Names[0] = "changed", 2, nil, "changed"
	if in.hiddenSlice[0] != "a" || in.hiddenMap["a"][0] != 1 || len(in.hiddenMap) != 1 || in.hiddenOwn.Names[0] != "a" {
		t.Errorf("the copy shares memory: %+v", in)
	}
}

// A promoted method of an embedded field copies that field only.
func TestCopyInto_promotedMethod(t *testing.T) {
	type promoted struct {
		corev1.PodSpec
		Extra []string
	}
	in := promoted{PodSpec: corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}}, Extra: []string{"x"}}
	var out promoted
	copyInto(&in, &out)
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	out.Extra[0], out.NodeSelector["a"] = "changed", "changed"
	if in.Extra[0] != "x" || in.NodeSelector["a"] != "b" {
		t.Errorf("the copy shares memory: %+v", in)
	}
}

type pointerMethod struct{ names []string }

func (m *pointerMethod) DeepCopy() *pointerMethod {
	return &pointerMethod{names: append([]string{"copied"}, m.names...)}
}

type otherMethod struct{ Names []string }

func (m *otherMethod) DeepCopy() string { return "no copy" }

func TestCopyInto_methods(t *testing.T) {
	type methods struct {
		Pointer pointerMethod
		Other   otherMethod
	}
	in := methods{Pointer: pointerMethod{names: []string{"a"}}, Other: otherMethod{Names: []string{"b"}}}
	var out methods
	copyInto(&in, &out)
	want := methods{Pointer: pointerMethod{names: []string{"copied", "a"}}, Other: otherMethod{Names: []string{"b"}}}
	if !reflect.DeepEqual(want, out) {
		t.Errorf("got %+v, want %+v", out, want)
	}
	if &in.Other.Names[0] == &out.Other.Names[0] {
		t.Error("the copy shares memory")
	}
	var none, copied corev1.ResourceList
	if copyInto(&none, &copied); copied != nil {
		t.Error("the copy of nil is not nil")
	}
}
