// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/memapi/kinds"
)

// target is what the path of a request names: the objects of a kind, in a namespace or in all, one object, or a
// subresource of it.
type target struct {
	kind                         *kinds.Kind
	namespace, name, subresource string
}

// split returns the segments of a path.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// targetOf parses the segments of a path.
func (t *Transport) targetOf(path []string) (target, error) {
	group, rest := schema.GroupVersion{}, path
	switch {
	case len(path) > 2 && path[0] == "api":
		group.Version, rest = path[1], path[2:]
	case len(path) > 3 && path[0] == "apis":
		group.Group, group.Version, rest = path[1], path[2], path[3:]
	default:
		return target{}, errNoPage
	}
	var found target
	// The subresources of a namespace have the form of a resource in it.
	if rest[0] == "namespaces" && len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
		found.namespace, rest = rest[1], rest[2:]
	}
	kind, ok := t.Registry.ForResource(group.WithResource(rest[0]))
	if !ok || len(rest) > 3 || found.namespace != "" && !kind.Namespaced {
		return target{}, errNoPage
	}
	found.kind = kind
	if len(rest) > 1 {
		found.name = rest[1]
	}
	if len(rest) > 2 {
		found.subresource = rest[2]
	}
	return found, nil
}

// object returns an object with the kind and the name of a target.
func (t target) object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(t.kind.GroupVersionKind)
	obj.SetNamespace(t.namespace)
	obj.SetName(t.name)
	return obj
}

// hasVersion reports whether a path is below that of a group and version that is served.
func (t *Transport) hasVersion(path []string) bool {
	switch {
	case len(path) > 1 && path[0] == "api":
		return t.resources(schema.GroupVersion{Version: path[1]}) != nil
	case len(path) > 2 && path[0] == "apis":
		return t.resources(schema.GroupVersion{Group: path[1], Version: path[2]}) != nil
	}
	return false
}
