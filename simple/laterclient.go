// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/resource"
)

var (
	_ client.Client            = (*laterClient)(nil)
	_ client.Reader            = (*laterReader)(nil)
	_ client.SubResourceClient = (*laterSubResource)(nil)
)

// laterClient is the client of an app that does not exist yet.
type laterClient struct {
	clients *Clients
	kind    resource.Kind
}

// do makes a call with the client of the app.
func (l *laterClient) do(call func(c client.Client) error) error {
	c, err := l.clients.configOf(l.kind)
	if err != nil {
		return err
	}
	return call(c)
}

func (l *laterClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return l.do(func(c client.Client) error { return c.Get(ctx, key, obj, opts...) })
}

func (l *laterClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.do(func(c client.Client) error { return c.List(ctx, list, opts...) })
}

func (l *laterClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return l.do(func(c client.Client) error { return c.Apply(ctx, obj, opts...) })
}

func (l *laterClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return l.do(func(c client.Client) error { return c.Create(ctx, obj, opts...) })
}

func (l *laterClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return l.do(func(c client.Client) error { return c.Delete(ctx, obj, opts...) })
}

func (l *laterClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return l.do(func(c client.Client) error { return c.Update(ctx, obj, opts...) })
}

func (l *laterClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	return l.do(func(c client.Client) error { return c.Patch(ctx, obj, patch, opts...) })
}

func (l *laterClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return l.do(func(c client.Client) error { return c.DeleteAllOf(ctx, obj, opts...) })
}

func (l *laterClient) Status() client.SubResourceWriter { return l.SubResource("status") }

func (l *laterClient) SubResource(name string) client.SubResourceClient {
	return &laterSubResource{client: l, name: name}
}

// Scheme returns the scheme of the app, once the app exists.
func (l *laterClient) Scheme() *runtime.Scheme {
	if c, err := l.clients.configOf(l.kind); err == nil {
		return c.Scheme()
	}
	return l.clients.scheme
}

// RESTMapper returns an empty mapper before the app exists.
func (l *laterClient) RESTMapper() meta.RESTMapper {
	if c, err := l.clients.configOf(l.kind); err == nil {
		return c.RESTMapper()
	}
	return meta.MultiRESTMapper{}
}

func (l *laterClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	if c, err := l.clients.configOf(l.kind); err == nil {
		return c.GroupVersionKindFor(obj)
	}
	return l.clients.kindOf(obj)
}

func (l *laterClient) IsObjectNamespaced(obj runtime.Object) (namespaced bool, err error) {
	err = l.do(func(c client.Client) error {
		namespaced, err = c.IsObjectNamespaced(obj)
		return err
	})
	return namespaced, err
}

// laterReader reads from the API server, for an app that does not exist yet.
type laterReader struct {
	clients *Clients
	kind    resource.Kind
}

func (l *laterReader) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	c, err := l.clients.configOf(l.kind)
	if err != nil {
		return err
	}
	return c.APIReader.Get(ctx, key, obj, opts...)
}

func (l *laterReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c, err := l.clients.configOf(l.kind)
	if err != nil {
		return err
	}
	return c.APIReader.List(ctx, list, opts...)
}

// laterSubResource is a subresource of a laterClient.
type laterSubResource struct {
	client *laterClient
	name   string
}

func (l *laterSubResource) do(call func(c client.SubResourceClient) error) error {
	return l.client.do(func(c client.Client) error { return call(c.SubResource(l.name)) })
}

func (l *laterSubResource) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	return l.do(func(c client.SubResourceClient) error { return c.Get(ctx, obj, sub, opts...) })
}

func (l *laterSubResource) Create(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	return l.do(func(c client.SubResourceClient) error { return c.Create(ctx, obj, sub, opts...) })
}

func (l *laterSubResource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	return l.do(func(c client.SubResourceClient) error { return c.Update(ctx, obj, opts...) })
}

func (l *laterSubResource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	return l.do(func(c client.SubResourceClient) error { return c.Patch(ctx, obj, patch, opts...) })
}

func (l *laterSubResource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return l.do(func(c client.SubResourceClient) error { return c.Apply(ctx, obj, opts...) })
}
