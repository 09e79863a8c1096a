// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/offline"
)

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// kindSet has the kinds that overlays can write. The definition of a custom kind is read when it is first written.
type kindSet struct {
	cluster client.Client
	mapper  meta.RESTMapper

	mu       sync.Mutex
	registry *kinds.Registry
	applier  *apply.Applier
	defined  map[schema.GroupVersionKind]bool
	crds     []*apiextensionsv1.CustomResourceDefinition

	// namespaces are the reads of namespaces. Most plans write in the same ones.
	namespaces map[string]func() (*unstructured.Unstructured, error)
}

// mapper is the mapper of a cluster, with guesses for kinds that the cluster does not have: the version of a fake
// client may be empty. Requests for kinds that a real cluster does not have fail.
type mapper struct {
	meta.RESTMapper
	guess meta.RESTMapper
}

// RESTMapping implements [meta.RESTMapper].
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		return m.guess.RESTMapping(kind, versions...)
	}
	return mapping, err
}

// forget drops what is known about the objects of the cluster.
func (s *kindSet) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces = map[string]func() (*unstructured.Unstructured, error){}
}

// read returns an object of the cluster. A namespace is read once.
func (s *kindSet) read(ctx context.Context, id objectID) (*unstructured.Unstructured, error) {
	get := func() (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(id.kind)
		return u, s.cluster.Get(ctx, id.key, u)
	}
	if id.kind != namespaceKind {
		return get()
	}
	s.mu.Lock()
	if s.namespaces[id.key.Name] == nil {
		s.namespaces[id.key.Name] = sync.OnceValues(get)
	}
	get = s.namespaces[id.key.Name]
	s.mu.Unlock()
	u, err := get()
	if err != nil && apierrs.ReasonForError(err) == metav1.StatusReasonUnknown { // for example, ctx has ended
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.namespaces, id.key.Name)
	}
	return u, err
}

// withoutNamespaces reports whether the cluster is a fake one, which needs no namespaces: each other one has
// kube-system.
func (s *kindSet) withoutNamespaces(ctx context.Context) bool {
	_, err := s.read(ctx, objectID{namespaceKind, client.ObjectKey{Name: metav1.NamespaceSystem}})
	return apierrs.IsNotFound(err)
}

func newKindSet(cluster client.Client, scheme *runtime.Scheme) (*kindSet, error) {
	registry, err := kinds.NewRegistry(scheme)
	if err != nil {
		return nil, err
	}
	return &kindSet{
		cluster: cluster, mapper: mapper{cluster.RESTMapper(), offline.NewMapper(scheme)},
		registry: registry, applier: apply.New(registry), defined: map[schema.GroupVersionKind]bool{},
		namespaces: map[string]func() (*unstructured.Unstructured, error){},
	}, nil
}

// ensure returns the kinds, which include the given one, and what is not known about it.
func (s *kindSet) ensure(
	ctx context.Context, gvk schema.GroupVersionKind,
) (*kinds.Registry, *apply.Applier, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind, ok := s.registry.For(gvk); ok && !kind.Custom || s.defined[gvk] {
		return s.registry, s.applier, "", nil
	}
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, nil, "", err
	}
	crd, unknown := s.definition(ctx, mapping)
	registry, err := s.registry.With(append(s.crds, crd)...)
	if err != nil && unknown == "" {
		crd, unknown = opaque(mapping), fmt.Sprintf("the definition of %s cannot be used: %v", gvk.Kind, err)
		registry, err = s.registry.With(append(s.crds, crd)...)
	}
	if err != nil {
		return nil, nil, "", err
	}
	s.crds = append(s.crds, crd)
	s.registry, s.applier, s.defined[gvk] = registry, apply.New(registry), true
	return s.registry, s.applier, unknown, nil
}

// definition returns the definition of a kind with only the version that is used, or one that allows everything.
func (s *kindSet) definition(
	ctx context.Context, mapping *meta.RESTMapping,
) (*apiextensionsv1.CustomResourceDefinition, string) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(definitionKind)
	err := s.cluster.Get(ctx, client.ObjectKey{Name: mapping.Resource.GroupResource().String()}, u)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == mapping.GroupVersionKind.Version {
			v.Served, v.Storage = true, true
			crd.Spec.Versions, crd.Spec.Conversion = []apiextensionsv1.CustomResourceDefinitionVersion{v}, nil
			return crd, ""
		}
	}
	if err == nil {
		return opaque(mapping), ""
	}
	return opaque(mapping), fmt.Sprintf(
		"defaults and validation of %s: its CustomResourceDefinition cannot be read: %v", mapping.GroupVersionKind.Kind, err,
	)
}

// opaque returns a definition of a kind if only its name and its scope are known.
func opaque(mapping *meta.RESTMapping) *apiextensionsv1.CustomResourceDefinition {
	scope := apiextensionsv1.ClusterScoped
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		scope = apiextensionsv1.NamespaceScoped
	}
	gvk := mapping.GroupVersionKind
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: mapping.Resource.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: mapping.Resource.Resource, Kind: gvk.Kind, ListKind: gvk.Kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}
