// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/resource"
)

var configMap = resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}

func TestKind(t *testing.T) {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Kind: "Gadget"})
	tests := map[string]struct {
		reason   string
		kind     resource.Kind
		name     string
		resource schema.GroupVersionResource
		scope    resource.SchemaScope
	}{
		"Generic": {
			reason: "the name is set, the plural is guessed",
			kind:   myKind,
			name:   "MyKind.v1.resource.trueup.dev",
			resource: schema.GroupVersionResource{
				Group:    group,
				Version:  "v1",
				Resource: "mykinds",
			},
			scope: resource.NamespacedScope,
		},
		"Options": {
			reason: "name, plural and scope are set", kind: theme, name: "Theme.v1.resource.trueup.dev",
			resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "colors"}, scope: resource.ClusterScope,
		},
		"Core": {
			reason: "the name is the Go type, the group is empty", kind: configMap, name: "ConfigMap.v1",
			resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, scope: resource.NamespacedScope,
		},
		"Unstructured": {
			reason: "the name is set",
			kind:   dynamic,
			name:   "MyKind.v1.resource.trueup.dev",
			resource: schema.GroupVersionResource{
				Group:    group,
				Version:  "v1",
				Resource: "mykinds",
			},
			scope: resource.NamespacedScope,
		},
		"UnstructuredWithKind": {
			reason: "the name comes from the object",
			name:   "Gadget.v2.example.com",
			kind: resource.Kind{
				Schema: resource.NewSimpleSchema("example.com", "v2", gadget, &unstructured.UnstructuredList{}),
			},
			resource: schema.GroupVersionResource{
				Group:    "example.com",
				Version:  "v2",
				Resource: "gadgets",
			},
			scope: resource.NamespacedScope,
		},
		"MetadataOnly": {
			reason: "a kind can consist of metadata only",
			name:   "MyKind.v1.resource.trueup.dev",
			kind: resource.Kind{Schema: resource.NewSimpleSchema(group, "v1",
				&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}, resource.WithKind("MyKind"))},
			resource: schema.GroupVersionResource{
				Group:    group,
				Version:  "v1",
				Resource: "mykinds",
			},
			scope: resource.NamespacedScope,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tt.kind.Validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.name, tt.kind.String()); diff != "" {
				t.Errorf("%s: name (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.resource, tt.kind.GroupVersionResource()); diff != "" {
				t.Errorf("%s: resource (-want +got):\n%s", tt.reason, diff)
			}
			if tt.kind.Scope() != tt.scope {
				t.Errorf("scope %s, want %s", tt.kind.Scope(), tt.scope)
			}
			gvk := tt.kind.GroupVersionKind()
			if got := tt.kind.ZeroValue().GetObjectKind().GroupVersionKind(); got != gvk {
				t.Errorf("ZeroValue is %s, want %s", got, gvk)
			}
			if got := tt.kind.ZeroListValue().GetObjectKind().GroupVersionKind(); got.Kind != gvk.Kind+"List" ||
				got.GroupVersion() != gvk.GroupVersion() {
				t.Errorf("ZeroListValue is %s", got)
			}
			if tt.kind.GroupKind() != gvk.GroupKind() {
				t.Errorf("GroupKind is %s", tt.kind.GroupKind())
			}
			obj := tt.kind.ZeroValue()
			obj.SetName("changed")
			if tt.kind.ZeroValue().GetName() != "" {
				t.Error("ZeroValue returns the same object twice")
			}
		})
	}
}

func TestKind_Validate(t *testing.T) {
	kind := func(s resource.Schema) resource.Kind { return resource.Kind{Schema: s} }
	tests := map[string]struct {
		reason string
		kind   resource.Kind
		want   string
	}{
		"Nothing": {reason: "the zero value is invalid", want: "kind must define Schema"},
		"NilPointer": {
			reason: "a nil schema is invalid",
			kind:   kind((*resource.SimpleSchema)(nil)),
			want:   "kind must define Schema",
		},
		"Everything": {
			reason: "all problems are listed",
			kind:   kind(resource.NewSimpleSchema("Bad Group", "", nil, (*MyKindList)(nil), resource.WithScope("Galaxy"))),
			want: `kind ..Bad Group has an invalid Group "Bad Group": a lowercase RFC 1123 subdomain
kind ..Bad Group must define Version
kind ..Bad Group must define Kind
kind ..Bad Group must define Plural
kind ..Bad Group has an invalid Scope "Galaxy": must be one of ["Namespaced" "Cluster"]
kind ..Bad Group must define ZeroValue
kind ..Bad Group must define ZeroListValue`,
		},
		"GenericName": {
			reason: "the name of a generic type is not a valid kind",
			kind:   kind(resource.NewSimpleSchema(group, "v1", &MyKind{}, &MyKindList{}, resource.WithPlural("mykinds"))),
			want:   `kind .v1.resource.trueup.dev must define Kind`,
		},
		"OtherList": {
			reason: "the list must hold objects of the kind",
			kind:   kind(resource.NewSimpleSchema(group, "v1", &MyKind{}, &ThemeList{}, resource.WithKind("MyKind"))),
			want:   `kind MyKind.v1.resource.trueup.dev must define ZeroListValue that lists *resource.TypedSpecStatusObject[`,
		},
		"NoItems": {
			reason: "a list must have items",
			kind:   kind(resource.NewSimpleSchema(group, "v1", &MyKind{}, &noItems{}, resource.WithKind("MyKind"))),
			want: `kind MyKind.v1.resource.trueup.dev must define ZeroListValue ` +
				`with a slice of Items, not *resource_test.noItems`,
		},
		"UnstructuredWithoutKind": {
			reason: "an unstructured object has no name for the kind",
			kind:   kind(resource.NewSimpleSchema(group, "v1", &unstructured.Unstructured{}, &unstructured.UnstructuredList{})),
			want: `kind .v1.resource.trueup.dev must define Kind
kind .v1.resource.trueup.dev must define Plural`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.kind.Validate()
			if err == nil {
				t.Fatalf("%s: no error", tt.reason)
			}
			got, want := strings.Split(err.Error(), "\n"), strings.Split(tt.want, "\n")
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
					t.Fatalf("%s: error\n%s\nwant\n%s", tt.reason, err, tt.want)
				}
			}
			if err := tt.kind.AddToScheme(runtime.NewScheme()); err == nil {
				t.Error("the kind was registered")
			}
			if _, err := resource.NewTypedStore[resource.Object](tt.kind, nil); err == nil {
				t.Error("NewTypedStore accepted the kind")
			}
		})
	}
}

type noItems struct {
	metav1.TypeMeta
	metav1.ListMeta
}

func (l *noItems) DeepCopyObject() runtime.Object { return new(*l) }

func TestAddToScheme(t *testing.T) {
	scheme := newScheme(t)
	if err := resource.AddToScheme(scheme, myKind, theme); err != nil {
		t.Errorf("again: %v", err)
	}
	obj, err := scheme.New(myKind.GroupVersionKind())
	if _, ok := obj.(*MyKind); !ok || err != nil {
		t.Errorf("the scheme makes %T, %v", obj, err)
	}
	for _, name := range []string{"MyKindList", "ThemeList", "ListOptions", "WatchEvent"} {
		if gvk := myKind.GroupVersionKind().GroupVersion().WithKind(name); !scheme.Recognizes(gvk) {
			t.Errorf("the scheme does not know %s", gvk)
		}
	}
}

func TestAddToScheme_conflicts(t *testing.T) {
	tests := map[string]struct {
		reason string
		schema resource.Schema
		want   []string
	}{
		"SameName": {
			reason: "a kind has one Go type",
			schema: resource.NewSimpleSchema(group, "v1", &corev1.Secret{}, &corev1.SecretList{}, resource.WithKind("MyKind")),
			want: []string{
				"Kind=MyKind cannot be *v1.Secret: the scheme has this kind as *resource.TypedSpecStatusObject[",
				"Kind=MyKindList cannot be *v1.SecretList: the scheme has this kind as *resource.TypedList[",
			},
		},
		"SameType": {
			reason: "a Go type has one kind",
			schema: resource.NewSimpleSchema(group, "v1", &MyKind{}, &MyKindList{}, resource.WithKind("YourKind")),
			want: []string{
				"that type as resource.trueup.dev/v1, Kind=MyKind,",
				"that type as resource.trueup.dev/v1, Kind=MyKindList,",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := newScheme(t)
			before := len(scheme.AllKnownTypes())
			err := resource.Kind{Schema: tt.schema}.AddToScheme(scheme)
			if err == nil {
				t.Fatalf("%s: no error", tt.reason)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: want %s in error\n%v", tt.reason, want, err)
				}
			}
			if after := len(scheme.AllKnownTypes()); after != before {
				t.Errorf("got %[2]d types in the scheme, want %[1]d", before, after)
			}
		})
	}
}
