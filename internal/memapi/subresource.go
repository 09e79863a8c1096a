// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subresourceClient is the client for a subresource.
type subresourceClient struct {
	*serverClient
	subresource string
}

func (c *serverClient) Status() client.SubResourceWriter {
	return c.SubResource(statusSubresource)
}

func (c *serverClient) SubResource(subresource string) client.SubResourceClient {
	return &subresourceClient{serverClient: c, subresource: subresource}
}

var errOnlyMetadata = errors.New("cannot update status using only metadata -- did you mean to patch?")

// served returns an error if a kind does not have the subresource. Otherwise it returns the error to use if the
// subresource does not support the verb.
func (c *subresourceClient) served(verb string, obj client.Object) (notAllowed, err error) {
	t, _, err := c.target(obj, client.ObjectKeyFromObject(obj), verb != "patch")
	if err != nil {
		return nil, err
	}
	served := c.subresource == statusSubresource && t.kind.Status || c.subresource == scaleSubresource &&
		t.kind.Scale != nil ||
		(c.subresource == evictionSubresource || c.subresource == bindingSubresource) &&
			t.kind.GroupVersionKind == podKind && t.goType != nil ||
		c.subresource == finalizeSubresource && isNamespace(t) ||
		c.subresource == approvalSubresource && t.kind.GroupVersionKind == signingRequestKind
	if !served {
		return nil, t.notServed(obj.GetName())
	}
	return t.notAllowed(verb), nil
}

func (c *subresourceClient) Get(
	ctx context.Context, obj, subresource client.Object, _ ...client.SubResourceGetOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errors.New("can not get subresource using only metadata")
	}
	if err := sameForm(obj, subresource); err != nil {
		return err
	}
	if subresource.GetName() == "" {
		subresource.SetName(obj.GetName())
	}
	notAllowed, err := c.served("get", obj)
	if err != nil {
		return err
	}
	switch c.subresource {
	case statusSubresource, approvalSubresource:
		return c.serverClient.Get(ctx, client.ObjectKeyFromObject(obj), subresource)
	case scaleSubresource:
		return c.getScale(ctx, obj, subresource)
	default:
		return notAllowed
	}
}

func (c *subresourceClient) Create(
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errOnlyMetadata
	}
	if err := sameForm(obj, subresource); err != nil {
		return err
	}
	if subresource.GetName() == "" {
		subresource.SetName(obj.GetName())
	}
	notAllowed, err := c.served("post", obj)
	if err != nil {
		return err
	}
	var options client.SubResourceCreateOptions
	options.ApplyOptions(opts)
	switch c.subresource {
	case evictionSubresource:
		return c.evict(ctx, obj, subresource, options.DryRun)
	case bindingSubresource:
		return c.bind(ctx, obj, subresource, options.DryRun)
	default:
		return notAllowed
	}
}

// sameForm refuses a typed subresource for an unstructured object.
func sameForm(obj, subresource client.Object) error {
	if _, ok := obj.(runtime.Unstructured); ok {
		if _, ok := subresource.(runtime.Unstructured); !ok {
			return fmt.Errorf("unstructured client did not understand object: %T", subresource)
		}
	}
	return nil
}

func (c *subresourceClient) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errOnlyMetadata
	}
	var options client.SubResourceUpdateOptions
	options.ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	if body.GetName() == "" {
		body.SetName(obj.GetName())
	}
	if body.GetNamespace() == "" {
		body.SetNamespace(obj.GetNamespace())
	}
	notAllowed, err := c.served("put", obj)
	if err != nil {
		return err
	}
	req := c.request(options.FieldManager, options.DryRun, c.subresource)
	switch c.subresource {
	case statusSubresource:
		return c.put(ctx, obj, body, req)
	case approvalSubresource: // it may only change conditions, but nothing relies on that
		req.subresource = statusSubresource
		return c.put(ctx, obj, body, req)
	case finalizeSubresource:
		return c.finalize(ctx, body, req)
	case scaleSubresource:
		return c.updateScale(ctx, obj, body, req)
	default:
		return notAllowed
	}
}

func (c *subresourceClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	notAllowed, err := c.served("patch", obj)
	if err != nil {
		return err
	}
	var options client.SubResourcePatchOptions
	options.ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	switch c.subresource {
	case statusSubresource, approvalSubresource:
		return c.patch(ctx, obj, body, patch, *options.AsPatchOptions(), statusSubresource)
	case scaleSubresource:
		return c.patchScale(ctx, obj, body, patch, c.request(options.FieldManager, options.DryRun, c.subresource))
	default:
		return notAllowed
	}
}
