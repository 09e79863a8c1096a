// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// request is a request of a reconciler to its client.
type request struct {
	Site

	gvk schema.GroupVersionKind
	// obj is the object to write; nil for reads, and for applied configurations that are not objects.
	obj client.Object
	// patch and deletion are set for their verbs.
	patch    client.Patch
	deletion *client.DeleteOptions
	// do sends the request.
	do func(*request) error
}

func (r *request) isRead() bool { return r.Verb == "get" || r.Verb == "list" }

// copied returns a deep copy of the request.
func (r *request) copied() *request {
	c := *r
	if r.obj != nil {
		c.obj = r.obj.DeepCopyObject().(client.Object)
	}
	return &c
}

// interceptor receives the requests.
type interceptor interface {
	// serve sends a request, or does something else.
	serve(ctx context.Context, r *request) error
	// end is called at the end of a reconcile.
	end(ctx context.Context) error
}

// intercepted is a client whose requests go through an interceptor.
type intercepted struct {
	client.Client

	by interceptor
}

func (c *intercepted) serve(ctx context.Context, verb, sub string, about runtime.Object, r *request) error {
	gvk, err := c.GroupVersionKindFor(about)
	if err != nil {
		return err
	}
	if meta.IsListType(about) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	r.Site, r.gvk = Site{Verb: verb, Kind: gvk.Kind}, gvk
	if sub != "" {
		r.Kind += "/" + sub
	}
	return c.by.serve(ctx, r)
}

func (c *intercepted) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return c.serve(ctx, "get", "", obj, &request{do: func(*request) error { return c.Client.Get(ctx, key, obj, opts...) }})
}

func (c *intercepted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.serve(ctx, "list", "", list, &request{do: func(*request) error { return c.Client.List(ctx, list, opts...) }})
}

func (c *intercepted) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.serve(ctx, "create", "", obj, &request{
		obj: obj, do: func(r *request) error { return c.Client.Create(ctx, r.obj, opts...) },
	})
}

func (c *intercepted) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.serve(ctx, "update", "", obj, &request{
		obj: obj, do: func(r *request) error { return c.Client.Update(ctx, r.obj, opts...) },
	})
}

func (c *intercepted) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	return c.serve(ctx, patchVerb(patch), "", obj, &request{obj: obj, patch: patch, do: func(r *request) error {
		return c.Client.Patch(ctx, r.obj, r.patch, opts...)
	}})
}

func patchVerb(patch client.Patch) string {
	if patch.Type() == types.ApplyPatchType {
		return "apply"
	}
	return "patch"
}

func (c *intercepted) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	return c.serve(ctx, "delete", "", obj, &request{obj: obj, deletion: options, do: func(r *request) error {
		return c.Client.Delete(ctx, r.obj, r.deletion)
	}})
}

func (c *intercepted) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.serve(ctx, "delete all", "", obj, &request{
		obj: obj, do: func(r *request) error { return c.Client.DeleteAllOf(ctx, r.obj, opts...) },
	})
}

// Apply applies a configuration. Those of the corpus are unstructured and contain their kind.
func (c *intercepted) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	about, ok := config.(runtime.Object)
	if !ok {
		return c.Client.Apply(ctx, config, opts...)
	}
	return c.serve(ctx, "apply", "", about, &request{
		do: func(*request) error { return c.Client.Apply(ctx, config, opts...) },
	})
}

func (c *intercepted) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *intercepted) SubResource(name string) client.SubResourceClient {
	return &interceptedPart{SubResourceClient: c.Client.SubResource(name), client: c, name: name}
}

// interceptedPart is intercepted for a subresource.
type interceptedPart struct {
	client.SubResourceClient

	client *intercepted
	name   string
}

func (p *interceptedPart) Create(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	return p.client.serve(ctx, "create", p.name, obj, &request{obj: obj, do: func(r *request) error {
		return p.SubResourceClient.Create(ctx, r.obj, sub, opts...)
	}})
}

func (p *interceptedPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return p.client.serve(ctx, "update", p.name, obj, &request{obj: obj, do: func(r *request) error {
		return p.SubResourceClient.Update(ctx, r.obj, opts...)
	}})
}

func (p *interceptedPart) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	return p.client.serve(ctx, patchVerb(patch), p.name, obj, &request{obj: obj, patch: patch, do: func(r *request) error {
		return p.SubResourceClient.Patch(ctx, r.obj, r.patch, opts...)
	}})
}
