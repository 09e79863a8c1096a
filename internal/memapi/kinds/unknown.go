// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"reflect"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Unknown returns a text for each field of an object that the kind does not have, like `unknown field "spec.replcas"`.
// It changes the content.
func (k *Kind) Unknown(content map[string]any) (fields []string) {
	switch custom, hasSchema := k.rules.(*schemaRules); {
	case hasSchema:
		return custom.schema.unknown(content)
	case k.Custom || k.layout == nil:
		return nil
	}
	return unknownIn(content, reflect.New(k.layout.goType).Interface())
}

// unknown returns a text for each field of an object that the schema does not have.
func (s *crdSchema) unknown(content map[string]any) (fields []string) {
	if metadata, ok := content["metadata"].(map[string]any); ok {
		fields = unknownIn(map[string]any{"metadata": metadata}, &metav1.PartialObjectMetadata{})
	}
	paths := pruning.PruneWithOptions(content, s.structural, true, structuralschema.UnknownFieldPathOptions{
		TrackUnknownFieldPaths: true,
	})
	for _, path := range paths {
		fields = append(fields, fmt.Sprintf("unknown field %q", path))
	}
	return fields
}

// unknownIn returns a text for each field that a Go type does not have.
func unknownIn(content map[string]any, typed any) (fields []string) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, typed, true)
	var strict interface{ Errors() []error }
	if errors.As(err, &strict) && runtime.IsStrictDecodingError(err) {
		for _, err := range strict.Errors() {
			fields = append(fields, err.Error())
		}
	}
	return fields
}
