// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var metadataPath = field.NewPath("metadata")

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// validateCreate returns an error if an object must not be created.
func (t *table) validateCreate(obj client.Object) error {
	return t.invalid(obj.GetName(), t.kind.Validate(obj))
}

// validateUpdate returns an error if an object must not replace another one.
func (t *table) validateUpdate(obj, old client.Object, subresource string) error {
	var errs field.ErrorList
	if !sameMetadata(obj, old) {
		errs = validation.ValidateObjectMetaAccessor(obj, t.kind.Namespaced, pathSegment, metadataPath)
		// the kind validates it too: a real server validates twice
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)...)
	}
	if subresource == statusSubresource {
		errs = append(errs, t.kind.ValidateStatusUpdate(obj, old)...)
	} else {
		errs = append(errs, t.kind.ValidateUpdate(obj, old)...)
	}
	return t.invalid(obj.GetName(), errs)
}

func (t *table) invalid(name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	if !t.kind.Custom { // for custom kinds, a real server repeats errors
		errs = withoutRepetitions(errs)
	}
	return apierrors.NewInvalid(t.kind.GroupKind(), name, errs)
}

func withoutRepetitions(errs field.ErrorList) (kept field.ErrorList) {
	seen := map[string]bool{}
	for _, err := range errs {
		if text := err.Error(); !seen[text] {
			seen[text] = true
			kept = append(kept, err)
		}
	}
	return kept
}
