// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"reflect"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/duck"
	"trueup.dev/testing/internal/fakeapi"
)

// answer copies the result of a reactor to into, the object, the list or the apply configuration of the caller. Into is
// nil for calls that return nothing.
func (w *clientWrapper) answer(action Action, returned runtime.Object, into any) error {
	// the copy of a wrapper is the wrapped object
	returned = returned.DeepCopyObject()
	if status, ok := returned.(*metav1.Status); ok {
		if status.Status == metav1.StatusFailure {
			return apierrs.FromObject(status)
		}
		return nil
	}
	var err error
	switch into := into.(type) {
	case runtime.ApplyConfiguration: // unstructured ones are objects, too
		err = fakeapi.SetApplyConfiguration(into, returned)
	case runtime.Object:
		err = w.setObject(into, returned)
	}
	if err != nil {
		return fmt.Errorf("a reactor answers %s %s with %T, which cannot be copied into %T: %w",
			action.GetVerb(), action.GetResource().Resource, returned, into, err)
	}
	return nil
}

// setObject replaces the content of an object by that of another of the same kind, which may be of another Go type. The
// object keeps its TypeMeta: clients return it empty in typed objects and set in others.
func (w *clientWrapper) setObject(into, from runtime.Object) error {
	gvk := into.GetObjectKind().GroupVersionKind()
	if reflect.TypeOf(into) == reflect.TypeOf(from) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem())
	} else {
		intoKind, err := w.GroupVersionKindFor(into)
		if err != nil {
			return err
		}
		fromKind, err := w.GroupVersionKindFor(from)
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
