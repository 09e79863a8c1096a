// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// schemaRules are the rules of a custom resource with a schema.
//
// Results are cached by content, because most objects have been seen before, by another server or before a write that
// changed nothing, and the result of a schema depends only on the content.
type schemaRules struct {
	customRules
	schema *crdSchema

	defaulted memo[client.Object] // without metadata; nil if unchanged
	validated memo[field.ErrorList]
}

func (r *schemaRules) defaults(obj client.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return r.schema.defaults(u.Object)
	}
	l := r.kind.layout
	bare := reflect.New(l.goType)
	bare.Elem().Set(l.value(obj))
	bare.Elem().FieldByIndex(l.meta).SetZero()
	given := bare.Interface().(client.Object)
	given.GetObjectKind().SetGroupVersionKind(r.kind.GroupVersionKind)
	key, err := json.Marshal(given)
	if err != nil {
		return err
	}
	result, err := r.defaulted.get(string(key), func() (client.Object, error) {
		content, err := toContent(given)
		if err != nil {
			return nil, err
		}
		if err := r.schema.defaults(content); err != nil {
			return nil, err
		}
		defaulted := reflect.New(l.goType).Interface().(client.Object)
		if err := convert(&unstructured.Unstructured{Object: content}, defaulted); err != nil {
			return nil, err
		}
		if l.equalOthers(defaulted, given) && l.equalStatus(defaulted, given) {
			return nil, nil
		}
		return defaulted, nil
	})
	if err != nil || result == nil {
		return err
	}
	result = result.DeepCopyObject().(client.Object)
	l.setOthers(obj, result)
	l.setStatus(obj, result)
	return nil
}

// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: Validate
func (r *schemaRules) validate(obj client.Object) field.ErrorList {
	errs := r.customRules.validate(obj)
	found := preventsRules(errs)
	return append(errs, r.remember(func(content []map[string]any) field.ErrorList {
		if r.kind.Status { // it was removed, which some Go types cannot represent
			delete(content[0], "status")
		}
		return r.schema.validate(content[0], found)
	}, fmt.Sprint("create ", found), obj)...)
}

// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: ValidateUpdate
func (r *schemaRules) validateUpdate(obj, old client.Object, status bool) field.ErrorList {
	errs := r.customRules.validateUpdate(obj, old, status)
	found := preventsRules(errs)
	lacked := r.lacksStatus(old)
	lacks := !status && r.lacksStatus(obj)
	return append(errs, r.remember(func(content []map[string]any) field.ErrorList {
		if lacks {
			delete(content[0], "status")
		}
		if lacked {
			delete(content[1], "status")
		}
		return r.schema.validateUpdate(content[0], content[1], status, found)
	}, fmt.Sprint("update ", status, found, lacks, lacked), obj, old)...)
}

// lacksStatus reports whether a stored object has no status yet. Go types can have an empty status then, which lacks
// required fields.
func (r *schemaRules) lacksStatus(obj client.Object) bool {
	l := r.kind.layout
	return r.kind.Status && l != nil && l.of(obj) && l.status >= 0 && l.value(obj).Field(l.status).IsZero()
}

// remember calls validate with the content of objects, unless the result for this content is cached.
func (r *schemaRules) remember(
	validate func([]map[string]any) field.ErrorList, verb string, objects ...client.Object,
) field.ErrorList {
	key := []byte(verb)
	bare := make([]client.Object, len(objects))
	for i, obj := range objects {
		bare[i] = r.visible(obj)
		data, err := json.Marshal(bare[i])
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		key = append(append(key, 0), data...)
	}
	errs, err := r.validated.get(string(key), func() (field.ErrorList, error) {
		content := make([]map[string]any, len(bare))
		for i, obj := range bare {
			var err error
			if content[i], err = toContent(obj); err != nil {
				return nil, err
			}
			// nulls in it were removed, or must be refused
			if _, untyped := bare[i].(*unstructured.Unstructured); !untyped {
				// Go types write null for times that are not set
				defaulting.PruneNonNullableNullsWithoutDefaults(content[i], r.schema.structural)
			}
		}
		return validate(content), nil
	})
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return slices.Clone(errs)
}

// visible returns an object with only the metadata that schemas can refer to.
func (r *schemaRules) visible(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content := withoutMetadata(u)
		metadata := map[string]any{"name": u.GetName()}
		if name := u.GetGenerateName(); name != "" {
			metadata["generateName"] = name
		}
		content["metadata"] = metadata
		return &unstructured.Unstructured{Object: content}
	}
	l := r.kind.layout
	bare := reflect.New(l.goType)
	bare.Elem().Set(l.value(obj))
	bare.Elem().FieldByIndex(l.meta).Set(
		reflect.ValueOf(metav1.ObjectMeta{Name: obj.GetName(), GenerateName: obj.GetGenerateName()}),
	)
	visible := bare.Interface().(client.Object)
	visible.GetObjectKind().SetGroupVersionKind(r.kind.GroupVersionKind)
	return visible
}

// memo caches results by content. It is safe for concurrent use.
type memo[T any] struct {
	mu      sync.RWMutex
	results map[string]T
}

// maxResults is the number of results after which a memo is cleared. Objects in tests have few states.
const maxResults = 4096

func (m *memo[T]) get(key string, compute func() (T, error)) (T, error) {
	m.mu.RLock()
	result, ok := m.results[key]
	m.mu.RUnlock()
	if ok {
		return result, nil
	}
	result, err := compute()
	if err != nil {
		return result, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.results == nil || len(m.results) >= maxResults {
		m.results = map[string]T{}
	}
	m.results[key] = result
	return result, nil
}
