// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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
