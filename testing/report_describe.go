// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// describe returns a line about a value that is missing or not expected.
func (c *ExpectConfig) describe(v any) string {
	switch v := v.(type) {
	case client.Object:
		name := v.GetName()
		if name == "" && v.GetGenerateName() != "" {
			name = v.GetGenerateName() + "*"
		}
		kind := c.kindOf(v)
		if kind.Empty() {
			kind.Kind = fmt.Sprintf("%T", v)
		}
		return target(kind, "", v.GetNamespace(), name)
	case Event:
		about := target(v.GroupVersionKind().GroupKind(), "", v.Namespace, v.Name)
		return strings.Join(
			strings.Fields(fmt.Sprintf("%s %s on %s: %s %s%s", v.Type, v.Reason, about, v.Action, v.Message, v.Note)), " ",
		)
	case PatchRef:
		return fmt.Sprintf(
			"%s: %s %s", target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, v.SubResource, v.Namespace, v.Name), v.PatchType,
			v.Patch,
		)
	case ApplyRef:
		return target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, "", v.Namespace, v.Name)
	case DeleteRef:
		return target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, "", v.Namespace, v.Name)
	case DeleteCollectionRef:
		all := target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, "", v.Namespace, "*")
		if v.Labels != nil && !v.Labels.Empty() {
			all += fmt.Sprintf(" with labels %s", v.Labels)
		}
		if v.Fields != nil && !v.Fields.Empty() {
			all += fmt.Sprintf(" with fields %s", v.Fields)
		}
		return all
	case SubResourceRef:
		return v.Verb + " " + target(schema.GroupKind{Group: v.Group, Kind: v.Kind}, v.SubResource, v.Namespace, v.Name)
	default:
		// The text of a TrackRequest must not change: users' tests compare it.
		return fmt.Sprint(v)
	}
}

// kindOf returns the kind of an object, or an empty one if it is unknown.
func (c *ExpectConfig) kindOf(obj client.Object) schema.GroupKind {
	if gvk, err := apiutil.GVKForObject(obj, c.Scheme); err == nil {
		return gvk.GroupKind()
	}
	return obj.GetObjectKind().GroupVersionKind().GroupKind()
}

// target names the target of a call, as in Deployment.apps/scale default/web.
func target(kind schema.GroupKind, subResource, namespace, name string) string {
	target := kind.String()
	if subResource != "" {
		target += "/" + subResource
	}
	target += " "
	if namespace != "" {
		target += namespace + "/"
	}
	return target + name
}
