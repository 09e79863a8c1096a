// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var metadataPath = field.NewPath("metadata")

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return path.IsValidPathSegmentPrefix(name)
	}
	return path.IsValidPathSegmentName(name)
}

// validateCreate refuses an object that may not be created.
func (t *table) validateCreate(obj client.Object) error {
	errs := t.kind.Validate(obj)
	if len(errs) == 0 {
		errs = validation.ValidateObjectMetaAccessor(obj, t.kind.Namespaced, pathSegment, metadataPath)
	}
	return t.invalid(obj.GetName(), errs)
}

// validateUpdate refuses an object that may not replace another.
func (t *table) validateUpdate(obj, old client.Object, subresource string) error {
	errs := validation.ValidateObjectMetaAccessor(obj, t.kind.Namespaced, pathSegment, metadataPath)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)...)
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
	return apierrors.NewInvalid(t.kind.GroupKind(), name, errs)
}
