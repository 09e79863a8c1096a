// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"errors"
	"fmt"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/reconcilers"
)

func refusedFields(errs ...*field.Error) error {
	return apierrs.NewInvalid(schema.GroupKind{Kind: "Thing"}, "thing", errs)
}

func ExampleImmutableFields() {
	err := refusedFields(field.Invalid(field.NewPath("spec", "selector"), "a=b", "field is immutable"))
	fmt.Println(reconcilers.ImmutableFields(err))
	// Output: [spec.selector]
}

// The texts are those of kube-apiserver 1.37.
func TestImmutableFields(t *testing.T) {
	at := field.NewPath("spec")
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"Deployment":        {refusedFields(field.Invalid(at, "a", "field is immutable")), []string{"spec"}},
		"wrapped":           {fmt.Errorf("update: %w", refusedFields(field.Invalid(at, "", "field is immutable"))), []string{"spec"}},
		"Service":           {refusedFields(field.Invalid(at, "None", "may not change once set")), []string{"spec"}},
		"PriorityClass":     {refusedFields(field.Forbidden(at, "may not be changed in an update.")), []string{"spec"}},
		"StatefulSet":       {refusedFields(field.Forbidden(at, "updates to x for fields other than y are forbidden")), []string{"spec"}},
		"ConfigMap":         {refusedFields(field.Forbidden(at, "field is immutable when `immutable` is set")), []string{"spec"}},
		"volume, with diff": {refusedFields(field.Forbidden(at, "spec is immutable after creation\n- a\n+ b")), []string{"spec"}},
		"Pod":               {refusedFields(field.Forbidden(at, "pod updates may not change fields other than x\n-a")), []string{"spec"}},
		"rule with text":    {refusedFields(field.Invalid(at, "a", "Value is immutable")), []string{"spec"}},
		"rule without text": {refusedFields(field.Invalid(at, "a", "failed rule: self == oldSelf")), []string{"spec"}},
		"two": {refusedFields(
			field.Invalid(at.Child("b"), "", "field is immutable"), field.Invalid(at.Child("a"), "", "field is immutable"),
		), []string{"spec.a", "spec.b"}},

		"another cause too": {refusedFields(
			field.Invalid(at, "", "field is immutable"), field.Invalid(at, "", "must be positive"),
		), nil},
		"the value says it":     {refusedFields(field.Invalid(at, "field is immutable", "must be short")), nil},
		"the diff says it":      {refusedFields(field.Forbidden(at, "may not be empty\n+ a is immutable")), nil},
		"rule on growth":        {refusedFields(field.Invalid(at, "a", "failed rule: self >= oldSelf")), nil},
		"required":              {refusedFields(field.Required(at, "field is immutable")), nil},
		"no causes":             {refusedFields(), nil},
		"another reason":        {apierrs.NewBadRequest("field is immutable"), nil},
		"not from the server":   {errors.New("field is immutable"), nil},
		"nil":                   {nil, nil},
		"status has no details": {&apierrs.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "fields", tc.want, reconcilers.ImmutableFields(tc.err))
		})
	}
}
