// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	errCreate = errors.New("Create is not supported for the duck typed objects")
	errUpdate = errors.New("Update is not supported for the duck typed objects, use Patch instead")
)

// NewDuckAwareClientWrapper returns a client that can also get, list, watch, patch and delete duck typed objects.
// Objects that are not duck typed, see [IsDuck], are passed to the wrapped client unchanged.
//
// A duck type has only some fields of its object, so writing all of it would remove the other fields: Create and Update
// of duck typed objects return an error.
//
// The returned client is a [client.WithWatch]; Watch panics if the wrapped client does not implement it.
func NewDuckAwareClientWrapper(client client.Client) client.Client {
	return newDuckClient(client, false)
}

// NewDangerousDuckAwareClientWrapper is [NewDuckAwareClientWrapper] with Create and Update for duck typed objects.
// Update is dangerous: it removes the fields that the duck type does not have from the object. Use it only if the duck
// type has every relevant field. Subresources, including status, can still only be patched.
func NewDangerousDuckAwareClientWrapper(client client.Client) client.Client {
	return newDuckClient(client, true)
}

func newDuckClient(wrapped client.Client, dangerous bool) *duckClient {
	return &duckClient{
		duckReader: duckReader{reader: wrapped, scheme: wrapped},
		client:     wrapped,
		dangerous:  dangerous,
	}
}

// duckClient embeds no client: if controller-runtime adds an operation, this type must fail to compile rather than
// bypass the conversion.
type duckClient struct {
	duckReader
	client    client.Client
	dangerous bool
}

var _ client.WithWatch = (*duckClient)(nil)

func (c *duckClient) isDuck(obj runtime.Object) bool {
	return IsDuck(obj, c.client.Scheme())
}

// Apply passes through, because apply configurations are not bound to a Go type.
func (c *duckClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.client.Apply(ctx, obj, opts...)
}

func (c *duckClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if !c.isDuck(obj) {
		return c.client.Create(ctx, obj, opts...)
	}
	if !c.dangerous {
		return errCreate
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		return c.client.Create(ctx, u, opts...)
	})
}

func (c *duckClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if !c.isDuck(obj) {
		return c.client.Delete(ctx, obj, opts...)
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		return c.client.Delete(ctx, u, opts...)
	})
}

func (c *duckClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if !c.isDuck(obj) {
		return c.client.Update(ctx, obj, opts...)
	}
	if !c.dangerous {
		return errUpdate
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		return c.client.Update(ctx, u, opts...)
	})
}

func (c *duckClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	if !c.isDuck(obj) {
		return c.client.Patch(ctx, obj, patch, opts...)
	}
	patch, err := boundPatch(patch, obj)
	if err != nil {
		return err
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		return c.client.Patch(ctx, u, patch, opts...)
	})
}

func (c *duckClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if !c.isDuck(obj) {
		return c.client.DeleteAllOf(ctx, obj, opts...)
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		return c.client.DeleteAllOf(ctx, u, opts...)
	})
}

func (c *duckClient) Status() client.SubResourceWriter {
	return &duckSubResourceWriter{writer: c.client.Status(), scheme: c.client}
}

func (c *duckClient) SubResource(subResource string) client.SubResourceClient {
	wrapped := c.client.SubResource(subResource)
	return &duckSubResourceClient{
		duckSubResourceWriter: duckSubResourceWriter{writer: wrapped, scheme: c.client},
		reader:                wrapped,
	}
}

func (c *duckClient) Scheme() *runtime.Scheme {
	return c.client.Scheme()
}

func (c *duckClient) RESTMapper() meta.RESTMapper {
	return c.client.RESTMapper()
}

func (c *duckClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	if isKnown(obj, c.client.Scheme()) {
		return c.client.GroupVersionKindFor(obj)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		return schema.GroupVersionKind{}, errors.New("object must directly define APIVersion and Kind")
	}
	return gvk, nil
}

func (c *duckClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	if !c.isDuck(obj) {
		return c.client.IsObjectNamespaced(obj)
	}
	u := &unstructured.Unstructured{}
	if err := convert(obj, u); err != nil {
		return false, err
	}
	return c.client.IsObjectNamespaced(u)
}
