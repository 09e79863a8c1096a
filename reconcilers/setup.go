// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kindOfChild returns the kind of the children of a reconciler. Its error says what to add to the scheme.
func kindOfChild(config Config, reconciler string, child client.Object) (schema.GroupVersionKind, error) {
	gvk, err := config.GroupVersionKindFor(child)
	if err != nil {
		return gvk, fmt.Errorf(
			"%s: the scheme does not have the kind of %T: add its package with AddToScheme, or set apiVersion and kind in "+
				"ChildType if it is a duck type: %w", reconciler, child, err,
		)
	}
	return gvk, nil
}

// listsOf returns an error if the scheme does not have the list of a kind that a cache is going to list.
func listsOf(scheme *runtime.Scheme, watched runtime.Object) error {
	gvk, err := apiutil.GVKForObject(watched, scheme)
	if err != nil || isLight(watched) || !scheme.Recognizes(gvk) {
		return nil //nolint:nilerr // the builder returns a better error
	}
	list := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if scheme.Recognizes(list) {
		return nil
	}
	return fmt.Errorf(
		"the scheme has %s, but not %s, without which no cache can watch it: add &%s{} to SchemeBuilder.Register",
		gvk.Kind, list.Kind, list.Kind,
	)
}
