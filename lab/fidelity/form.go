// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object returns content in the form of an operation. Content without a Go type is unstructured.
func (r *run) object(o Operation, fields Object) client.Object {
	switch {
	case o.Form == Metadata:
		object := &metav1.PartialObjectMetadata{}
		if metadata, ok := fields["metadata"].(map[string]any); ok {
			mustConvert(map[string]any{"metadata": metadata}, object)
		}
		object.SetGroupVersionKind(o.Kind.GroupVersionKind)
		return object
	case o.Form == Typed && !o.Kind.Untyped:
		if typed, err := r.Client.Scheme().New(o.Kind.GroupVersionKind); err == nil {
			if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed) == nil {
				return typed.(client.Object)
			}
		}
	}
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	object.SetGroupVersionKind(o.Kind.GroupVersionKind)
	return object
}

// named returns an object with only a name, for reads and patches.
func (r *run) named(o Operation) client.Object {
	object := r.object(o, Object{"metadata": Object{}})
	object.SetName(r.name(o))
	object.SetNamespace(r.namespace(o))
	return object
}

// list returns an empty list in the form of an operation.
func (r *run) list(o Operation) client.ObjectList {
	kind := o.Kind.GroupVersionKind
	kind.Kind += "List"
	switch {
	case o.Form == Metadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		return list
	case o.Form == Typed && !o.Kind.Untyped:
		if typed, err := r.Client.Scheme().New(kind); err == nil {
			return typed.(client.ObjectList)
		}
	}
	return newList(o.Kind)
}

func newList(k *Kind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	kind := k.GroupVersionKind
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	return list
}

// content returns the JSON form of an object, or nil.
func content(object runtime.Object) Object {
	switch object := object.(type) {
	case nil:
		return nil
	case *unstructured.Unstructured:
		return runtime.DeepCopyJSON(object.Object)
	}
	return mustJSON(object)
}

// mustJSON returns the JSON form of a Go value. All values here can be encoded.
func mustJSON(value any) Object {
	text, err := json.Marshal(value)
	if err == nil {
		fields := &unstructured.Unstructured{}
		// Numbers as in unstructured objects.
		if err = json.Unmarshal(text, &fields.Object); err == nil {
			return normalizeNumbers(fields.Object).(Object)
		}
	}
	panic(err)
}

// normalizeNumbers converts integral floats to integers.
func normalizeNumbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			value[key] = normalizeNumbers(item)
		}
	case []any:
		for i, item := range value {
			value[i] = normalizeNumbers(item)
		}
	case float64:
		if integer := int64(value); float64(integer) == value {
			return integer
		}
	}
	return value
}

func mustConvert(fields Object, into any) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into); err != nil {
		panic(err)
	}
}
