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

// A cluster that is not a sandbox belongs to somebody. What is there is not touched, and what is made is taken away.

// refuseExisting returns an error for every object that exists already.
func (d *demo) refuseExisting(ctx context.Context) error {
	var problems []error
	for _, document := range d.documents {
		if isNamespace(document) {
			continue // applying one that is there changes nothing that is in it
		}
		err := d.client.Get(ctx, client.ObjectKeyFromObject(document.Object), document.Object.DeepCopy())
		switch {
		case err == nil:
			problems = append(problems, &InputError{fmt.Errorf("%s: %s exists in this cluster already, and the demo changes "+
				"nothing that is not its own",
				document.Where(), document.Title())})
		case !apierrs.IsNotFound(err):
			problems = append(problems, err)
		}
	}
	if len(problems) == 0 {
		d.created = true // from here on
	}
	return together(problems)
}

// tidyUp deletes what was applied, namespaces excepted, and waits until it is gone. The controller has to run still.
func (d *demo) tidyUp(ctx context.Context) error {
	if !d.created {
		return nil
	}
	d.Step("Tidy up")
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
				return document.Title() + " is still there", nil
			}
			if !apierrs.IsNotFound(err) {
				return "", err
			}
		}
		return "", nil
	}))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("tidy up: %w", err)
	}
	d.Done("what was applied is gone; the CustomResourceDefinition and namespaces stay")
	return nil
}
