// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func (c *serverClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var options client.ApplyOptions
	options.ApplyOptions(opts)
	return c.apply(ctx, obj, obj, *options.AsPatchOptions(), "")
}

func (c *subresourceClient) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	var options client.SubResourceApplyOptions
	options.ApplyOpts(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	named, err := configurationOf(obj)
	if err != nil {
		return err
	}
	notAllowed, err := c.served("patch", named)
	if err != nil {
		return err
	}
	if c.subresource != statusSubresource {
		return notAllowed
	}
	return c.apply(ctx, obj, body, *options.AsPatchOptions(), c.subresource)
}

// apply applies a configuration to an object or one of its subresources.
func (c *serverClient) apply(
	ctx context.Context, obj, body runtime.ApplyConfiguration, options metav1.PatchOptions, subresource string,
) error {
	named, err := configurationOf(obj)
	if err != nil {
		return err
	}
	patch, err := configurationOf(body)
	if err != nil {
		return err
	}
	t, key, err := c.target(named, client.ObjectKeyFromObject(named), false)
	if err != nil {
		return err
	}
	applied, err := c.applyTo(ctx, t, key, patch, options, subresource)
	if err != nil {
		return err
	}
	content := applied.contents(t)
	if u, ok := body.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(runtime.DeepCopyJSON(content))
		return nil
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, body)
}

func (c *serverClient) applyTo(
	ctx context.Context, t *table, key client.ObjectKey, patch *unstructured.Unstructured, options metav1.PatchOptions,
	subresource string,
) (*record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := t.needNamespace(key); err != nil {
		return nil, err
	}
	if err := validatePatchOptions(&options, types.ApplyYAMLPatchType); err != nil {
		return nil, err
	}
	return c.server.apply(
		t, key, patch, options.Force != nil && *options.Force, c.request(options.FieldManager, options.DryRun, subresource),
	)
}

// configurationOf returns the apply configuration as a client sends it.
func configurationOf(obj runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("failed to create apply request: %w", err)
	}
	content, err := decodeContent(data)
	return &unstructured.Unstructured{Object: content}, err
}

// applyData applies a configuration that has not been decoded.
func (s *Server) applyData(t *table, key client.ObjectKey, data []byte, force bool, req request) (*record, error) {
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	content, err := decodeContent(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return s.apply(t, key, &unstructured.Unstructured{Object: content}, force, req)
}

// validatePatchOptions refuses options that are invalid for a type of patch: only an apply can be forced, and it
// requires a manager.
func validatePatchOptions(options *metav1.PatchOptions, kind types.PatchType) error {
	if errs := metavalidation.ValidatePatchOptions(options, kind); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return nil
}
