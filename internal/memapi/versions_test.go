// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

// GadgetV1 is the first version of a gadget, see gadgets.
type GadgetV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GadgetSpecV1 `json:"spec,omitzero"`
}

type GadgetSpecV1 struct {
	Size  int    `json:"size,omitempty"`
	Color string `json:"color,omitempty"`
}

func (g *GadgetV1) DeepCopyObject() runtime.Object {
	copied := *g
	g.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// GadgetV2 is the second version.
type GadgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GadgetSpecV2 `json:"spec,omitzero"`
}

type GadgetSpecV2 struct {
	Dimensions Dimensions `json:"dimensions,omitzero"`
	Color      string     `json:"color,omitempty"`
	Weight     int        `json:"weight,omitempty"`
}

type Dimensions struct {
	Size int `json:"size,omitempty"`
}

func (g *GadgetV2) DeepCopyObject() runtime.Object {
	copied := *g
	g.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

var (
	gadgetV1 = schema.GroupVersionKind{Group: "webhook.example.com", Version: "v1", Kind: "Gadget"}
	gadgetV2 = schema.GroupVersionKind{Group: "webhook.example.com", Version: "v2", Kind: "Gadget"}
)

// converting returns a definition of gadgets that stores a version. It has only the given versions.
func converting(t testing.TB, storage string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := gadgetDefinition(t, "webhook")
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	var kept []apiextensionsv1.CustomResourceDefinitionVersion
	for _, v := range crd.Spec.Versions {
		if v.Storage = v.Name == storage; strings.Contains(strings.Join(versions, " "), v.Name) {
			kept = append(kept, v)
		}
	}
	crd.Spec.Versions = kept
	return crd
}

func gadgetRegistry(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) *kinds.Registry {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(gadgetV1, &GadgetV1{})
	scheme.AddKnownTypeWithName(gadgetV2, &GadgetV2{})
	registry, err := kinds.NewRegistry(scheme, crd)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// newVersions returns a world with gadgets.
func newVersions(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, shown string) *world {
	t.Helper()
	registry := gadgetRegistry(t, crd)
	w := &world{TB: t, now: start}
	w.Server = memapi.New(memapi.Options{
		Registry: registry, Applier: apply.New(registry), Conversion: convertReview, Seed: 1,
		Versions: map[schema.GroupKind]string{gadgetV1.GroupKind(): shown},
	})
	w.c = w.Client("tester")
	return w
}

func newGadgetV1(name string) *GadgetV1 {
	return &GadgetV1{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: GadgetSpecV1{Size: 3}}
}

func TestVersionsOfTypedObjects(t *testing.T) {
	w := newVersions(t, converting(t, "v2", "v1", "v2"), "")
	one := newGadgetV1("a")
	w.create(one)
	two := &GadgetV2{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	w.must(w.c.Get(t.Context(), client.ObjectKeyFromObject(one), two))
	w.equal("spec", GadgetSpecV2{Dimensions: Dimensions{3}, Color: "red", Weight: 5}, two.Spec)
	if one.UID != two.UID || one.ResourceVersion != two.ResourceVersion {
		t.Errorf("metadata differs: %v, %v", one.ObjectMeta, two.ObjectMeta)
	}

	two.Spec.Dimensions.Size = 4
	w.must(w.c.Update(t.Context(), two))
	w.wantError(w.c.Update(t.Context(), one), 409, metav1.StatusReasonConflict, "Operation cannot be fulfilled")
	w.must(w.c.Get(t.Context(), client.ObjectKeyFromObject(one), one))
	w.equal("spec", GadgetSpecV1{Size: 4, Color: "red"}, one.Spec)
	w.equal("generation", int64(2), one.Generation)
	before := w.Version()
	w.must(w.c.Update(t.Context(), one))
	w.equal("version after an update without a change", before, w.Version())

	config := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "webhook.example.com/v2", "kind": "Gadget",
		"metadata": map[string]any{"namespace": "default", "name": "a"}, "spec": map[string]any{"weight": int64(7)},
	}}
	w.must(w.c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(&config), client.FieldOwner("a")))
	w.must(w.c.Get(t.Context(), client.ObjectKeyFromObject(one), one))
	w.equal("annotation", "+++++++", one.Annotations[weightAnnotation])

	w.equal("kinds", []schema.GroupVersionKind{gadgetV2}, w.Kinds()[1:])
	w.equal("stored in v1", 4, w.Get(gadgetV1, client.ObjectKeyFromObject(one)).(*GadgetV1).Spec.Size)
	w.equal("objects", 1, len(w.List(gadgetV1)))
}

func TestVersionOfEvents(t *testing.T) {
	for _, shown := range []string{"", "v1", "v2"} {
		t.Run(shown, func(t *testing.T) {
			w := newVersions(t, converting(t, "v2", "v1", "v2"), shown)
			w.create(newGadgetV1("a"))
			events := w.Events(1)
			if len(events) != 1 {
				t.Fatalf("%d events", len(events))
			}
			kind := gadgetV2
			if shown == "v1" {
				kind = gadgetV1
			}
			w.equal("kind", kind, events[0].Kind)
			one, ok := w.In(gadgetV1, events[0])
			if !ok {
				t.Fatal("not an event of v1")
			}
			two, ok := w.In(gadgetV2, events[0])
			if !ok {
				t.Fatal("not an event of v2")
			}
			w.equal("size in v1", 3, one.Object.(*GadgetV1).Spec.Size)
			w.equal("size in v2", 3, two.Object.(*GadgetV2).Spec.Dimensions.Size)
			w.Show(gadgetV1)
			w.create(newGadgetV1("b"))
			w.equal("kind of a later event", gadgetV1, w.Events(2)[0].Kind)
			if _, ok := w.In(corev1.SchemeGroupVersion.WithKind("Pod"), events[0]); ok {
				t.Error("an event of a Pod")
			}
		})
	}
}

// TestOwnerOfAnyVersion deletes an owner that its dependent names in another version than the version of the storage.
func TestOwnerOfAnyVersion(t *testing.T) {
	w := newVersions(t, converting(t, "v2", "v1", "v2"), "")
	owner := newGadgetV1("a")
	w.create(owner)
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: gadgetV1.GroupVersion().String(), Kind: "Gadget", Name: "a", UID: owner.UID},
		},
	}}
	w.create(dependent)
	w.equal("garbage", 0, len(w.Garbage()))
	w.must(w.c.Delete(t.Context(), owner))
	if garbage := w.Garbage(); len(garbage) != 1 || garbage[0].Type != memapi.DeleteOrphan {
		t.Fatalf("garbage = %v", garbage)
	}
}

func TestFailedConversion(t *testing.T) {
	w := newVersions(t, converting(t, "v2", "v1", "v2"), "v1")
	w.create(&GadgetV2{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: GadgetSpecV2{Color: "fail"},
	})
	if err := w.FailedConversion(); err == nil || !strings.Contains(err.Error(), "no such color") {
		t.Errorf("failed conversion = %v", err)
	}
	w.equal("shown", "fail", w.Events(1)[0].Object.(*GadgetV1).Spec.Color)
}

// TestRedefine changes the versions of a kind that has objects.
func TestRedefine(t *testing.T) {
	w := newVersions(t, converting(t, "v1", "v1"), "")
	old := newGadgetV1("a")
	w.create(old)
	events, err := w.c.Watch(t.Context(), listOf(gadgetV1), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: old.ResourceVersion},
	})
	w.must(err)
	redefine := func(crd *apiextensionsv1.CustomResourceDefinition) error {
		registry := gadgetRegistry(t, crd)
		return w.Redefine(registry, apply.New(registry))
	}
	w.must(redefine(converting(t, "v2", "v1", "v2")))

	two := &GadgetV2{}
	w.must(w.c.Get(t.Context(), client.ObjectKeyFromObject(old), two))
	// the default of v2 is not set: the object is stored as v1
	w.equal("spec", GadgetSpecV2{Dimensions: Dimensions{3}, Color: "red"}, two.Spec)
	w.equal("version", old.ResourceVersion, two.ResourceVersion)
	if err := redefine(converting(t, "v2", "v2")); err == nil || !strings.Contains(err.Error(), `Invalid value: "v1"`) {
		t.Errorf("error = %v", err)
	}
	before := w.Version()
	w.must(w.c.Update(t.Context(), two))
	w.equal("version after the migration", before+1, w.Version())
	w.must(w.c.Update(t.Context(), two))
	w.equal("version after another update", before+1, w.Version())
	w.must(w.c.Get(t.Context(), client.ObjectKeyFromObject(old), two))
	w.equal("weight by default", 5, two.Spec.Weight)
	e := <-events.ResultChan()
	w.equal("event of the old version", "webhook.example.com/v1", e.Object.(*unstructured.Unstructured).GetAPIVersion())
	w.equal("kind of events", gadgetV2, w.Events(before)[0].Kind)
	w.equal("UID", old.UID, two.UID)

	w.must(redefine(converting(t, "v1", "v1", "v2"))) // back
	w.must(w.c.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	w.equal("spec", GadgetSpecV1{Size: 3, Color: "red"}, old.Spec)
	w.must(w.c.Delete(t.Context(), old))
	w.equal("objects", 0, len(w.List(gadgetV2)))
}

func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	return list
}
