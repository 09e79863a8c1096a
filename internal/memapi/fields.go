// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
