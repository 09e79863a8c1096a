// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Registry has the kinds that are served. It is immutable and safe for concurrent use.
type Registry struct {
	scheme *runtime.Scheme
	kinds  map[schema.GroupVersionKind]*Kind
	sorted []*Kind // by group, version and kind
	plural map[schema.GroupVersionResource]*Kind
	mapper *meta.DefaultRESTMapper
	// compiled are the kinds of definitions that a server has stored.
	compiled map[definitionKey][]*Kind
}

// definitionKey identifies the specification of a stored definition.
type definitionKey struct {
	uid        types.UID
	generation int64
}

// NewRegistry returns a registry of the built-in kinds, of all served versions of the definitions, and of all other
// kinds in the scheme. The error lists every definition that cannot be served.
func NewRegistry(scheme *runtime.Scheme, crds ...*apiextensionsv1.CustomResourceDefinition) (*Registry, error) {
	return newRegistry(scheme, nil, crds)
}

// With returns a registry with the same scheme and other definitions, which a server has stored. Those that have not
// changed are not compiled again.
func (r *Registry) With(crds ...*apiextensionsv1.CustomResourceDefinition) (*Registry, error) {
	return newRegistry(r.scheme, r.compiled, crds)
}

func newRegistry(
	scheme *runtime.Scheme, compiled map[definitionKey][]*Kind, crds []*apiextensionsv1.CustomResourceDefinition,
) (*Registry, error) {
	r := &Registry{
		scheme: scheme, kinds: map[schema.GroupVersionKind]*Kind{}, compiled: map[definitionKey][]*Kind{},
	}
	for gvk, b := range builtins() {
		r.add(newBuiltin(gvk, b))
	}
	var errs []error
	defined := map[schema.GroupKind]bool{}
	for _, crd := range crds {
		key := definitionKey{crd.UID, crd.Generation}
		kinds, err := compiled[key], error(nil)
		if kinds == nil || key.uid == "" {
			kinds, err = newDefined(crd)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("custom resource definition %s: %w", crd.Name, err))
		}
		r.compiled[key] = kinds
		for _, k := range kinds {
			if defined[k.GroupKind()] = true; r.kinds[k.GroupVersionKind] != nil {
				errs = append(
					errs, fmt.Errorf("custom resource definition %s: %s is defined already", crd.Name, k.GroupVersionKind),
				)
				continue
			}
			r.add(k)
		}
	}
	for gvk, t := range scheme.AllKnownTypes() {
		if r.kinds[gvk] == nil && !builtinGroups()[gvk.Group] && !defined[gvk.GroupKind()] &&
			gvk.Version != runtime.APIVersionInternal && isObject(t) {
			r.add(newUndefined(gvk, t))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r.sorted = slices.SortedFunc(maps.Values(r.kinds), func(a, b *Kind) int {
		return strings.Compare(a.String(), b.String())
	})
	r.mapper = newMapper(r.sorted)
	r.plural = make(map[schema.GroupVersionResource]*Kind, len(r.sorted))
	for _, k := range r.sorted {
		r.plural[k.GroupVersion().WithResource(k.Plural)] = k
	}
	return r, nil
}

func (r *Registry) add(k *Kind) {
	t := r.scheme.AllKnownTypes()[k.GroupVersionKind]
	if !k.Custom && k.layout.goType != t {
		k.rules = &convertedRules{rules: k.rules, gvk: k.GroupVersionKind, goType: k.layout.goType}
	}
	if k.layout = nil; t != nil {
		k.layout = newLayout(t)
	}
	if !k.unserved {
		r.kinds[k.GroupVersionKind] = k
	}
}

// Scheme returns the scheme of the registry.
func (r *Registry) Scheme() *runtime.Scheme {
	return r.scheme
}

// For returns a kind, and reports whether it is served.
func (r *Registry) For(gvk schema.GroupVersionKind) (*Kind, bool) {
	k, ok := r.kinds[gvk]
	return k, ok
}

// Without returns a registry that serves no version of a kind.
func (r *Registry) Without(kind schema.GroupKind) *Registry {
	without := *r
	of := func(k *Kind) bool { return k.GroupKind() == kind }
	without.kinds, without.plural = maps.Clone(r.kinds), maps.Clone(r.plural)
	maps.DeleteFunc(without.kinds, func(_ schema.GroupVersionKind, k *Kind) bool { return of(k) })
	maps.DeleteFunc(without.plural, func(_ schema.GroupVersionResource, k *Kind) bool { return of(k) })
	without.sorted = slices.DeleteFunc(slices.Clone(r.sorted), of)
	without.mapper = newMapper(without.sorted)
	return &without
}

// ForResource returns the kind of a resource, and reports whether it is served. Unlike in a mapper, an empty group is
// the core group.
func (r *Registry) ForResource(resource schema.GroupVersionResource) (*Kind, bool) {
	k, ok := r.plural[resource]
	return k, ok
}

// Kinds returns all kinds, sorted by group, version and kind.
// The slice must not be changed.
func (r *Registry) Kinds() []*Kind { return r.sorted }

// Mapper returns a RESTMapper for all served kinds.
func (r *Registry) Mapper() meta.RESTMapper {
	return r.mapper
}

func newMapper(kinds []*Kind) *meta.DefaultRESTMapper {
	mapper := meta.NewDefaultRESTMapper(preferred(kinds))
	for _, k := range kinds {
		scope := meta.RESTScopeRoot
		if k.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(
			k.GroupVersionKind, k.GroupVersion().WithResource(k.Plural), k.GroupVersion().WithResource(k.Singular), scope,
		)
		// The mapper of client-go knows lists, too. Controllers ask it for their scope.
		mapper.Add(k.GroupVersion().WithKind(k.Kind+"List"), scope)
	}
	return mapper
}

// preferred returns the group versions of kinds, stable and newer versions first: a mapper looks for a kind without a
// version in this order.
func preferred(kinds []*Kind) []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, k := range kinds {
		if !slices.Contains(versions, k.GroupVersion()) {
			versions = append(versions, k.GroupVersion())
		}
	}
	slices.SortStableFunc(versions, func(a, b schema.GroupVersion) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	return versions
}

// isObject reports whether a type in a scheme is a kind of objects, rather than of lists, options or metadata.
func isObject(t reflect.Type) bool {
	field, ok := t.FieldByName("ObjectMeta")
	return ok && field.Anonymous && reflect.PointerTo(t).Implements(reflect.TypeFor[client.Object]()) &&
		t.PkgPath() != "k8s.io/apimachinery/pkg/apis/meta/v1"
}
