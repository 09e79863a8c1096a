// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
)

// givenResources are served in two versions.
func givenResources() []*metav1.APIResourceList {
	return []*metav1.APIResourceList{
		{
			GroupVersion: "example.com/v1",
			APIResources: []metav1.APIResource{
				{Name: "resources", SingularName: "resource", Kind: "Resource", Namespaced: true},
				{Name: "resources/status", Kind: "Resource", Namespaced: true},
				{Name: "planets", Kind: "Planet"},
				{Name: "people", SingularName: "person", Group: "other.com", Version: "v2", Kind: "Person", Namespaced: true},
			},
		},
		{
			GroupVersion: "example.com/v1alpha1",
			APIResources: []metav1.APIResource{{Name: "planets", SingularName: "planet", Kind: "Planet"}},
		},
	}
}

func TestGivenAPIResources(t *testing.T) {
	given := givenResources()
	config := (&ExpectConfig{Scheme: assertScheme, GivenAPIResources: given}).Config()

	got, err := config.Discovery.ServerResourcesForGroupVersion("example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given[0], got); diff != "" {
		t.Errorf("discovered (-want +got):\n%s", diff)
	}
	if got == given[0] {
		t.Error("discovery has the list of the author, not a copy")
	}
	if _, err := config.Discovery.ServerResourcesForGroupVersion("example.com/v2"); !apierrs.IsNotFound(err) {
		t.Errorf("got error %v for a version that is not served", err)
	}

	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for resource, want := range map[schema.GroupVersionResource]schema.GroupVersionKind{
		group.WithResource("resources"):                         group.WithKind("Resource"),
		group.WithResource("resource"):                          group.WithKind("Resource"),
		group.WithResource("planet"):                            group.WithKind("Planet"),
		{Group: "other.com", Version: "v2", Resource: "people"}: {Group: "other.com", Version: "v2", Kind: "Person"},
		{Group: "other.com", Version: "v2", Resource: "person"}: {Group: "other.com", Version: "v2", Kind: "Person"},
		{
			Group: group.Group, Version: "v1alpha1", Resource: "planets",
		}: {Group: group.Group, Version: "v1alpha1", Kind: "Planet"},
	} {
		if got, err := config.RESTMapper().KindFor(resource); err != nil || got != want {
			t.Errorf("%s is mapped to %s, want %s: %v", resource, got, want, err)
		}
	}
	for kind, want := range map[string]*meta.RESTMapping{
		"Resource": {
			Resource: group.WithResource("resources"), GroupVersionKind: group.WithKind("Resource"),
			Scope: meta.RESTScopeNamespace,
		},
		"Planet": {
			Resource: group.WithResource("planets"), GroupVersionKind: group.WithKind("Planet"), Scope: meta.RESTScopeRoot,
		},
	} {
		got, err := config.RESTMapper().RESTMapping(group.WithKind(kind).GroupKind())
		if err != nil {
			t.Fatal(err)
		}
		if *got != *want {
			t.Errorf("%s is mapped to %v, want %v", kind, got, want)
		}
	}
}

// A mapper of the author's own is not replaced.
func TestMapperOfClientBuilder(t *testing.T) {
	gvk := fixture.GroupVersion.WithKind("Resource")
	config := (&ExpectConfig{
		Scheme:            assertScheme,
		GivenAPIResources: givenResources(),
		WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(gvk, meta.RESTScopeRoot)
			return b.WithRESTMapper(mapper)
		},
	}).Config()
	if namespaced, err := config.IsObjectNamespaced(&fixture.Resource{}); namespaced || err != nil {
		t.Errorf("namespaced %t and error %v, want what the mapper says: false", namespaced, err)
	}
	if _, err := config.RESTMapper().RESTMapping(
		schema.GroupKind{Group: "example.com", Kind: "Planet"}, "v1",
	); !meta.IsNoMatchError(err) {
		t.Errorf("got error %v for a kind that the mapper does not know", err)
	}
}
