// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// validateListOptions refuses the combinations of options of a list or a watch that a server refuses: listOpts in
// k8s.io/apiserver/pkg/endpoints/handlers/get.go.
func validateListOptions(options *client.ListOptions, watch bool) error {
	raw := options.Raw
	if raw == nil || raw.SendInitialEvents == nil && raw.ResourceVersionMatch == "" {
		return nil // all rules are about these two
	}
	errs := listvalidation.ValidateListOptions(&internalversion.ListOptions{
		Watch: watch, ResourceVersion: raw.ResourceVersion, ResourceVersionMatch: raw.ResourceVersionMatch,
		SendInitialEvents: raw.SendInitialEvents, Continue: options.Continue,
	}, true)
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}

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
func (t *table) validateUpdate(obj, old client.Object, req request) error {
	var errs field.ErrorList
	if !sameMetadata(obj, old) {
		errs = validation.ValidateObjectMetaAccessor(obj, t.kind.Namespaced, pathSegment, metadataPath)
		// the kind validates it too: a real server validates twice
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)...)
	}
	switch {
	case req.subresource == statusSubresource:
		errs = append(errs, t.kind.ValidateStatusUpdate(obj, old)...)
	case req.patchedKind != nil && t.kind.Custom && *req.patchedKind != t.kind.GroupVersionKind:
		errs = append(errs, t.kind.ValidateType(*req.patchedKind)...)
		return apierrors.NewInvalid(req.patchedKind.GroupKind(), obj.GetName(), errs)
	default:
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

// ValidateFields calls perform. If a request in it sends unknown fields, as unstructured object or in a patch, unknown
// is called with a text for each, like `unknown field "spec.replcas"`. Its error refuses the request. Without an error,
// the fields are dropped. Apply requests are refused in any case.
func (s *Server) ValidateFields(unknown func(fields []string) error, perform func()) {
	defer func(before func([]string) error) { s.unknown = before }(s.unknown)
	s.unknown = unknown
	perform()
}

// checkSent checks the fields of an object that a client sends.
func (s *Server) checkSent(t *table, obj client.Object) error {
	sent, ok := obj.(*unstructured.Unstructured)
	if !ok || s.unknown == nil {
		return nil
	}
	err := s.checkFields(t, sent.Object)
	if err == nil {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf(
		"%s in version %q cannot be handled as a %s: %v", t.kind.Kind, t.kind.Version, t.kind.Kind, err,
	))
}

// checkPatched checks the fields of an object after a patch.
func (s *Server) checkPatched(t *table, content map[string]any, data []byte) error {
	if s.unknown == nil {
		return nil
	}
	err := s.checkFields(t, content)
	if err == nil {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(data), err.Error()),
	})
}

func (s *Server) checkFields(t *table, content map[string]any) error {
	fields := t.kind.Unknown(runtime.DeepCopyJSON(content))
	slices.Sort(fields)
	if len(fields) == 0 {
		return nil
	}
	if err := s.unknown(fields); err != nil {
		return fmt.Errorf("strict decoding error: %s", strings.Join(fields, ", "))
	}
	return nil
}
