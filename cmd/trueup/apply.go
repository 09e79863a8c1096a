// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/manifests"
	"trueup.dev/sandbox"
)

// apply creates or updates objects: first CustomResourceDefinitions, which are served before the next objects are
// applied, then namespaces, then all others.
func apply(ctx context.Context, sb *sandbox.Sandbox, documents []manifests.Document) error {
	if len(documents) == 0 {
		return nil
	}
	var namespaces, others []manifests.Document
	for _, document := range documents {
		switch document.Object.GroupVersionKind() {
		case apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"):
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(document.Object.Object, crd, true)
			if err == nil {
				err = sb.InstallCRDs(ctx, crd)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", document.Where(), err)
			}
		case corev1.SchemeGroupVersion.WithKind("Namespace"):
			namespaces = append(namespaces, document)
		default:
			others = append(others, document)
		}
	}
	c, err := client.New(sb.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	for _, document := range append(namespaces, others...) {
		if err := applyOne(ctx, c, document); err != nil {
			return fmt.Errorf("%s: %s: %w", document.Where(), document.Title(), err)
		}
	}
	return nil
}

// applyOne applies an object. A namespaced object without a namespace is applied in "default".
func applyOne(ctx context.Context, c client.Client, document manifests.Document) error {
	object := document.Object.DeepCopy()
	mapping, err := c.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return fmt.Errorf(
			"the API does not serve this kind of %s; add its CustomResourceDefinition to the files: %w", object.GetAPIVersion(),
			err,
		)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
		object.SetNamespace(corev1.NamespaceDefault)
	}
	return c.Apply(
		ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("trueup"), client.ForceOwnership,
	)
}
