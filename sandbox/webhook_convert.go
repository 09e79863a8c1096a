// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
)

// converting maps cluster and definition to the test that converts the objects of the definition.
var converting sync.Map

// convert configures the API server to send the objects of a definition to the test for conversion. It returns when the
// API server does so.
func (r *webhookRegistrar) convert(ctx context.Context, name string) error {
	key := r.cluster + " " + name
	if other, ok := converting.LoadOrStore(key, r.test); ok {
		return fmt.Errorf(
			"test %s already converts its objects, and a definition has only one conversion webhook: "+
				"do not run these tests in parallel, "+
				"or call Webhooks once for both",
			other,
		)
	}
	r.undos = append(r.undos, func(context.Context) error {
		converting.Delete(key)
		return nil
	})

	object, crd, err := r.definition(ctx, name)
	if err != nil {
		return err
	}
	version := slices.IndexFunc(
		crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served && !v.Storage },
	)
	if version < 0 {
		return errors.New("only the storage version is served, so no object is ever converted")
	}
	before, _, err := unstructured.NestedFieldCopy(object, "spec", "conversion")
	if err != nil {
		return err
	}
	conversion := r.conversion(crd.Spec.Conversion)
	columns := crd.Spec.Versions[version].AdditionalPrinterColumns
	probe := apiextensionsv1.CustomResourceColumnDefinition{
		Name:     "probe " + rand.String(suffixLength*2),
		Type:     "string",
		JSONPath: ".kind",
	}
	columnsPath := fmt.Sprintf("/spec/versions/%d/additionalPrinterColumns", version)

	// The API server replaces its state of a definition at once: when it prints the column, it also uses the webhook.
	err = r.patchDefinition(ctx, name, patchOperation{"add", "/spec/conversion", conversion},
		patchOperation{"add", columnsPath, append(slices.Clone(columns), probe)})
	if err != nil {
		return err
	}
	r.undos = append(r.undos, func(ctx context.Context) error {
		err := r.patchDefinition(ctx, name, patchOperation{"add", "/spec/conversion", before})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err := r.awaitColumn(ctx, crd, crd.Spec.Versions[version].Name, probe.Name); err != nil {
		return err
	}
	if len(columns) == 0 {
		return r.patchDefinition(ctx, name, patchOperation{"remove", columnsPath, nil})
	}
	return r.patchDefinition(ctx, name, patchOperation{"replace", columnsPath, columns})
}

// definition returns a definition as stored, and decoded into the Go type of this version.
func (r *webhookRegistrar) definition(
	ctx context.Context, name string,
) (map[string]any, *apiextensionsv1.CustomResourceDefinition, error) {
	object, err := r.client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(crdResourcesName)).Get(
		ctx, name, metav1.GetOptions{},
	)
	if err != nil {
		return nil, nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return nil, nil, err
	}
	return object.Object, crd, nil
}

// conversion returns a conversion that calls the test, with the path and the review versions of own.
func (r *webhookRegistrar) conversion(own *apiextensionsv1.CustomResourceConversion) map[string]any {
	at, versions := conversionPath, []string{"v1"}
	if own != nil && own.Webhook != nil {
		if own.Webhook.ClientConfig != nil {
			clientConfig, err := runtime.DefaultUnstructuredConverter.ToUnstructured(own.Webhook.ClientConfig)
			if named := pathOf(clientConfig); err == nil && named != "" {
				at = named
			}
		}
		versions = own.Webhook.ConversionReviewVersions
	}
	return map[string]any{
		"strategy": apiextensionsv1.WebhookConverter,
		"webhook":  map[string]any{"clientConfig": r.clientConfig(at), "conversionReviewVersions": versions},
	}
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func (r *webhookRegistrar) patchDefinition(ctx context.Context, name string, operations ...patchOperation) error {
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	crds := r.client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(crdResourcesName))
	_, err = crds.Patch(
		ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager + "-webhooks"},
	)
	return err
}

// awaitColumn waits until the API server prints a column for the objects of a version.
func (r *webhookRegistrar) awaitColumn(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version, column string,
) error {
	resource := path.Join("/apis", crd.Spec.Group, version, crd.Spec.Names.Plural)
	return poll(ctx, func() (bool, error) {
		table, err := r.rest.Get().AbsPath(resource).Param("limit", "1").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
		if err != nil && !unserved(err) {
			// An existing object is converted, and the webhook is not served yet.
			return bytes.Contains([]byte(err.Error()), []byte(r.webhooks.address())), err
		}
		if !bytes.Contains(table, []byte(column)) {
			return false, errors.New("the API server does not call the webhook yet")
		}
		return true, nil
	})
}
