// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// nameRules are those of kinds whose names are not DNS subdomains.
var nameRules = map[schema.GroupResource]validation.ValidateNameFunc{
	{Resource: "namespaces"}:                            validation.NameIsDNSLabel,
	{Resource: "services"}:                              validation.NameIsDNSLabel,
	{Group: "apps", Resource: "statefulsets"}:           validation.NameIsDNSLabel,
	{Group: rbacGroup, Resource: "clusterroles"}:        pathSegment,
	{Group: rbacGroup, Resource: "roles"}:               pathSegment,
	{Group: rbacGroup, Resource: "clusterrolebindings"}: pathSegment,
	{Group: rbacGroup, Resource: "rolebindings"}:        pathSegment,
}

const rbacGroup = "rbac.authorization.k8s.io"

// validateCreate refuses an object that may not be created.
func (t *table) validateCreate(obj client.Object) error {
	rule, ok := nameRules[t.resource]
	if !ok {
		rule = validation.NameIsDNSSubdomain
	}
	errs := validation.ValidateObjectMetaAccessor(obj, t.kind.Namespaced, rule, metadataPath)
	errs = append(errs, t.validateFinalizers(obj)...)
	return t.invalid(obj.GetName(), append(errs, t.kind.Validate(obj)...))
}

// validateFinalizers refuses finalizers without a domain. Custom kinds may have them.
func (t *table) validateFinalizers(obj client.Object) (errs field.ErrorList) {
	if t.kind.Custom || t.kind.Group == "coordination.k8s.io" || t.kind.Group == "admissionregistration.k8s.io" {
		return nil
	}
	for i, f := range obj.GetFinalizers() {
		if !strings.Contains(f, "/") && f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents && f != string(corev1.FinalizerKubernetes) {
			errs = append(errs, field.Invalid(metadataPath.Child("finalizers").Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// validateUpdate refuses an object that may not replace another.
func (t *table) validateUpdate(obj, old client.Object, subresource string) error {
	var errs field.ErrorList
	if !sameMetadata(obj, old) {
		errs = validation.ValidateObjectMetaAccessor(obj, t.kind.Namespaced, pathSegment, metadataPath)
		changed := validation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)
		errs = append(append(errs, changed...), changed...) // a real server checks twice, and says so
		errs = append(errs, t.validateFinalizers(obj)...)
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
	return apierrors.NewInvalid(t.kind.GroupKind(), name, errs)
}
