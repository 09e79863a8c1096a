// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/objects/nilcheck"
)

// SetApplyConfiguration replaces the content of an apply configuration, which must be a pointer, by the JSON form of an
// object. The apply configuration is unchanged if that fails.
func SetApplyConfiguration(ac runtime.ApplyConfiguration, obj any) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("unable to marshal %T: %w", obj, err)
	}
	if u, ok := ac.(interface{ SetUnstructuredContent(map[string]any) }); ok {
		var content map[string]any
		if err := utiljson.Unmarshal(data, &content); err != nil {
			return fmt.Errorf("unable to read %T: %w", obj, err)
		}
		u.SetUnstructuredContent(content)
		return nil
	}
	read := reflect.New(reflect.TypeOf(ac).Elem())
	if err := json.Unmarshal(data, read.Interface()); err != nil {
		return fmt.Errorf("unable to read %T into %T: %w", obj, ac, err)
	}
	reflect.ValueOf(ac).Elem().Set(read.Elem())
	return nil
}

// CopyApplyConfiguration returns a deep copy. The copy is unstructured if the Go type cannot read its own JSON form.
func CopyApplyConfiguration(ac runtime.ApplyConfiguration) (runtime.ApplyConfiguration, error) {
	if nilcheck.IsNil(ac) {
		return ac, nil
	}
	data, err := json.Marshal(ac)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal apply configuration: %w", err)
	}
	if _, ok := ac.(runtime.Unstructured); !ok {
		copied := reflect.New(reflect.TypeOf(ac))
		if err := json.Unmarshal(data, copied.Interface()); err == nil {
			if again, err := json.Marshal(copied.Interface()); err == nil && bytes.Equal(again, data) {
				return copied.Elem().Interface().(runtime.ApplyConfiguration), nil
			}
		}
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, fmt.Errorf("unable to copy apply configuration: %w", err)
	}
	return client.ApplyConfigurationFromUnstructured(u), nil
}

// SetObject replaces the content of an object by the content of another object of the same kind, which may be of
// another Go type. The object keeps its TypeMeta: clients return it empty in typed objects and set in others.
func SetObject(c client.Client, into, from runtime.Object) error {
	gvk := into.GetObjectKind().GroupVersionKind()
	if reflect.TypeOf(into) == reflect.TypeOf(from) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem())
	} else {
		intoKind, err := c.GroupVersionKindFor(into)
		if err != nil {
			return err
		}
		fromKind, err := c.GroupVersionKindFor(from)
		if err != nil {
			return err
		}
		if intoKind.GroupKind() != fromKind.GroupKind() {
			return fmt.Errorf("%s is not %s", fromKind.GroupKind(), intoKind.GroupKind())
		}
		if err := duck.Convert(from, into); err != nil {
			return err
		}
	}
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return nil
}
