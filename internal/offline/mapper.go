// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewMapper returns a mapper of all kinds, with guessed plurals. Kinds that the scheme does not know are namespaced.
func NewMapper(scheme *runtime.Scheme) meta.RESTMapper {
	return anyKind{testrestmapper.TestOnlyStaticRESTMapper(scheme)}
}

type anyKind struct{ meta.RESTMapper }

func (m anyKind) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	version := "v1"
	if len(versions) > 0 {
		version = versions[0]
	}
	gvk := kind.WithVersion(version)
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}, nil
}
