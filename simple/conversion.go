// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"fmt"

	"trueup.dev/app"
)

// Convert converts an object with the Converter of its kind. The conversion webhook calls it.
func (a *App) Convert(_ context.Context, req app.ConversionRequest) (*app.RawObject, error) {
	source := req.SourceGVK
	converter := a.config.Converters[source.GroupKind()]
	switch {
	case req.TargetGVK.GroupKind() != source.GroupKind():
		return nil, fmt.Errorf("%s cannot become %s: conversion is between versions of a kind", source, req.TargetGVK)
	case converter == nil:
		return nil, fmt.Errorf("conversion of %s: %w", source.GroupKind(), app.ErrNotImplemented)
	}
	obj := RawKind{
		Kind: source.Kind, APIVersion: source.GroupVersion().String(), Group: source.Group, Version: source.Version,
		Raw: req.Raw.Raw,
	}
	raw, err := convert(converter, obj, req.TargetGVK.GroupVersion().String())
	if err != nil {
		return nil, err
	}
	return &app.RawObject{Raw: raw}, nil
}
