// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// In an existing cluster, the demo does not change existing objects, and deletes the objects that it created.

// refuseExisting returns an error that lists every object that already exists.
func (d *demo) refuseExisting(ctx context.Context) error {
	var problems []error
	for _, document := range d.documents {
		if isNamespace(document) {
			continue // applying an existing namespace does not change its contents
		}
		err := d.client.Get(ctx, client.ObjectKeyFromObject(document.Object), document.Object.DeepCopy())
		switch {
		case err == nil:
			problems = append(
				problems,
				&InputError{fmt.Errorf("%s: %s already exists in this cluster, and the demo does not change existing objects",
					document.Where(), document.Title())},
			)
		case !apierrs.IsNotFound(err):
			problems = append(problems, err)
		}
	}
	if len(problems) == 0 {
		d.created = true // from now on
	}
	return together(problems)
}

// tidyUp deletes the applied objects except namespaces, and waits until they no longer exist. The controller must still
// run.
func (d *demo) tidyUp(ctx context.Context) error {
	if !d.created {
		return nil
	}
	d.Step("Clean up")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var problems []error
	for _, document := range slices.Backward(d.documents) {
		if !isNamespace(document) {
			problems = append(problems, client.IgnoreNotFound(d.client.Delete(ctx, document.Object.DeepCopy())))
		}
	}
	problems = append(problems, d.observer.await(ctx, d.timeout, func(ctx context.Context) (string, error) {
		for _, document := range d.documents {
			if isNamespace(document) {
				continue
			}
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(document.Object.GroupVersionKind())
			err := d.client.Get(ctx, client.ObjectKeyFromObject(document.Object), object)
			if err == nil {
				return document.Title() + " still exists", nil
			}
			if !apierrs.IsNotFound(err) {
				return "", err
			}
		}
		return "", nil
	}))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	d.Done("the applied objects are deleted; the CustomResourceDefinition and namespaces are kept")
	return nil
}
