// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// processClient is the client of a process: that of a manager, whose calls are injection points.
type processClient struct {
	client.Client

	process *process
	// live is set for a client that reads from the API server.
	live bool
}

var _ client.Client = (*processClient)(nil)

// kindOf returns the kind of an object, or of the items of a list.
func (c *processClient) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err == nil && meta.IsListType(obj) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return gvk, err
}

// detached drops the cancellation of a context, because a write that takes effect late is sent after its process ended.
func detached(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// cached reports whether an object is read from a cache.
func (c *processClient) cached(obj runtime.Object, gvk schema.GroupVersionKind) bool {
	_, untyped := obj.(runtime.Unstructured)
	return !c.live && !untyped && !c.process.program.uncached[gvk]
}

func (c *processClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	gvk, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	call := &call{site: site{act: "get", kind: gvk.Kind, key: key}, gvk: gvk, into: obj}
	if call.cached = c.cached(obj, gvk); call.cached {
		call.do = func(client.Object) error { return c.process.informer(gvk).read(gvk, key, obj, opts...) }
	} else {
		call.act = "live get"
		call.do = func(client.Object) error { return c.Client.Get(detached(ctx), key, obj, opts...) }
	}
	return c.process.submit(ctx, call)
}

func (c *processClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := c.kindOf(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	call := &call{
		site: site{
			act:  "list",
			kind: gvk.Kind,
			key:  types.NamespacedName{Namespace: options.Namespace},
		},
		gvk: gvk,
		out: list,
	}
	if call.cached = c.cached(list, gvk); call.cached {
		call.do = func(client.Object) error { return c.process.list(gvk, list, options) }
	} else {
		call.act = "live list"
		call.do = func(client.Object) error { return c.Client.List(detached(ctx), list, opts...) }
	}
	return c.process.submit(ctx, call)
}

func (c *processClient) write(
	ctx context.Context, act, sub string, obj client.Object, do func(client.Object) error,
) error {
	return c.writeWith(ctx, act, sub, obj, writeOptions{}, do)
}

// writeOptions are the options of a write that matter to oracles.
type writeOptions struct {
	// conditional is set for a delete with a precondition.
	conditional bool
	// dryRun is set for an update or a patch that is not stored.
	dryRun bool
	// manager is the field manager, or empty for that of the client.
	manager string
}

func (c *processClient) writeWith(
	ctx context.Context, act, sub string, obj client.Object, options writeOptions, do func(client.Object) error,
) error {
	gvk, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	kind := gvk.Kind
	if sub != "" {
		kind += "/" + sub
	}
	key := client.ObjectKeyFromObject(obj)
	if key.Name == "" {
		key.Name = obj.GetGenerateName()
	}
	return c.process.submit(ctx, &call{
		site: site{act: act, kind: kind, key: key}, gvk: gvk, obj: obj, writeOptions: options, do: do,
	})
}

func (c *processClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	options := writeOptions{manager: (&client.CreateOptions{}).ApplyOptions(opts).FieldManager}
	return c.writeWith(ctx, "create", "", obj, options, func(obj client.Object) error {
		return c.Client.Create(detached(ctx), obj, opts...)
	})
}

func (c *processClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.writeWith(ctx, "update", "", obj, dryRun(options.DryRun), func(obj client.Object) error {
		return c.Client.Update(detached(ctx), obj, opts...)
	})
}

func (c *processClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	act := "patch"
	if patch.Type() == types.ApplyPatchType {
		act = "apply"
	}
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.writeWith(ctx, act, "", obj, dryRun(options.DryRun), func(obj client.Object) error {
		return c.Client.Patch(detached(ctx), obj, patch, opts...)
	})
}

func (c *processClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	preconditions := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	conditional := preconditions != nil && (preconditions.UID != nil || preconditions.ResourceVersion != nil)
	return c.writeWith(ctx, "delete", "", obj, writeOptions{conditional: conditional}, func(obj client.Object) error {
		return c.Client.Delete(detached(ctx), obj, opts...)
	})
}

func (c *processClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.write(ctx, "delete all", "", obj, func(obj client.Object) error {
		return c.Client.DeleteAllOf(detached(ctx), obj, opts...)
	})
}

// Apply applies a configuration. While it waits to be served it is an object like others.
func (c *processClient) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption,
) error {
	obj, err := untyped(config)
	if err != nil {
		return err
	}
	return c.write(ctx, "apply", "", obj, func(written client.Object) error {
		if written != obj { // the response is lost
			return c.Client.Apply(
				detached(ctx), client.ApplyConfigurationFromUnstructured(written.(*unstructured.Unstructured)), opts...,
			)
		}
		return c.Client.Apply(detached(ctx), config, opts...)
	})
}

func dryRun(values []string) writeOptions { return writeOptions{dryRun: len(values) > 0} }

func untyped(config runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	return obj, json.Unmarshal(encoded, &obj.Object)
}

func (c *processClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *processClient) SubResource(name string) client.SubResourceClient {
	return &processSubResource{client: c, name: name, server: c.Client.SubResource(name)}
}

// processSubResource is the client of a subresource.
type processSubResource struct {
	client *processClient
	name   string
	server client.SubResourceClient
}

func (s *processSubResource) Get(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption,
) error {
	gvk, err := s.client.kindOf(obj)
	if err != nil {
		return err
	}
	return s.client.process.submit(ctx, &call{
		site: site{act: "live get", kind: gvk.Kind + "/" + s.name, key: client.ObjectKeyFromObject(obj)}, gvk: gvk,
		do: func(client.Object) error { return s.server.Get(detached(ctx), obj, sub, opts...) },
	})
}

func (s *processSubResource) Create(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	return s.client.write(ctx, "create", s.name, obj, func(obj client.Object) error {
		return s.server.Create(detached(ctx), obj, sub, opts...)
	})
}

func (s *processSubResource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	return s.client.writeWith(ctx, "update", s.name, obj, dryRun(options.DryRun), func(obj client.Object) error {
		return s.server.Update(detached(ctx), obj, opts...)
	})
}

func (s *processSubResource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	act := "patch"
	if patch.Type() == types.ApplyPatchType {
		act = "apply"
	}
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	return s.client.writeWith(ctx, act, s.name, obj, dryRun(options.DryRun), func(obj client.Object) error {
		return s.server.Patch(detached(ctx), obj, patch, opts...)
	})
}

func (s *processSubResource) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	obj, err := untyped(config)
	if err != nil {
		return err
	}
	return s.client.write(ctx, "apply", s.name, obj, func(written client.Object) error {
		if written != obj {
			return s.server.Apply(
				detached(ctx), client.ApplyConfigurationFromUnstructured(written.(*unstructured.Unstructured)), opts...,
			)
		}
		return s.server.Apply(detached(ctx), config, opts...)
	})
}
