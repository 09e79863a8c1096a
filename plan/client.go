// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// overlayClient is the client that reconcilers hold. It reads from and writes to the overlay of the current plan.
type overlayClient struct {
	cluster client.Client
	indexes *indexes
	current atomic.Pointer[overlay]
}

var _ client.Client = (*overlayClient)(nil)

func (c *overlayClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return c.current.Load().get(ctx, key, obj, opts...)
}

func (c *overlayClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.current.Load().list(ctx, c.indexes, list, opts...)
}

func (c *overlayClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.write(ctx, "create", "", obj, func(to client.Client, obj client.Object, dry bool) error {
		return to.Create(ctx, obj, with[client.CreateOption](opts, dry)...)
	})
}

func (c *overlayClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.write(ctx, "update", "", obj, func(to client.Client, obj client.Object, dry bool) error {
		return to.Update(ctx, obj, with[client.UpdateOption](opts, dry)...)
	})
}

func (c *overlayClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	return c.write(ctx, "patch", "", obj, func(to client.Client, obj client.Object, dry bool) error {
		return to.Patch(ctx, obj, patch, with[client.PatchOption](opts, dry)...)
	})
}

func (c *overlayClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write(ctx, verbDelete, "", obj, func(to client.Client, obj client.Object, dry bool) error {
		return to.Delete(ctx, obj, with[client.DeleteOption](opts, dry)...)
	})
}

func (c *overlayClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.current.Load().deleteAll(ctx, c.indexes, obj, opts...)
}

func (c *overlayClient) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption,
) error {
	return c.apply(ctx, "", config, func(to client.Client, config runtime.ApplyConfiguration, dry bool) error {
		return to.Apply(ctx, config, with[client.ApplyOption](opts, dry)...)
	})
}

func (c *overlayClient) write(
	ctx context.Context, verb, subresource string, obj client.Object,
	do func(to client.Client, obj client.Object, dryRun bool) error,
) error {
	return c.current.Load().write(ctx, request{verb: verb, subresource: subresource, obj: obj, do: do})
}

// apply makes a request with an apply configuration, and writes the response into it.
func (c *overlayClient) apply(
	ctx context.Context, subresource string, config runtime.ApplyConfiguration,
	do func(to client.Client, config runtime.ApplyConfiguration, dryRun bool) error,
) error {
	named, err := newApplied(config)
	if err != nil {
		return err
	}
	return c.write(ctx, "patch", subresource, named, func(to client.Client, obj client.Object, dry bool) error {
		if !dry {
			return do(to, config, false)
		}
		attempt := client.ApplyConfigurationFromUnstructured(&obj.(*applied).Unstructured)
		return do(to, attempt, true)
	})
}

// with adds the option for a dry run.
func with[T any](opts []T, dryRun bool) []T {
	if dryRun {
		opts = append(opts[:len(opts):len(opts)], any(client.DryRunAll).(T))
	}
	return opts
}

func (c *overlayClient) Scheme() *runtime.Scheme     { return c.cluster.Scheme() }
func (c *overlayClient) RESTMapper() meta.RESTMapper { return c.cluster.RESTMapper() }
func (c *overlayClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.cluster.GroupVersionKindFor(obj)
}

func (c *overlayClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return c.cluster.IsObjectNamespaced(obj)
}

func (c *overlayClient) Status() client.SubResourceWriter { return c.SubResource(statusSubresource) }

func (c *overlayClient) SubResource(name string) client.SubResourceClient {
	return &overlaySubResource{c, name}
}

// overlaySubResource is the client of a subresource.
type overlaySubResource struct {
	*overlayClient
	name string
}

func (c *overlaySubResource) Get(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption,
) error {
	o := c.current.Load()
	o.mu.Lock()
	defer o.mu.Unlock()
	gvk, err := o.plainKind(obj)
	if err != nil {
		return err
	}
	if o.has(objectID{gvk, client.ObjectKeyFromObject(obj)}) {
		return o.server.Client(o.manager).SubResource(c.name).Get(ctx, obj, sub, opts...)
	}
	return c.cluster.SubResource(c.name).Get(ctx, obj, sub, opts...)
}

func (c *overlaySubResource) Create(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	return c.write(ctx, "create", c.name, obj, func(to client.Client, obj client.Object, _ bool) error {
		return to.SubResource(c.name).Create(ctx, obj, sub, opts...)
	})
}

func (c *overlaySubResource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	return c.write(ctx, "update", c.name, obj, func(to client.Client, obj client.Object, dry bool) error {
		return to.SubResource(c.name).Update(ctx, obj, with[client.SubResourceUpdateOption](opts, dry)...)
	})
}

func (c *overlaySubResource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	return c.write(ctx, "patch", c.name, obj, func(to client.Client, obj client.Object, dry bool) error {
		return to.SubResource(c.name).Patch(ctx, obj, patch, with[client.SubResourcePatchOption](opts, dry)...)
	})
}

func (c *overlaySubResource) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return c.apply(ctx, c.name, config, func(to client.Client, config runtime.ApplyConfiguration, dry bool) error {
		return to.SubResource(c.name).Apply(ctx, config, with[client.SubResourceApplyOption](opts, dry)...)
	})
}
