// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
				"GivenObjects[3]: ConfigMap my-namespace/terminating has a deletion timestamp but no finalizers, so it would be gone already",
				"APIGivenObjects[0]: is nil",
				"APIGivenObjects[1]: the kind of *fixture.Duck is neither in the Scheme nor set on the object",
			},
		},
		"no builder": {
			ExpectConfig{WithClientBuilder: func(*fake.ClientBuilder) *fake.ClientBuilder { return nil }},
			[]string{"ExpectConfig cannot be used:", "WithClientBuilder returns nil"},
		},
		"builder": {
			ExpectConfig{WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjects(terminating) }},
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
	for _, kind := range []schema.GroupVersionKind{newGadget("").GroupVersionKind(), corev1.SchemeGroupVersion.WithKind("ConfigMap")} {
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
	if err := errors.Join(c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("two")}), c.Delete(t.Context(), newGadget("two"))); err != nil {
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
			options := fakeOptions{scheme: scheme, build: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjectTracker(tracker) }}
			if given {
				options.given = []client.Object{newGadget("given")}
			}
			c, _ := mustFake(t, options)
			if err := c.Create(t.Context(), newGadget("one")); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "my-namespace", Name: "given"}, newGadget("")); (err == nil) != given {
				t.Errorf("error = %v", err)
			}
			gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
			if _, err := tracker.Get(gadgets, "my-namespace", "one"); err != nil {
				t.Errorf("in the tracker: %v", err)
			}
		})
	}
}

// Kinds that the scheme does not have can be used, and the scheme, which other tests use at the same time, stays as it was.
func TestNewFake_unknownKinds(t *testing.T) {
	scheme := fixture.NewScheme()
	before := len(scheme.AllKnownTypes())
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c, tracker := mustFake(t, fakeOptions{
				scheme: scheme, given: []client.Object{newGadget("given")}, statusSubResources: []client.Object{newGadget("")}, realistic: i%2 == 0,
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
				if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("me")); err != nil {
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

func TestStore_addsLists(t *testing.T) {
	c, tracker := mustFake(t, fakeOptions{})
	if err := tracker.Add(&corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: objectMeta("one")}, {ObjectMeta: objectMeta("two")}}}); err != nil {
		t.Fatal(err)
	}
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("items = %v, error = %v", list.Items, err)
	}
}

// Objects are applied as they are passed: fields that are not set are not applied.
func TestStore_apply(t *testing.T) {
	for _, realistic := range []bool{false, true} {
		t.Run(fmt.Sprintf("realistic=%t", realistic), func(t *testing.T) {
			labels := map[string]string{"app": "one"}
			deployment := &appsv1.Deployment{ObjectMeta: objectMeta("one"), Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
			}}
			deployment.Status.Replicas = 2
			c, _ := mustFake(t, fakeOptions{given: []client.Object{deployment}, realistic: realistic})
			apply := func(content string) (err error) {
				u := &unstructured.Unstructured{}
				if err := u.UnmarshalJSON([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"my-namespace","name":"one"},` + content + `}`)); err != nil {
					return err
				}
				return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"), client.ForceOwnership)
			}
			if err := apply(`"spec":{"replicas":3},"status":{"replicas":7}`); err != nil {
				t.Fatal(err)
			}
			got := &appsv1.Deployment{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), got); err != nil {
				t.Fatal(err)
			}
			want := deployment.DeepCopy()
			want.ResourceVersion, want.Spec.Replicas, want.Generation = "1000", new(int32(3)), got.Generation
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := apply(`"metadata":{"namespace":"my-namespace","name":"one","resourceVersion":"7"}`); !apierrs.IsConflict(err) {
				t.Errorf("error of a stale resource version = %v", err)
			}
		})
	}
}

// A status that is no sub resource is applied with the rest.
func TestStore_applyStatus(t *testing.T) {
	for _, realistic := range []bool{false, true} {
		c, _ := mustFake(t, fakeOptions{realistic: realistic, given: []client.Object{&fixture.ResourceEmptyStatus{ObjectMeta: objectMeta("one")}}})
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"fields": map[string]any{"a": "1"}}}}
		obj.SetGroupVersionKind(fixture.GroupVersion.WithKind("ResourceEmptyStatus"))
		for _, name := range []string{"one", "two"} {
			obj.SetName(name)
			obj.SetNamespace("my-namespace")
			ac := client.ApplyConfigurationFromUnstructured(obj.DeepCopy())
			if err := c.Apply(t.Context(), ac, client.FieldOwner("me")); err != nil {
				t.Fatal(err)
			}
			got := &fixture.ResourceEmptyStatus{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), got); err != nil || got.Status.Fields["a"] != "1" {
				t.Errorf("realistic=%t: %s = %v, error = %v", realistic, name, got, err)
			}
		}
	}
}

// A status is not applied to what does not exist.
func TestStore_applyStatusOfMissing(t *testing.T) {
	for _, realistic := range []bool{false, true} {
		c, _ := mustFake(t, fakeOptions{realistic: realistic})
		ac := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "one"}, "status": map[string]any{"phase": "Running"},
		}})
		if err := c.Status().Apply(t.Context(), ac, client.FieldOwner("me")); !apierrs.IsNotFound(err) {
			t.Errorf("realistic=%t: error = %v", realistic, err)
		}
	}
}

// Options that somebody between client and store replaces do not stop an apply.
func TestStore_applyIntercepted(t *testing.T) {
	c, _ := mustFake(t, fakeOptions{build: func(b *fake.ClientBuilder) *fake.ClientBuilder {
		return b.WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
				return c.Apply(ctx, ac, client.FieldOwner("other"))
			},
		})
	}})
	for _, value := range []string{"1", "2"} {
		ac := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": map[string]any{"a": value},
		}})
		if err := c.Apply(t.Context(), ac, client.FieldOwner("me")); err != nil {
			t.Fatal(err)
		}
	}
	got := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "one"}, got); err != nil || got.Data["a"] != "2" {
		t.Errorf("got %v, error = %v", got.Data, err)
	}
}

// What is known here to have a status is what the fake client knows.
func TestKindsWithStatus(t *testing.T) {
	scheme := fixture.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, _ := mustFake(t, fakeOptions{scheme: scheme})
	kinds := 0
	for gvk := range scheme.AllKnownTypes() {
		goType, err := scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		obj, ok := goType.(client.Object)
		if gvks, _, _ := scheme.ObjectKinds(goType); !ok || len(gvks) != 1 {
			continue
		}
		kinds++
		obj.SetName("one")
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s: %v", gvk, err)
		}
		if has := c.Status().Update(t.Context(), obj) == nil; has != kindsWithStatus.Has(gvk) {
			t.Errorf("%s: has a status sub resource: %t", gvk, has)
		}
	}
	if kinds < 150 {
		t.Errorf("looked at %d kinds only", kinds)
	}
}
