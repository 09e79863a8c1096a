// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// convertedRules are the rules of a built-in kind for which the scheme of a registry has no Go type, or another one.
type convertedRules struct {
	rules
	gvk    schema.GroupVersionKind
	goType reflect.Type
}

func (r *convertedRules) defaults(obj client.Object) error {
	typed, err := r.typed(obj)
	if err != nil {
		return err
	}
	if err := r.rules.defaults(typed); err != nil {
		return err
	}
	return convert(typed, obj)
}

func (r *convertedRules) create(obj client.Object) {
	if typed, err := r.typed(obj); err == nil {
		r.rules.create(typed)
		_ = convert(typed, obj) // cannot fail, because it was converted from there
	}
}

func (r *convertedRules) update(obj, old client.Object) bool {
	typed, err := r.typed(obj)
	typedOld, oldErr := r.typed(old)
	if err != nil || oldErr != nil {
		return false // Default refuses such objects
	}
	changed := r.rules.update(typed, typedOld)
	_ = convert(typed, obj)
	return changed
}

func (r *convertedRules) updateStatus(obj, old client.Object) {
	typed, err := r.typed(obj)
	typedOld, oldErr := r.typed(old)
	if err == nil && oldErr == nil {
		r.rules.updateStatus(typed, typedOld)
		_ = convert(typed, obj)
	}
}

func (r *convertedRules) validate(obj client.Object) field.ErrorList {
	typed, err := r.typed(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return r.rules.validate(typed)
}

func (r *convertedRules) validateUpdate(obj, old client.Object, status bool) field.ErrorList {
	typed, err := r.typed(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	typedOld, err := r.typed(old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return r.rules.validateUpdate(typed, typedOld, status)
}

func (r *convertedRules) typed(obj client.Object) (client.Object, error) {
	typed := reflect.New(r.goType).Interface().(client.Object)
	err := convert(obj, typed)
	typed.GetObjectKind().SetGroupVersionKind(r.gvk)
	return typed, err
}

// convert copies the content of from into to. One of them may be unstructured.
func convert(from, to client.Object) error {
	content, err := toContent(from)
	if err != nil {
		return err
	}
	if u, ok := to.(*unstructured.Unstructured); ok {
		u.Object = content
		return nil
	}
	reflect.ValueOf(to).Elem().SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, to)
}

// toContent returns an object as maps and lists, which share nothing with it.
func toContent(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return runtime.DeepCopyJSON(u.Object), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
