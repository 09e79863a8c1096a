// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/memapi/kinds"
)

// Documents are the OpenAPI v3 documents of a server, one for each group and version. They are created when they are
// first needed. They are not safe for concurrent use.
type Documents struct {
	registry  *kinds.Registry
	documents map[schema.GroupVersion]map[string]any
	revision  int
}

// NewDocuments returns the documents of the kinds in a registry.
func NewDocuments(registry *kinds.Registry) *Documents {
	d := &Documents{}
	d.Reset(registry)
	return d
}

// Reset replaces the registry.
func (d *Documents) Reset(registry *kinds.Registry) {
	d.registry, d.documents = registry, map[schema.GroupVersion]map[string]any{}
	d.revision++
}

// find returns the document of a path below /openapi, or nil.
func (d *Documents) find(path []string) any {
	if path[0] != "v3" {
		return nil
	}
	if len(path) == 1 {
		return d.index()
	}
	var group schema.GroupVersion
	switch {
	case path[1] == "api" && len(path) == 3:
		group.Version = path[2]
	case path[1] == "apis" && len(path) == 4:
		group.Group, group.Version = path[2], path[3]
	default:
		return nil
	}
	if document := d.documents[group]; document != nil {
		return document
	}
	document := d.document(group)
	if document == nil {
		return nil
	}
	d.documents[group] = document
	return document
}

// index returns the URL of each document. It contains a hash that changes with the document, as clients require.
func (d *Documents) index() any {
	paths := map[string]any{}
	for _, kind := range d.registry.Kinds() {
		path := pathOf(kind.GroupVersion())
		hash := fnv.New64a()
		_, _ = fmt.Fprintf(hash, "%s %d", path, d.revision)
		paths[path] = map[string]any{
			"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%016X", path, hash.Sum64()),
		}
	}
	return map[string]any{"paths": paths}
}

func pathOf(group schema.GroupVersion) string {
	if group.Group == "" {
		return "api/" + group.Version
	}
	return "apis/" + group.String()
}

// document returns the document of a group and version, or nil if it has no kinds.
func (d *Documents) document(group schema.GroupVersion) map[string]any {
	paths, m := map[string]any{}, models{}
	for _, kind := range d.registry.Kinds() {
		if kind.GroupVersion() != group {
			continue
		}
		root := "/" + pathOf(group) + "/"
		if kind.Namespaced {
			paths[root+kind.Plural] = map[string]any{"get": operation(kind, "list", nil)}
			root += "namespaces/{namespace}/"
		}
		all := root + kind.Plural
		paths[all] = map[string]any{
			"get": operation(kind, "list", nil), "post": operation(kind, "post", writeParameters),
			"delete": operation(kind, "deletecollection", nil),
		}
		paths[all+"/{name}"] = map[string]any{
			"get": operation(kind, "get", nil), "put": operation(kind, "put", writeParameters),
			"patch":  operation(kind, "patch", append([]string{"force"}, writeParameters...)),
			"delete": operation(kind, "delete", nil),
		}
		m.addKind(d.registry.Scheme(), kind)
	}
	if len(paths) == 0 {
		return nil
	}
	return map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": serverVersion.GitVersion},
		"paths": paths, "components": map[string]any{"schemas": m},
	}
}

var writeParameters = []string{"dryRun", "fieldManager", "fieldValidation"}

// operation returns the description of an operation, with its query parameters.
func operation(kind *kinds.Kind, action string, parameters []string) map[string]any {
	found := []any{}
	for _, name := range parameters {
		found = append(found, map[string]any{
			"name": name, "in": "query", "schema": map[string]any{"type": "string", "uniqueItems": true},
		})
	}
	return map[string]any{
		"operationId": strings.ToLower(action) + kind.Kind, "parameters": found,
		"responses": map[string]any{"200": map[string]any{
			"description": "OK", "content": map[string]any{"application/json": map[string]any{
				"schema": map[string]any{"$ref": reference + modelName(kind)},
			}},
		}},
		"x-kubernetes-action":             action,
		"x-kubernetes-group-version-kind": groupVersionKind(kind),
	}
}

func groupVersionKind(kind *kinds.Kind) map[string]any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}
