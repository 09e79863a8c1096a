// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

	"trueup.dev/internal/fixture"
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

func mustFake(t testing.TB, o fakeOptions) (client.WithWatch, clientgotesting.ObjectTracker) {
	t.Helper()
	if o.scheme == nil {
		o.scheme = fixture.NewScheme()
	}
	c, tracker, err := newFake(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, tracker
}

func TestNewFake_problems(t *testing.T) {
	terminating := &corev1.ConfigMap{ObjectMeta: objectMeta("terminating")}
	terminating.DeletionTimestamp = new(metav1.Now())
	finalized := terminating.DeepCopy()
	finalized.Name, finalized.Finalizers = "finalized", []string{"example.com/wait"}
	tests := map[string]struct {
		config ExpectConfig
		// want are the beginnings of lines.
		want []string
	}{
		"none": {ExpectConfig{GivenObjects: []client.Object{
			&corev1.ConfigMap{ObjectMeta: objectMeta("one")}, &corev1.ConfigMap{ObjectMeta: objectMeta("two")},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, &corev1.Secret{ObjectMeta: objectMeta("one")},
			newGadget("one"), finalized,
		}}, []string{"<nil>"}},
		"objects": {
			ExpectConfig{
				GivenObjects: []client.Object{
					&corev1.ConfigMap{ObjectMeta: objectMeta("one")},
					&corev1.Secret{ObjectMeta: objectMeta("one")},
					&corev1.ConfigMap{ObjectMeta: objectMeta("one")},
					terminating,
				},
				APIGivenObjects: []client.Object{nil, &fixture.Duck{ObjectMeta: objectMeta("one")}},
			},
			[]string{
				"ExpectConfig cannot be used:",
				"GivenObjects[2]: ConfigMap my-namespace/one is the same object as [0]",
				"GivenObjects[3]: ConfigMap my-namespace/terminating has a deletion timestamp but no finalizers, so it would be " +
					"gone already",
				"APIGivenObjects[0]: is nil",
				"APIGivenObjects[1]: the kind of *fixture.Duck is neither in the Scheme nor set on the object",
			},
		},
		"no builder": {
			ExpectConfig{WithClientBuilder: func(*fake.ClientBuilder) *fake.ClientBuilder { return nil }},
			[]string{"ExpectConfig cannot be used:", "WithClientBuilder returns nil"},
		},
		"builder": {
			ExpectConfig{
				WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjects(terminating) },
			},
			[]string{"ExpectConfig cannot be used:", "unable to build the fake client: failed to add object"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.config.Scheme = fixture.NewScheme()
			_, err := test.config.build()
			got := strings.Split(fmt.Sprint(err), "\n")
			if len(got) != len(test.want) {
				t.Fatalf("error = %v", err)
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("line %d = %q, want %q", i, got[i], want)
				}
			}
		})
	}
}

// Mere metadata is an object of its kind, and adds nothing to the scheme.
func TestNewFake_metadata(t *testing.T) {
	config := &ExpectConfig{Scheme: fixture.NewScheme()}
	kinds := len(config.Scheme.AllKnownTypes())
	for _, kind := range []schema.GroupVersionKind{
		newGadget("").GroupVersionKind(), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	} {
		metadata := &metav1.PartialObjectMetadata{ObjectMeta: objectMeta("one")}
		metadata.SetGroupVersionKind(kind)
		config.GivenObjects = append(config.GivenObjects, metadata)
	}
	c := config.Config()
	gadgets, configMaps := gadgetList(), &corev1.ConfigMapList{}
	if err := errors.Join(c.List(t.Context(), gadgets), c.List(t.Context(), configMaps)); err != nil {
		t.Fatal(err)
	}
	if len(gadgets.Items) != 1 || len(configMaps.Items) != 1 {
		t.Errorf("gadgets = %v, config maps = %v", gadgets.Items, configMaps.Items)
	}
	if after := len(config.Scheme.AllKnownTypes()); after != kinds {
		t.Errorf("the scheme has %d kinds, %d before", after, kinds)
	}
}

func TestNewFake_builder(t *testing.T) {
	var intercepted []string
	mapper := meta.NewDefaultRESTMapper(nil)
	options := fakeOptions{
		mapper: meta.NewDefaultRESTMapper(nil),
		given:  []client.Object{&corev1.ConfigMap{ObjectMeta: objectMeta("one")}, newGadget("one")},
		build: func(b *fake.ClientBuilder) *fake.ClientBuilder {
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

	options.build = nil
	if c, _ := mustFake(t, options); c.RESTMapper() != options.mapper {
		t.Error("the mapper of the options is not used")
	}
}

// A tracker of the builder is used for all kinds.
func TestNewFake_trackerOfTheBuilder(t *testing.T) {
	for _, given := range []bool{false, true} {
		t.Run(fmt.Sprintf("given=%t", given), func(t *testing.T) {
			scheme := fixture.NewScheme()
			tracker := clientgotesting.NewObjectTracker(scheme, nil)
			options := fakeOptions{
				scheme: scheme, build: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjectTracker(tracker) },
			}
			if given {
				options.given = []client.Object{newGadget("given")}
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

// Kinds that the scheme does not have can be used, and the scheme, which other tests use at the same time, stays as it
// was.
func TestNewFake_unknownKinds(t *testing.T) {
	scheme := fixture.NewScheme()
	before := len(scheme.AllKnownTypes())
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c, tracker := mustFake(t, fakeOptions{
				scheme: scheme, given: []client.Object{
					newGadget("given"),
				}, statusSubResources: []client.Object{newGadget("")}, realistic: i%2 == 0,
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

// Typed and unstructured objects of the same kind are the same.
func TestNewFake_mixedTypes(t *testing.T) {
	c, _ := mustFake(t, fakeOptions{})
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
