// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

func TestExpectConfig_givenProblems(t *testing.T) {
	terminating := &corev1.ConfigMap{ObjectMeta: objectMeta("terminating")}
	terminating.DeletionTimestamp = new(metav1.Now())
	finalized := terminating.DeepCopy()
	finalized.Name, finalized.Finalizers = "finalized", []string{"example.com/wait"}
	tests := map[string]struct {
		config ExpectConfig
		// want are the prefixes of the lines.
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
				"GivenObjects[3]: ConfigMap my-namespace/terminating has a deletion timestamp but no finalizers, so it would " +
					"no longer exist",
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

// Partial metadata is stored as an object of its kind, and does not change the scheme.
func TestExpectConfig_givenMetadata(t *testing.T) {
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
