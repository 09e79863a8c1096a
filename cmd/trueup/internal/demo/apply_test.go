// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/internal/objects/manifests"
)

func TestExplainRefusal(t *testing.T) {
	document := manifests.Document{
		File:   "sites.yaml",
		Number: 2,
		Line:   9,
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "demo.trueup.dev/v1", "kind": "Website", "metadata": map[string]any{"name": "shop"},
		}},
	}
	kind := schema.GroupKind{Group: "demo.trueup.dev", Kind: "Website"}
	status := func(code int32, message string) error {
		return &apierrs.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	tests := map[string]struct {
		err   error
		want  string
		input bool
	}{
		"fields": {
			err: apierrs.NewInvalid(kind, "shop", field.ErrorList{
				field.Invalid(field.NewPath("spec", "domain"), "X", "must be lower-case"),
				field.Required(field.NewPath("spec", "pages"), ""),
			}),
			want: `sites.yaml: document 2 (line 9): Website "shop": ` +
				`spec.domain: Invalid value: "X": must be lower-case; spec.pages: Required value`,
			input: true,
		},
		"the object as a whole": {
			err: apierrs.NewInvalid(
				kind, "shop", field.ErrorList{field.Invalid(nil, "", "metadata.name must start with a letter")},
			),
			want:  `sites.yaml: document 2 (line 9): Website "shop": Invalid value: "": metadata.name must start with a letter`,
			input: true,
		},
		"an unknown field": {
			err: status(
				500,
				`failed to create typed patch object (default/shop; demo.trueup.dev/v1, Kind=Website): `+
					`.spec.replcas: field not declared in schema`,
			),
			want:  `sites.yaml: document 2 (line 9): Website "shop": spec.replcas: unknown field`,
			input: true,
		},
		"a value of another type": {
			err: status(
				500,
				`failed to create typed patch object (default/shop; demo.trueup.dev/v1, Kind=Website): `+
					`.spec.domain: expected string, got &value.valueUnstructured{Value:3}`,
			),
			want:  `sites.yaml: document 2 (line 9): Website "shop": spec.domain: expected string, got 3`,
			input: true,
		},
		"a missing namespace": {
			err:   apierrs.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "nowhere"),
			want:  `sites.yaml: document 2 (line 9): Website "shop": namespaces "nowhere" not found`,
			input: true,
		},
		"an error of the server": {
			err:  status(503, "try later"),
			want: "sites.yaml: document 2 (line 9): try later",
		},
		"a network error": {err: errors.New("connection refused"), want: "connection refused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := explainRefusal(document, tc.err)
			if got.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			var input *InputError
			if errors.As(got, &input) != tc.input {
				t.Errorf("got InputError: %t, want %t", !tc.input, tc.input)
			}
		})
	}
}
