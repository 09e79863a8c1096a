// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

// The kinds of the tests have no generated code.
type (
	MyKindSpec struct {
		SomeInfo  string                `json:"someInfo,omitempty"`
		OtherInfo string                `json:"otherInfo,omitempty"`
		Replicas  int32                 `json:"replicas,omitempty"`
		Tags      []string              `json:"tags,omitempty"`
		Size      *apiresource.Quantity `json:"size,omitempty"`
		Until     time.Time             `json:"until,omitzero"`
	}
	MyKindStatus struct {
		LastAppliedGeneration int64              `json:"lastAppliedGeneration,omitempty"`
		ObservedGeneration    int64              `json:"observedGeneration,omitempty"`
		Replicas              int32              `json:"replicas,omitempty"`
		Conditions            []metav1.Condition `json:"conditions,omitempty"`
	}
	MyKind     = resource.TypedSpecStatusObject[MyKindSpec, MyKindStatus]
	MyKindList = resource.TypedList[MyKind]

	ThemeSpec struct {
		Color string `json:"color,omitempty"`
	}
	Theme     = resource.TypedSpecObject[ThemeSpec]
	ThemeList = resource.TypedList[*Theme]
)

const group = "resource.trueup.dev"

var (
	myKind = resource.Kind{
		Schema: resource.NewSimpleSchema(group, "v1", &MyKind{}, &MyKindList{}, resource.WithKind("MyKind")),
	}
	theme = resource.Kind{Schema: resource.NewSimpleSchema(group, "v1", &Theme{}, &ThemeList{},
		resource.WithKind("Theme"), resource.WithPlural("colors"), resource.WithScope(resource.ClusterScope))}
	// dynamic is the kind MyKind without a Go type.
	dynamic = resource.Kind{Schema: resource.NewSimpleSchema(group, "v1",
		&unstructured.Unstructured{}, &unstructured.UnstructuredList{}, resource.WithKind("MyKind"))}
)

var (
	_ resource.Object     = (*MyKind)(nil)
	_ resource.ListObject = (*MyKindList)(nil)
	_ resource.Object     = (*Theme)(nil)
	_ resource.ListObject = (*ThemeList)(nil)
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := resource.AddToScheme(scheme, myKind, theme, dynamic); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newCluster returns a client for a cluster that holds the objects.
func newCluster(t testing.TB, funcs interceptor.Funcs, objs ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&MyKind{}).WithObjects(
		objs...).WithInterceptorFuncs(funcs).Build()
}

func newStore[T resource.Object](
	t testing.TB, kind resource.Kind, clients resource.ClientGenerator, opts ...resource.StoreOption,
) *resource.TypedStore[T] {
	t.Helper()
	store, err := resource.NewTypedStore[T](kind, clients, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newMyKind(name string, change ...func(*MyKind)) *MyKind {
	obj := &MyKind{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: MyKindSpec{SomeInfo: "some"}}
	for _, change := range change {
		change(obj)
	}
	return obj
}

func id(name string) resource.Identifier { return resource.Identifier{Namespace: "ns", Name: name} }

// unchanged returns a function that fails the test if obj has changed since.
func unchanged[T resource.Object](t testing.TB, obj T) func() {
	before := obj.DeepCopyObject()
	return func() {
		t.Helper()
		if diff := cmp.Diff(before, runtime.Object(obj)); diff != "" {
			t.Errorf("the store changed its argument (-want +got):\n%s", diff)
		}
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// old is a client whose reads return the state of the time when it was made.
type old struct {
	client.Client
	cache client.Reader
}

func (o *old) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return o.cache.Get(ctx, key, obj, opts...)
}

func (o *old) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return o.cache.List(ctx, list, opts...)
}
