// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
)

var (
	//nolint:staticcheck // Create is the name of a method.
	errCreate = errors.New("Create is not supported for the duck typed objects")
	//nolint:staticcheck // Update is the name of a method.
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
	duck := &converter{scheme: wrapped, dangerous: dangerous, send: func(ctx context.Context, c call.Call) error {
		return c.Do(ctx, wrapped)
	}}
	return &duckClient{call.NewClient(wrapped, duck.do), wrapped}
}

// duckClient converts the objects of calls. The client that it embeds makes them with a [converter].
type duckClient struct {
	client.Client
	wrapped client.Client
}

var _ client.WithWatch = (*duckClient)(nil)

func (c *duckClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	if isKnown(obj, c.Scheme()) {
		return c.wrapped.GroupVersionKindFor(obj)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		return schema.GroupVersionKind{}, errors.New("object must directly define APIVersion and Kind")
	}
	return gvk, nil
}

func (c *duckClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	if !IsDuck(obj, c.Scheme()) {
		return c.wrapped.IsObjectNamespaced(obj)
	}
	u := &unstructured.Unstructured{}
	if err := convert(obj, u); err != nil {
		return false, err
	}
	return c.wrapped.IsObjectNamespaced(u)
}

// converter makes calls with the unstructured form of duck typed objects.
type converter struct {
	scheme    SchemeAccessor
	dangerous bool
	send      call.Func
}

func (d *converter) do(ctx context.Context, c call.Call) error {
	// apply configurations have no subject: they are not bound to a Go type
	if !IsDuck(c.Subject(), d.scheme.Scheme()) {
		return d.send(ctx, c)
	}
	// dangerous clients, too, write no subresources
	writesAll := d.dangerous && !c.OfSubresource()
	switch {
	case c.Verb == call.Create && !writesAll:
		return errCreate
	case c.Verb == call.Update && !writesAll:
		return errUpdate
	case c.Verb == call.Patch:
		// The data of a patch may depend on the Go type it was made for, as the data of a strategic merge patch does.
		data, err := c.Patch.Data(c.Written())
		if err != nil {
			return err
		}
		c.Patch = client.RawPatch(c.Patch.Type(), data)
	case c.Verb == call.List:
		return asUnstructuredList(c.List, func(u *unstructured.UnstructuredList) error {
			c.List = u
			return d.send(ctx, c)
		})
	}
	return asUnstructured(c.Object, func(u *unstructured.Unstructured) error {
		c.Object = u
		if c.Verb != call.Get || !c.OfSubresource() {
			return d.send(ctx, c)
		}
		// for an unstructured object, clients require an unstructured subresource
		return asUnstructured(c.Body, func(body *unstructured.Unstructured) error {
			c.Body = body
			return d.send(ctx, c)
		})
	})
}
