// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/manifests"
)

// fieldOwner is the field owner of the objects that this command applies.
const fieldOwner = client.FieldOwner("trueup-demo")

// apply applies all objects after a dry run of each. If any is invalid, it applies only the namespaces, which the dry
// runs of their objects need.
func (d *demo) apply(ctx context.Context) error {
	numbers := map[string]int{}
	for _, document := range d.documents {
		numbers[document.Object.GetKind()]++
	}
	d.Step("Apply %s", kinds(numbers))
	if d.foreign {
		if err := d.refuseExisting(ctx); err != nil {
			return err
		}
	}
	if err := d.ensureDefaultNamespace(ctx); err != nil {
		return err
	}
	var problems []error
	for _, document := range d.documents {
		if isNamespace(document) {
			problems = append(problems, d.applyOne(ctx, document))
		}
	}
	if err := together(problems); err != nil {
		return err
	}
	for _, document := range d.documents {
		problems = append(problems, d.applyOne(ctx, document, client.DryRunAll))
	}
	if err := together(problems); err != nil {
		return err
	}
	for _, document := range d.documents {
		if err := d.applyOne(ctx, document); err != nil {
			return err
		}
	}
	d.Done("the API has accepted all objects")
	return nil
}

func (d *demo) applyOne(ctx context.Context, document manifests.Document, opts ...client.ApplyOption) error {
	object := document.Object.DeepCopy()
	err := d.client.Apply(
		ctx,
		client.ApplyConfigurationFromUnstructured(object),
		append(opts, fieldOwner, client.ForceOwnership)...)
	if err != nil {
		return explainRefusal(document, err)
	}
	return nil
}

// together combines several errors into one. It is an InputError if one of them is.
func together(problems []error) error {
	err := errors.Join(problems...)
	var input *InputError
	if errors.As(err, &input) {
		return &InputError{err}
	}
	return err
}

// untyped matches a value of the wrong type in an error of the API.
var untyped = regexp.MustCompile(`&value\.valueUnstructured\{Value:(.*?)\}`)

// explainRefusal returns an error with the fields and the document that the API rejected.
func explainRefusal(document manifests.Document, err error) error {
	var status apierrs.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	var reasons []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			reasons = append(reasons, strings.TrimPrefix(cause.Field+": ", "<nil>: ")+cause.Message)
		}
	}
	// An unknown field is rejected earlier, and the error has no details.
	if _, field, ok := strings.Cut(status.Status().Message, "Kind="+document.Object.GetKind()+"): ."); ok {
		reasons = append(
			reasons, strings.Replace(untyped.ReplaceAllString(field, "$1"), "field not declared in schema", "unknown field", 1),
		)
	}
	if len(reasons) == 0 {
		if code := status.Status().Code; code < http.StatusBadRequest || code >= http.StatusInternalServerError {
			return fmt.Errorf("%s: %w", document.Where(), err)
		}
		reasons = []string{status.Status().Message}
	}
	return &InputError{fmt.Errorf("%s: %s: %s", document.Where(), document.Title(), strings.Join(reasons, "; "))}
}

// ensureDefaultNamespace creates the namespace "default", which may not exist yet in a new control plane.
func (d *demo) ensureDefaultNamespace(ctx context.Context) error {
	if !slices.Contains(d.namespaces(), rules.Namespace) {
		return nil
	}
	namespace := &corev1.Namespace{}
	namespace.Name = rules.Namespace
	return client.IgnoreAlreadyExists(d.client.Create(ctx, namespace))
}

// kinds formats the number of objects by kind.
func kinds(numbers map[string]int) string {
	var parts []string
	for _, kind := range []string{"Namespace", "Website", "ConfigMap"} {
		if numbers[kind] > 0 {
			parts = append(parts, count(numbers[kind], kind))
		}
	}
	return strings.Join(parts, " and ")
}

func isNamespace(document manifests.Document) bool {
	return document.Object.GetKind() == "Namespace"
}
