// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"trueup.dev/resource"
)

func TestTypedObjects_json(t *testing.T) {
	tests := map[string]struct {
		reason string
		obj    runtime.Object
		empty  runtime.Object
		want   string
	}{
		"Empty": {
			reason: "an empty status is omitted, a spec never is",
			obj:    newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "" }),
			empty:  &MyKind{},
			want:   `{"metadata":{"name":"a","namespace":"ns"},"spec":{}}`,
		},
		"Status": {
			reason: "the object has a status",
			obj:    newMyKind("a", func(o *MyKind) { o.Status.Replicas = 2; o.Spec.Size = new(apiresource.MustParse("1Gi")) }),
			empty:  &MyKind{},
			want:   `{"metadata":{"name":"a","namespace":"ns"},"spec":{"someInfo":"some","size":"1Gi"},"status":{"replicas":2}}`,
		},
		"NoStatus": {
			reason: "the type has no status",
			obj:    &Theme{ObjectMeta: metav1.ObjectMeta{Name: "dark"}, Spec: ThemeSpec{Color: "black"}},
			empty:  &Theme{},
			want:   `{"metadata":{"name":"dark"},"spec":{"color":"black"}}`,
		},
		"List": {
			reason: "items of the list are objects",
			obj:    &MyKindList{ListMeta: metav1.ListMeta{Continue: "c"}, Items: []MyKind{*newMyKind("a")}},
			empty:  &MyKindList{},
			want: `{"metadata":{"continue":"c"},"items":[` +
				`{"metadata":{"name":"a","namespace":"ns"},"spec":{"someInfo":"some"}}]}`,
		},
		"ListOfPointers": {
			reason: "items of the list are pointers to objects",
			obj:    &ThemeList{Items: []*Theme{{ObjectMeta: metav1.ObjectMeta{Name: "dark"}}}},
			empty:  &ThemeList{},
			want:   `{"metadata":{},"items":[{"metadata":{"name":"dark"},"spec":{}}]}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data := must[[]byte](t)(json.Marshal(tt.obj))
			if diff := cmp.Diff(tt.want, string(data)); diff != "" {
				t.Errorf("%s: JSON (-want +got):\n%s", tt.reason, diff)
			}
			if err := json.Unmarshal(data, tt.empty); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.obj, tt.empty); diff != "" {
				t.Errorf("%s: decoded (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// The decoders of a scheme, and conversions to unstructured objects, find the types by the names of their kinds.
func TestTypedObjects_codec(t *testing.T) {
	decoder := serializer.NewCodecFactory(newScheme(t)).UniversalDeserializer()
	data := `{"apiVersion":"resource.trueup.dev/v1","kind":"MyKind","metadata":{"name":"a"},"spec":{"someInfo":"some"}}`
	decoded := must[runtime.Object](t)(runtime.Decode(decoder, []byte(data)))
	if obj, ok := decoded.(*MyKind); !ok || obj.Spec.SomeInfo != "some" {
		t.Errorf("decoded %#v", decoded)
	}
	content := must[map[string]any](t)(runtime.DefaultUnstructuredConverter.ToUnstructured(newMyKind("a")))
	want := map[string]any{
		"metadata": map[string]any{"name": "a", "namespace": "ns"},
		"spec":     map[string]any{"someInfo": "some"},
	}
	if diff := cmp.Diff(want, content); diff != "" {
		t.Errorf("unstructured (-want +got):\n%s", diff)
	}
}

func TestTypedObjects_deepCopy(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		obj    func() runtime.Object
		change func(runtime.Object)
	}{
		"MyKind": {
			obj: func() runtime.Object {
				return newMyKind("a", func(o *MyKind) {
					o.Labels = map[string]string{"a": "b"}
					o.Spec.Tags = []string{"x"}
					o.Spec.Size = new(apiresource.MustParse("1Gi"))
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", LastTransitionTime: now}}
				})
			},
			change: func(o runtime.Object) {
				obj := o.(*MyKind)
				obj.Labels["a"], obj.Spec.Tags[0], obj.Status.Conditions[0].Type = "changed", "changed", "changed"
				obj.Spec.Size.Add(apiresource.MustParse("1Gi"))
			},
		},
		"Theme": {
			obj: func() runtime.Object {
				return &Theme{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a"}}, Spec: ThemeSpec{Color: "red"}}
			},
			change: func(o runtime.Object) { o.(*Theme).Finalizers[0] = "changed" },
		},
		"MyKindList": {
			obj: func() runtime.Object {
				return &MyKindList{
					ListMeta: metav1.ListMeta{RemainingItemCount: new(int64(1))},
					Items:    []MyKind{*newMyKind("a", func(o *MyKind) { o.Spec.Tags = []string{"x"} })},
				}
			},
			change: func(o runtime.Object) {
				l := o.(*MyKindList)
				*l.RemainingItemCount, l.Items[0].Spec.Tags[0] = 2, "changed"
			},
		},
		"ThemeList": {
			obj:    func() runtime.Object { return &ThemeList{Items: []*Theme{{Spec: ThemeSpec{Color: "red"}}, nil}} },
			change: func(o runtime.Object) { o.(*ThemeList).Items[0].Spec.Color = "changed" },
		},
		"EmptyList": {
			obj:    func() runtime.Object { return &ThemeList{Items: []*Theme{}} },
			change: func(o runtime.Object) { o.(*ThemeList).Continue = "changed" },
		},
		"NilList": {
			obj:    func() runtime.Object { return &ThemeList{} },
			change: func(o runtime.Object) { o.(*ThemeList).Continue = "changed" },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			original := tt.obj()
			copied := original.DeepCopyObject()
			if diff := cmp.Diff(original, copied); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
			tt.change(copied)
			if diff := cmp.Diff(tt.obj(), original); diff != "" {
				t.Errorf("a change of the copy changed the original (-want +got):\n%s", diff)
			}
			if cmp.Equal(copied, original) {
				t.Error("the test changed nothing")
			}
		})
	}
	for _, nothing := range []runtime.Object{(*MyKind)(nil), (*Theme)(nil), (*MyKindList)(nil)} {
		if got := nothing.DeepCopyObject(); got != nil {
			t.Errorf("the copy of a nil %T is %v", nothing, got)
		}
	}
	if (*MyKind)(nil).DeepCopy() != nil || (*Theme)(nil).DeepCopy() != nil ||
		(*resource.TypedList[int])(nil).DeepCopy() != nil {
		t.Error("the copy of nil is not nil")
	}
}
