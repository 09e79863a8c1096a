// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/internal/memapi/kinds"
)

// Conversion converts custom objects of definitions with a webhook for that. It returns the response of the webhook, or
// an error if the webhook could not be called. It must not send requests to the server. For the same objects it must
// always return the same: results are kept.
type Conversion func(*apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error)

// conversionUID identifies the request in a conversion review. A real server has another one for each request.
const conversionUID = "memapi"

// convert returns content in another version of its kind. The content becomes part of the result. Fields that the other
// version does not have remain.
func (s *Server) convert(from, to *kinds.Kind, content map[string]any) (map[string]any, error) {
	switch {
	case from.Version == to.Version:
	case to.Versions.Webhook:
		converted, err := s.callConversion(from, to, content)
		if err != nil {
			return nil, internal(err)
		}
		return converted, nil
	default:
		content["apiVersion"] = to.GroupVersion().String()
	}
	return content, nil
}

// callConversion calls the webhook.
// (k8s.io/apiextensions-apiserver, pkg/apiserver/conversion/webhook_converter.go)
func (s *Server) callConversion(from, to *kinds.Kind, content map[string]any) (map[string]any, error) {
	failed := func(text string, err error) error {
		return fmt.Errorf("conversion webhook for %v %s: %w", from.GroupVersionKind, text, err)
	}
	if s.conversion == nil {
		return nil, failed("failed", errors.New("no webhook is registered"))
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	review := &apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID: conversionUID, DesiredAPIVersion: to.GroupVersion().String(), Objects: []runtime.RawExtension{{Raw: data}},
	}}
	review.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"))
	response, err := s.conversion(review)
	if err != nil {
		return nil, failed("failed", err)
	}
	objects, err := convertedObjects(response)
	if err != nil {
		return nil, failed("failed", err)
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf(
			"conversion webhook for %v returned %d objects, expected %d", from.GroupVersionKind, len(objects), 1,
		)
	}
	converted := &unstructured.Unstructured{}
	if err := converted.UnmarshalJSON(objects[0]); err != nil {
		return nil, err
	}
	if got := converted.GroupVersionKind().GroupVersion(); got != to.GroupVersion() {
		return nil, failed("returned invalid object at index 0", fmt.Errorf(
			"invalid groupVersion (expected %v, received %v)", to.GroupVersion(), got,
		))
	}
	if got := converted.GetKind(); got != from.Kind {
		return nil, failed(
			"returned invalid object at index 0", fmt.Errorf("invalid kind (expected %v, received %v)", from.Kind, got),
		)
	}
	original := &unstructured.Unstructured{Object: content}
	if err := sameIdentity(original, converted); err != nil {
		return nil, failed("returned invalid object", err)
	}
	if err := restoreMetadata(original, converted); err != nil {
		return nil, failed("returned invalid metadata", err)
	}
	return converted.Object, nil
}

// convertedObjects returns the objects in the response of a webhook as JSON.
func convertedObjects(review *apiextensionsv1.ConversionReview) ([][]byte, error) {
	want := apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview")
	if got := review.GroupVersionKind(); got != want {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, got)
	}
	response := review.Response
	switch {
	case response == nil:
		return nil, errors.New("no response provided")
	case response.UID != conversionUID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", conversionUID, response.UID)
	case response.Result.Status == metav1.StatusSuccess:
	case response.Result.Message != "":
		return nil, errors.New(response.Result.Message)
	default:
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", response.Result.Status)
	}
	var objects [][]byte
	for _, obj := range response.ConvertedObjects {
		data, err := json.Marshal(obj)
		if err != nil {
			return nil, err
		}
		objects = append(objects, data)
	}
	return objects, nil
}

// sameIdentity refuses a conversion that changes which object it is.
func sameIdentity(in, out *unstructured.Unstructured) error {
	if e, a := in.GetName(), out.GetName(); e != a {
		return fmt.Errorf("must have the same name: %v != %v", e, a)
	}
	if e, a := in.GetNamespace(), out.GetNamespace(); e != a {
		return fmt.Errorf("must have the same namespace: %v != %v", e, a)
	}
	if e, a := in.GetUID(), out.GetUID(); e != a {
		return fmt.Errorf("must have the same UID: %v != %v", e, a)
	}
	return nil
}

// restoreMetadata undoes the changes of metadata by a conversion, except for labels and annotations.
func restoreMetadata(original, converted *unstructured.Unstructured) error {
	value, found := converted.Object["metadata"]
	if !found {
		return errors.New("missing metadata in converted object")
	}
	metadata, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", value)
	}
	restored, _ := runtime.DeepCopyJSONValue(original.Object["metadata"]).(map[string]any)
	if restored == nil {
		restored = map[string]any{}
	}
	for _, name := range []string{"labels", "annotations"} {
		value, found := metadata[name]
		if !found || value == nil {
			delete(restored, name)
			continue
		}
		entries, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
		}
		if err := validateEntries(name, entries); err != nil {
			return err
		}
		restored[name] = entries
	}
	converted.Object["metadata"] = restored
	return nil
}

// validateEntries validates labels or annotations.
func validateEntries(name string, entries map[string]any) error {
	texts := make(map[string]string, len(entries))
	for key, value := range entries {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, value)
		}
		texts[key] = text
	}
	var errs field.ErrorList
	if name == "labels" {
		errs = metav1validation.ValidateLabels(texts, metadataPath.Child("labels"))
	} else {
		errs = apivalidation.ValidateAnnotations(texts, metadataPath.Child("annotation"))
	}
	return errs.ToAggregate()
}
