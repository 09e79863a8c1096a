// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Options for a custom [Differ]. They ignore fields that differ in each run of a test.
var (
	// IgnoreLastTransitionTime ignores the transition times of conditions: fields named LastTransitionTime, and
	// lastTransitionTime in unstructured content.
	IgnoreLastTransitionTime = cmp.FilterPath(func(path cmp.Path) bool {
		field, ok := path.Last().(cmp.StructField)
		return ok && field.Name() == "LastTransitionTime" || endsWithKeys(path, "lastTransitionTime")
	}, cmp.Ignore())

	// IgnoreTypeMeta ignores the API version and kind of typed objects, which the Go type implies. It does not ignore
	// those of unstructured objects.
	IgnoreTypeMeta = cmp.FilterPath(func(path cmp.Path) bool {
		return isFieldOf[metav1.TypeMeta](path, "APIVersion", "Kind")
	}, cmp.Ignore())

	// IgnoreCreationTimestamp ignores the creation timestamp of objects, typed or unstructured.
	IgnoreCreationTimestamp = cmp.FilterPath(func(path cmp.Path) bool {
		return isFieldOf[metav1.ObjectMeta](path, "CreationTimestamp") || endsWithKeys(path, "metadata", "creationTimestamp")
	}, cmp.Ignore())

	// IgnoreResourceVersion ignores the resource version of objects, typed or unstructured.
	IgnoreResourceVersion = cmp.FilterPath(func(path cmp.Path) bool {
		return isFieldOf[metav1.ObjectMeta](path, "ResourceVersion") || endsWithKeys(path, "metadata", "resourceVersion")
	}, cmp.Ignore())

	// onlyStatus ignores all of an object except for its status.
	onlyStatus = cmp.FilterPath(isBesideStatus, cmp.Ignore())
)

// Options for a custom [Differ]. They compare values without exported fields, or with several forms, by their meaning.
var (
	// NormalizeLabelSelector compares label selectors by their text. A nil selector equals one that selects
	// everything.
	NormalizeLabelSelector = cmp.Transformer("labels.Selector", selectorText[labels.Selector])

	// NormalizeFieldSelector compares field selectors by their text. A nil selector equals one that selects
	// everything.
	NormalizeFieldSelector = cmp.Transformer("fields.Selector", selectorText[fields.Selector])

	// NormalizeApplyConfiguration compares apply configurations by their JSON form, which clients send to the API server.
	NormalizeApplyConfiguration = cmp.Transformer("runtime.ApplyConfiguration", func(ac runtime.ApplyConfiguration) any {
		var content any
		data, err := json.Marshal(ac)
		if err == nil {
			err = json.Unmarshal(data, &content)
		}
		if err != nil {
			return fmt.Sprintf("%T has no JSON form: %v", ac, err)
		}
		return content
	})
)

// selectorText returns nil for selectors that select everything. The text of a selector that selects nothing is empty.
func selectorText[S interface {
	comparable
	Empty() bool
	String() string
}](s S) *string {
	var none S
	if s == none || s.Empty() {
		return nil
	}
	return new(s.String())
}

// isFieldOf reports whether the path ends with one of these fields of a struct of type T.
func isFieldOf[T any](path cmp.Path, names ...string) bool {
	field, ok := path.Last().(cmp.StructField)
	if !ok || path.Index(-2).Type() != reflect.TypeFor[T]() {
		return false
	}
	for _, name := range names {
		if field.Name() == name {
			return true
		}
	}
	return false
}

// endsWithKeys reports whether the path ends with these keys of nested unstructured content.
func endsWithKeys(path cmp.Path, keys ...string) bool {
	for i := len(path) - 1; len(keys) > 0; i-- {
		if i < 1 {
			return false
		}
		switch step := path[i].(type) {
		case cmp.TypeAssertion:
			if i == len(path)-1 {
				return false // the path goes on below the last key, which an earlier step has matched
			}
		case cmp.MapIndex:
			if path[i-1].Type() != reflect.TypeFor[map[string]any]() || step.Key().String() != keys[len(keys)-1] {
				return false
			}
			keys = keys[:len(keys)-1]
		default:
			return false
		}
	}
	return true
}

// isBesideStatus reports whether the path leads to a part of an object outside its status.
func isBesideStatus(path cmp.Path) bool {
	for i, step := range path {
		field, ok := step.(cmp.StructField)
		if !ok {
			continue
		}
		parent := path[i-1].Type()
		switch {
		case parent == reflect.TypeFor[unstructured.Unstructured]():
			if i+1 == len(path) {
				return false
			}
			key, ok := path[i+1].(cmp.MapIndex)
			return ok && key.Key().String() != "status"
		case strings.HasPrefix(field.Name(), "Status"):
			return false
		case parent.Field(field.Index()).Anonymous:
			continue // the fields of an embedded struct belong to the object itself
		default:
			return true
		}
	}
	return false
}
