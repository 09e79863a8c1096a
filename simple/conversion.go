// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/app"
	"trueup.dev/resource"
)

// conversionPath is where the API server asks for objects in other versions.
const conversionPath = "/convert"

// Convert converts an object with the Converter of its kind, as the API server has it done.
func (a *App) Convert(_ context.Context, req app.ConversionRequest) (*app.RawObject, error) {
	source := req.SourceGVK
	if req.TargetGVK.GroupKind() != source.GroupKind() {
		return nil, fmt.Errorf("%s cannot become %s: conversion is between versions of a kind", source, req.TargetGVK)
	}
	obj := RawKind{
		Kind: source.Kind, APIVersion: source.GroupVersion().String(), Group: source.Group, Version: source.Version, Raw: req.Raw.Raw,
	}
	raw, err := a.convert(obj, req.TargetGVK.GroupVersion().String())
	if err != nil {
		return nil, err
	}
	return &app.RawObject{Raw: raw}, nil
}

func (a *App) convert(obj RawKind, targetAPIVersion string) ([]byte, error) {
	converter := a.config.Converters[obj.GroupVersionKind().GroupKind()]
	if converter == nil {
		return nil, fmt.Errorf("conversion of %s: %w", obj.GroupVersionKind().GroupKind(), app.ErrNotImplemented)
	}
	return convert(converter, obj, targetAPIVersion)
}

// serveConversion answers a ConversionReview: all of its objects are converted, or there is a message that says which one cannot be, and why.
func (a *App) serveConversion(w http.ResponseWriter, r *http.Request) {
	log := a.log.WithName("conversion")
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		log.Error(err, "not a conversion review with a request")
		http.Error(w, "the body must be a ConversionReview with a request", http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	converted, err := a.convertAll(review.Request, log)
	if err != nil {
		log.Error(err, "conversion failed", "request", review.Request.UID)
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	response.ConvertedObjects = converted
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		log.Error(err, "the answer could not be written", "request", response.UID)
	}
}

func (a *App) convertAll(req *apiextensionsv1.ConversionRequest, log logr.Logger) (converted []runtime.RawExtension, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			log.Error(fmt.Errorf("%v", panicked), "the converter panicked", "stack", string(debug.Stack()))
			converted, err = nil, fmt.Errorf("the converter panicked: %v", panicked)
		}
	}()
	converted = make([]runtime.RawExtension, 0, len(req.Objects))
	for i := range req.Objects {
		obj, err := rawKind(req.Objects[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		raw, err := a.convert(obj, req.DesiredAPIVersion)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(obj), err)
		}
		converted = append(converted, runtime.RawExtension{Raw: raw})
	}
	return converted, nil
}

// nameOf tells users which object of a list is meant.
func nameOf(obj RawKind) string {
	var head struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(obj.Raw, &head); err != nil || head.Metadata.Name == "" {
		return obj.Kind
	}
	return obj.Kind + " " + resource.IdentifierOf(&metav1.PartialObjectMetadata{ObjectMeta: head.Metadata}).String()
}
