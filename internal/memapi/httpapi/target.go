// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/serving/apipath"
)

// target is what the path of a request names: the objects of a kind, in a namespace or in all, one object, or a
// subresource of it.
type target struct {
	kind *kinds.Kind
	// The verb of the request, and what its path has. See [apipath.Request].
	verb, namespace, name, subresource string
}

// targetOf returns the target of a request, if the kind is served.
func (t *Transport) targetOf(r *http.Request) (target, error) {
	request, ok := apipath.Parse(r)
	if !ok || request.Rest != "" {
		return target{}, errNoPage
	}
	group := schema.GroupVersion{Group: request.Group, Version: request.Version}
	kind, ok := t.Registry.ForResource(group.WithResource(request.Resource))
	if !ok || request.Namespace != "" && !kind.Namespaced {
		return target{}, errNoPage
	}
	return target{kind, request.Verb, request.Namespace, request.Name, request.Subresource}, nil
}

// object returns an object with the kind and the name of a target.
func (t target) object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(t.kind.GroupVersionKind)
	obj.SetNamespace(t.namespace)
	obj.SetName(t.name)
	return obj
}

// hasVersion reports whether a path is below the path of a group and version that is served.
func (t *Transport) hasVersion(path []string) bool {
	switch {
	case len(path) > 1 && path[0] == "api":
		return t.resources(schema.GroupVersion{Version: path[1]}) != nil
	case len(path) > 2 && path[0] == "apis":
		return t.resources(schema.GroupVersion{Group: path[1], Version: path[2]}) != nil
	}
	return false
}
