// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/duck"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/testing/internal/fakeapi"
)

// givenObjects are copies of the given objects of a config, as the API stores them.
type givenObjects struct {
	objects, apiObjects, statusSubResources []client.Object
}

// copyGiven sets c.given, and returns all problems of the given values.
func (c *ExpectConfig) copyGiven() []error {
	if c.Scheme == nil {
		//nolint:staticcheck // Scheme is the name of a field.
		return []error{errors.New("Scheme: required, it must know the kinds of all objects")}
	}
	var problems []error
	for _, field := range []struct {
		name     string
		objs     []client.Object
		stored   *[]client.Object
		validate func([]client.Object, *runtime.Scheme) error
	}{
		{"StatusSubResourceTypes", c.StatusSubResourceTypes, &c.given.statusSubResources, nil},
		{"GivenObjects", c.GivenObjects, &c.given.objects, fakeapi.ValidateGiven},
		{"APIGivenObjects", c.APIGivenObjects, &c.given.apiObjects, fakeapi.ValidateGiven},
	} {
		before := len(problems)
		for i, obj := range field.objs {
			stored, err := givenObject(obj, c.Scheme)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s[%d]: %w", field.name, i, err))
			}
			*field.stored = append(*field.stored, stored)
		}
		if field.validate != nil && len(problems) == before {
			problems = append(problems, prefixed(field.name, field.validate(*field.stored, c.Scheme))...)
		}
	}
	for i, reactor := range c.WithReactors {
		if reactor == nil {
			problems = append(problems, fmt.Errorf("WithReactors[%d]: is nil", i))
		}
	}
	return problems
}

// prefixed returns the errors of a joined error, each with a prefix.
func prefixed(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	return each(errs, func(err error) error { return fmt.Errorf("%s%w", prefix, err) })
}

// givenObject returns a copy of an object as it is stored: created before any test, and as an unstructured object if it
// is a duck.
func givenObject(obj client.Object, scheme *runtime.Scheme) (client.Object, error) {
	obj, err := unwrap(obj)
	if err != nil {
		return nil, err
	}
	if _, err := apiutil.GVKForObject(obj, scheme); err != nil && !duck.IsDuck(obj, scheme) {
		return nil, fmt.Errorf("the kind of %T is neither in the Scheme nor set on the object", obj)
	}
	if created := obj.GetCreationTimestamp(); created.IsZero() {
		obj.SetCreationTimestamp(metav1.NewTime(time.UnixMilli(1000)))
	}
	// The fake client would add the kind of bare metadata to the scheme.
	if _, metadata := obj.(*metav1.PartialObjectMetadata); !metadata && !duck.IsDuck(obj, scheme) {
		return obj, nil
	}
	u := &unstructured.Unstructured{}
	return u, duck.Convert(obj, u)
}

// unwrap returns a copy of an object. DeepCopyObject of a wrapper returns the wrapped object.
func unwrap(obj client.Object) (client.Object, error) {
	if nilcheck.IsNil(obj) {
		return nil, errors.New("is nil")
	}
	copied := obj.DeepCopyObject()
	unwrapped, ok := copied.(client.Object)
	if !ok || nilcheck.IsNil(unwrapped) {
		return nil, fmt.Errorf("DeepCopyObject of %T returns a %T, not an object", obj, copied)
	}
	return unwrapped, nil
}
