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

func refused(errs ...*field.Error) error {
	return apierrs.NewInvalid(schema.GroupKind{Kind: "Thing"}, "thing", errs)
}

func ExampleImmutableFields() {
	err := refused(field.Invalid(field.NewPath("spec", "selector"), "a=b", "field is immutable"))
	fmt.Println(reconcilers.ImmutableFields(err))
	// Output: [spec.selector]
}

// The texts are from kube-apiserver 1.37. TestRecreatingObjectManager of internal/tests/integration meets some of them.
func TestImmutableFields(t *testing.T) {
	at, spec := field.NewPath("spec"), []string{"spec"}
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"Deployment":        {refused(field.Invalid(at, "a", "field is immutable")), spec},
		"wrapped":           {fmt.Errorf("update: %w", refused(field.Invalid(at, "", "field is immutable"))), spec},
		"Service":           {refused(field.Invalid(at, "None", "may not change once set")), spec},
		"PriorityClass":     {refused(field.Forbidden(at, "may not be changed in an update.")), spec},
		"StatefulSet":       {refused(field.Forbidden(at, "updates to x for fields other than y are forbidden")), spec},
		"ConfigMap":         {refused(field.Forbidden(at, "field is immutable when `immutable` is set")), spec},
		"volume, with diff": {refused(field.Forbidden(at, "spec is immutable after creation\n- a\n+ b")), spec},
		"Pod":               {refused(field.Forbidden(at, "pod updates may not change fields other than x\n-a")), spec},
		"rule with text":    {refused(field.Invalid(at, "a", "Value is immutable")), spec},
		"rule without text": {refused(field.Invalid(at, "a", "failed rule: self == oldSelf")), spec},
		"two": {refused(
			field.Invalid(at.Child("b"), "", "field is immutable"), field.Invalid(at.Child("a"), "", "field is immutable"),
		), []string{"spec.a", "spec.b"}},

		"another cause too": {refused(
			field.Invalid(at, "", "field is immutable"), field.Invalid(at, "", "must be positive"),
		), nil},
		"the value says it":     {refused(field.Invalid(at, "field is immutable", "must be short")), nil},
		"the diff says it":      {refused(field.Forbidden(at, "may not be empty\n+ a is immutable")), nil},
		"rule on growth":        {refused(field.Invalid(at, "a", "failed rule: self >= oldSelf")), nil},
		"required":              {refused(field.Required(at, "field is immutable")), nil},
		"no causes":             {refused(), nil},
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
