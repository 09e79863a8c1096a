// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
		err = fakeapi.SetObject(w, into, returned)
	}
	if err != nil {
		return fmt.Errorf("a reactor answers %s %s with %T, which cannot be copied into %T: %w",
			action.GetVerb(), action.GetResource().Resource, returned, into, err)
	}
	return nil
}
