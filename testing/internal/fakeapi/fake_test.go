// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/internal/testkit/fixture"
)

func newGadget(name string) *unstructured.Unstructured {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
	gadget.SetNamespace("my-namespace")
	gadget.SetName(name)
	return gadget
}

func gadgetList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "GadgetList"})
	return list
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "my-namespace", Name: name}
}

func mustFake(t testing.TB, o Options) (client.WithWatch, clientgotesting.ObjectTracker) {
	t.Helper()
	if o.Scheme == nil {
		o.Scheme = fixture.NewScheme()
	}
	c, tracker, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, tracker
}

func TestNew_builder(t *testing.T) {
	var intercepted []string
	mapper := meta.NewDefaultRESTMapper(nil)
	options := Options{
		Mapper: meta.NewDefaultRESTMapper(nil),
		Given:  []client.Object{&corev1.ConfigMap{ObjectMeta: objectMeta("one")}, newGadget("one")},
		Build: func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithRESTMapper(mapper).WithObjects(&corev1.Secret{ObjectMeta: objectMeta("one")}).
				WithIndex(&corev1.ConfigMap{}, "name", func(obj client.Object) []string { return []string{obj.GetName()} }).
				WithIndex(newGadget(""), "name", func(obj client.Object) []string { return []string{obj.GetName()} }).
				WithInterceptorFuncs(interceptor.Funcs{
					Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
						intercepted = append(intercepted, obj.GetObjectKind().GroupVersionKind().Kind+obj.GetName())
						return nil
					},
				})
		},
	}
	c, _ := mustFake(t, options)
	if c.RESTMapper() != meta.RESTMapper(mapper) {
		t.Error("the mapper of the builder is not used")
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "my-namespace", Name: "one"}, &corev1.Secret{}); err != nil {
		t.Errorf("object of the builder: %v", err)
	}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, gadgetList()} {
		for name, want := range map[string]int{"one": 1, "two": 0} {
			if err := c.List(t.Context(), list, client.MatchingFields{"name": name}); err != nil || meta.LenList(list) != want {
				t.Errorf("%T: %d items with name %s, error = %v", list, meta.LenList(list), name, err)
			}
		}
	}
	if err := errors.Join(
		c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("two")}), c.Delete(t.Context(), newGadget("two")),
	); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"two", "Gadgettwo"}, intercepted); diff != "" {
		t.Errorf("intercepted (-want +got):\n%s", diff)
	}

	options.Build = nil
	if c, _ := mustFake(t, options); c.RESTMapper() != options.Mapper {
		t.Error("the mapper of the options is not used")
	}
}

// A tracker of the builder is used for all kinds.
func TestNew_trackerOfTheBuilder(t *testing.T) {
	for _, given := range []bool{false, true} {
		t.Run(fmt.Sprintf("given=%t", given), func(t *testing.T) {
			scheme := fixture.NewScheme()
			tracker := clientgotesting.NewObjectTracker(scheme, nil)
			options := Options{
				Scheme: scheme, Build: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjectTracker(tracker) },
			}
			if given {
				options.Given = []client.Object{newGadget("given")}
			}
			c, _ := mustFake(t, options)
			if err := c.Create(t.Context(), newGadget("one")); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(
				t.Context(), client.ObjectKey{Namespace: "my-namespace", Name: "given"}, newGadget(""),
			); (err == nil) != given {
				t.Errorf("error = %v", err)
			}
			gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
			if _, err := tracker.Get(gadgets, "my-namespace", "one"); err != nil {
				t.Errorf("in the tracker: %v", err)
			}
		})
	}
}

// Kinds that are not in the scheme can be used. The scheme, which other tests use at the same time, is not changed.
func TestNew_unknownKinds(t *testing.T) {
	scheme := fixture.NewScheme()
	before := len(scheme.AllKnownTypes())
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c, tracker := mustFake(t, Options{
				Scheme: scheme, Given: []client.Object{
					newGadget("given"),
				}, StatusSubresources: []client.Object{newGadget("")}, Realistic: i%2 == 0,
			})
			if err := tracker.Add(newGadget("added")); err != nil {
				t.Fatal(err)
			}
			created := newGadget("created")
			if err := c.Create(t.Context(), created); err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(created.Object, "ready", "status", "phase"); err != nil {
				t.Fatal(err)
			}
			if err := c.Status().Update(t.Context(), created); err != nil {
				t.Fatal(err)
			}
			applied := newGadget("applied")
			applied.Object["spec"] = map[string]any{"a": "1"}
			for range 2 {
				if err := c.Apply(
					t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("me"),
				); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Delete(t.Context(), newGadget("given")); err != nil {
				t.Fatal(err)
			}
			var got []string
			list := gadgetList()
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			for _, gadget := range list.Items {
				phase, _, _ := unstructured.NestedString(gadget.Object, "status", "phase")
				got = append(got, gadget.GetName()+phase)
				if status, ok := gadget.Object["status"]; ok && status == nil {
					t.Errorf("%s has null for a status", gadget.GetName())
				}
			}
			if diff := cmp.Diff([]string{"added", "applied", "createdready"}, got); diff != "" {
				t.Errorf("gadgets (-want +got):\n%s", diff)
			}
			metadata := &metav1.PartialObjectMetadataList{}
			metadata.SetGroupVersionKind(list.GroupVersionKind())
			if err := c.List(t.Context(), metadata); err != nil || len(metadata.Items) != 3 {
				t.Errorf("%d items, error = %v", len(metadata.Items), err)
			}
			if c.Scheme() != scheme {
				t.Error("the client has another scheme")
			}
			if after := len(scheme.AllKnownTypes()); after != before {
				t.Errorf("the scheme has %d kinds, %d before", after, before)
			}
		})
	}
}

// A typed and an unstructured object of the same kind are the same object.
func TestNew_mixedTypes(t *testing.T) {
	c, _ := mustFake(t, Options{})
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"fields": map[string]any{"a": "1"}}}}
	u.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
	u.SetNamespace("my-namespace")
	u.SetName("one")
	if err := c.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	list := &fixture.ResourceList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].Spec.Fields["a"] != "1" {
		t.Errorf("items = %v, error = %v", list.Items, err)
	}
}
