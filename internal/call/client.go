// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Func makes a call, usually with [Call.Do] of another client.
type Func func(ctx context.Context, c Call) error

// Kinds are the methods of a client that make no call.
type Kinds interface {
	Scheme() *runtime.Scheme
	RESTMapper() meta.RESTMapper
	GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error)
	IsObjectNamespaced(obj runtime.Object) (bool, error)
}

// NewClient returns a client that makes its calls with a function. Like other clients, it is comparable.
func NewClient(kinds Kinds, do Func) client.Client { return &caller{kinds, reader{do}} }

// NewReader returns a reader that makes its calls with a function. Like other readers, it is comparable.
func NewReader(do Func) client.Reader { return &reader{do} }

// caller embeds no client: if controller-runtime adds a verb, this type must fail to compile rather than bypass the
// functions. The package comment says what to do then.
type caller struct {
	Kinds
	reader
}

type reader struct{ do Func }

type subresource struct {
	do   Func
	name string
}

var (
	_ client.Client            = (*caller)(nil)
	_ client.SubResourceClient = (*subresource)(nil)
)

func (r reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.do(ctx, Call{Verb: Get, Key: key, Object: obj, GetOptions: opts})
}

func (r reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.do(ctx, Call{Verb: List, List: list, ListOptions: opts})
}

func (c *caller) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.do(ctx, Call{Verb: Create, Object: obj, Options: opts})
}

func (c *caller) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.do(ctx, Call{Verb: Update, Object: obj, Options: opts})
}

func (c *caller) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.do(ctx, Call{Verb: Patch, Object: obj, Patch: patch, Options: opts})
}

func (c *caller) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.do(ctx, Call{Verb: Apply, Config: config, Options: opts})
}

func (c *caller) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.do(ctx, Call{Verb: Delete, Object: obj, Options: opts})
}

func (c *caller) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.do(ctx, Call{Verb: DeleteAllOf, Object: obj, Options: opts})
}

func (c *caller) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *caller) SubResource(name string) client.SubResourceClient { return &subresource{c.do, name} }

func (s *subresource) Get(ctx context.Context, obj, body client.Object, opts ...client.SubResourceGetOption) error {
	return s.call(ctx, Call{Verb: Get, Object: obj, Body: body, Options: opts})
}

func (s *subresource) Create(
	ctx context.Context, obj, body client.Object, opts ...client.SubResourceCreateOption,
) error {
	return s.call(ctx, Call{Verb: Create, Object: obj, Body: body, Options: opts})
}

func (s *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.call(ctx, Call{Verb: Update, Object: obj, Options: opts})
}

func (s *subresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	return s.call(ctx, Call{Verb: Patch, Object: obj, Patch: patch, Options: opts})
}

func (s *subresource) Apply(
	ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return s.call(ctx, Call{Verb: Apply, Config: config, Options: opts})
}

func (s *subresource) call(ctx context.Context, c Call) error {
	c.Subresource, c.ofSubresource = s.name, true
	return s.do(ctx, c)
}
