// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// contentKind is the kind of content that a schema describes.
type contentKind int

const (
	opaqueKind contentKind = iota
	scalarKind
	objectKind
	mapKind
	listKind
)

func kindOf(schema *apiextensionsv1.JSONSchemaProps) contentKind {
	switch {
	case isOpaque(schema):
		return opaqueKind
	case schema.XIntOrString:
		return scalarKind
	case len(schema.Properties) > 0:
		return objectKind
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return mapKind
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		return listKind
	case schema.Type == "integer", schema.Type == "number", schema.Type == "boolean", schema.Type == "string":
		return scalarKind
	default:
		return opaqueKind
	}
}

// shape is a well-known type of Kubernetes that is part of many schemas. It has far more fields than controllers treat
// in different ways, so that only some are changed.
type shape struct {
	// has are fields that identify the type.
	has []string
	// change are the fields that are changed, and sample are the fields of a sample besides the required ones.
	change, sample []string
}

var shapes = []shape{
	{ // metadata
		has:    []string{"annotations", "labels", "ownerReferences"},
		change: []string{"annotations", "labels"}, sample: []string{"labels"},
	},
	{ // pod spec
		has: []string{"containers", "nodeSelector", "restartPolicy"},
		change: []string{
			"containers", "nodeSelector", "priorityClassName", "serviceAccountName", "terminationGracePeriodSeconds",
			"tolerations",
		},
	},
	{ // container
		has:    []string{"image", "imagePullPolicy", "livenessProbe"},
		change: []string{"args", "command", "env", "image", "ports", "resources"}, sample: []string{"image"},
	},
	{ // environment variable
		has: []string{"name", "value", "valueFrom"}, change: []string{"name", "value"}, sample: []string{"value"},
	},
	{ // toleration
		has:    []string{"effect", "key", "operator", "tolerationSeconds"},
		change: []string{"key", "value"}, sample: []string{"key", "value"},
	},
	{has: []string{"containerPort", "hostPort"}, change: []string{"containerPort", "name"}},
	{has: []string{"limits", "requests"}, change: []string{"limits", "requests"}},
	{has: []string{"matchExpressions", "matchLabels"}, change: []string{"matchLabels"}, sample: []string{"matchLabels"}},
	{has: []string{"nodeAffinity", "podAffinity"}},
	{has: []string{"runAsNonRoot", "runAsUser"}, change: []string{"runAsNonRoot", "runAsUser"}},
	{has: []string{"exec", "httpGet", "tcpSocket"}},
	{has: []string{"configMap", "emptyDir", "persistentVolumeClaim"}},
	{ // spec of a claim
		has:    []string{"accessModes", "storageClassName", "volumeName"},
		change: []string{"resources", "storageClassName"}, sample: []string{"accessModes", "resources"},
	},
}

func shapeOf(schema *apiextensionsv1.JSONSchemaProps) *shape {
	for i := range shapes {
		if !slices.ContainsFunc(shapes[i].has, func(name string) bool {
			_, ok := schema.Properties[name]
			return !ok
		}) {
			return &shapes[i]
		}
	}
	return nil
}

// isOpaque reports whether content is not changed: it has no schema, or is a well-known type without fields to change.
func isOpaque(schema *apiextensionsv1.JSONSchemaProps) bool {
	if schema.XEmbeddedResource || schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields &&
		len(schema.Properties) == 0 {
		return true
	}
	s := shapeOf(schema)
	return s != nil && len(s.change) == 0
}

// fieldsOf lists the fields of an object that are changed.
func fieldsOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	names := sortedKeys(schema.Properties)
	if s := shapeOf(schema); s != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(s.change, name) })
	}
	return names
}
