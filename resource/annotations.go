// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Annotations of Grafana App SDK. They have values only if a client or a webhook sets them, such as OpinionatedMutator
// of package simple.
const (
	AnnotationPrefix          = "grafana.com/"
	AnnotationCreatedBy       = AnnotationPrefix + "createdBy"
	AnnotationUpdatedBy       = AnnotationPrefix + "updatedBy"
	AnnotationUpdateTimestamp = AnnotationPrefix + "updateTimestamp"
)

// ErrAnnotationMissing is returned by [ReadGrafanaAnnotation] for an annotation that does not exist.
var ErrAnnotationMissing = errors.New("annotation does not exist")

var forbiddenInAnnotations = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)

// SanitizeAnnotationFieldName removes the characters that names of annotations must not contain.
func SanitizeAnnotationFieldName(field string) string {
	return forbiddenInAnnotations.ReplaceAllString(field, "")
}

// GetGrafanaAnnotationField returns the key of the annotation of a field: [AnnotationPrefix] and the sanitized name.
func GetGrafanaAnnotationField(field string) string {
	return AnnotationPrefix + SanitizeAnnotationFieldName(field)
}

// ReadGrafanaAnnotation reads a value that [WriteGrafanaAnnotation] wrote. It returns [ErrAnnotationMissing] if the
// annotation does not exist.
func ReadGrafanaAnnotation[T any](annotations map[string]string, field string) (T, error) {
	var into T
	text, ok := annotations[GetGrafanaAnnotationField(field)]
	if !ok {
		return into, ErrAnnotationMissing
	}
	value := []byte(text)
	// Values that are strings in JSON are stored without quotes.
	if sample, err := json.Marshal(into); err == nil && bytes.HasPrefix(sample, []byte(`"`)) {
		if value, err = json.Marshal(text); err != nil {
			return into, err
		}
	}
	if err := json.Unmarshal(value, &into); err != nil {
		return into, fmt.Errorf("annotation %s: %w", GetGrafanaAnnotationField(field), err)
	}
	return into, nil
}

// WriteGrafanaAnnotation sets the annotation of the field to the value as JSON, without quotes if it is a string. It
// removes the annotation if the value is nil. annotations must not be nil.
func WriteGrafanaAnnotation(annotations map[string]string, field string, value any) error {
	key := GetGrafanaAnnotationField(field)
	if value == nil {
		delete(annotations, key)
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", key, err)
	}
	text := string(data)
	if bytes.HasPrefix(data, []byte(`"`)) {
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("annotation %s: %w", key, err)
		}
	}
	annotations[key] = text
	return nil
}
