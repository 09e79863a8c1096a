// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/app"
	"trueup.dev/resource"
)

// serveConversion answers a ConversionReview. It converts all objects, or returns a message that names the object that
// failed and the reason.
func (w *AppWebhooks) serveConversion(out http.ResponseWriter, r *http.Request) {
	log := w.Logger.WithName("conversion")
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		log.Error(err, "the body is not a ConversionReview with a request")
		http.Error(out, "the body must be a ConversionReview with a request", http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{
		UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
	}
	converted, err := w.convertAll(r.Context(), review.Request)
	if err != nil {
		log.Error(err, "conversion failed", "request", review.Request.UID)
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	response.ConvertedObjects = converted
	review.Request, review.Response = nil, response
	out.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(out).Encode(review); err != nil {
		log.Error(err, "failed to write the conversion response", "request", response.UID)
	}
}

func (w *AppWebhooks) convertAll(
	ctx context.Context, req *apiextensionsv1.ConversionRequest,
) (converted []runtime.RawExtension, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			w.Logger.Error(fmt.Errorf("%v", panicked), "the converter panicked", "stack", string(debug.Stack()))
			converted, err = nil, fmt.Errorf("the converter panicked: %v", panicked)
		}
	}()
	target, err := schema.ParseGroupVersion(req.DesiredAPIVersion)
	if err != nil {
		return nil, err
	}
	converted = make([]runtime.RawExtension, 0, len(req.Objects))
	for i := range req.Objects {
		obj := app.RawObject{Raw: req.Objects[i].Raw}
		source, err := obj.GroupVersionKind()
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		if obj, err = w.convert(ctx, obj, source, target.WithKind(source.Kind)); err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(source.Kind, req.Objects[i].Raw), err)
		}
		converted = append(converted, runtime.RawExtension{Raw: obj.Raw})
	}
	return converted, nil
}

// convert calls the app unless the object already has the target version, and checks the result.
func (w *AppWebhooks) convert(
	ctx context.Context, obj app.RawObject, source, target schema.GroupVersionKind,
) (app.RawObject, error) {
	if source == target {
		return obj, nil
	}
	converted, err := w.App.Convert(ctx, app.ConversionRequest{SourceGVK: source, TargetGVK: target, Raw: obj})
	switch {
	case err != nil:
		return obj, err
	case converted == nil:
		return obj, fmt.Errorf("the app returned no object for %s", target)
	}
	got, err := converted.GroupVersionKind()
	switch {
	case err != nil:
		return obj, fmt.Errorf("the converter returned an invalid object: %w", err)
	case got != target:
		return obj, fmt.Errorf(
			"the converter returned a %s of %s, must be a %s of %s", got.Kind, got.GroupVersion(), target.Kind,
			target.GroupVersion(),
		)
	}
	return *converted, nil
}

// nameOf identifies an object of a list in error messages.
func nameOf(kind string, raw []byte) string {
	var head struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(raw, &head); err != nil || head.Metadata.Name == "" {
		return kind
	}
	return kind + " " + resource.IdentifierOf(&metav1.PartialObjectMetadata{ObjectMeta: head.Metadata}).String()
}
