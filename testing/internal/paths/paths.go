// SPDX-License-Identifier: Apache-2.0

// Package paths recognizes fields of Kubernetes objects, typed or unstructured, by their path in a comparison of
// package cmp.
package paths

import (
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsFieldOf reports whether a path ends with one of these fields of a struct of type T.
func IsFieldOf[T any](path cmp.Path, names ...string) bool {
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

// EndsWithKeys reports whether a path ends with these keys of nested unstructured content.
func EndsWithKeys(path cmp.Path, keys ...string) bool {
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

// IsOutsideStatus reports whether a path leads to a part of an object outside its status.
func IsOutsideStatus(path cmp.Path) bool {
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
