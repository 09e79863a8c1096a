// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verb is a method of a client or of the client of a subresource.
type Verb string

// The verbs of objects. Subresources have the verbs Get, Create, Update, Patch and Apply.
const (
	Get         Verb = "get"
	List        Verb = "list"
	Create      Verb = "create"
	Update      Verb = "update"
	Patch       Verb = "patch"
	Apply       Verb = "apply"
	Delete      Verb = "delete"
	DeleteAllOf Verb = "delete all"
)

// Call is a call of a client. It is passed by value: a call costs no allocation, and it can be kept.
type Call struct {
	Verb Verb
	// Subresource is the name of the subresource, or empty.
	Subresource string
	// Key is the key of the object to get. For subresources, it is empty.
	Key client.ObjectKey
	// Object is the object that is read or written, or that has the subresource. It is nil for List and Apply.
	Object client.Object
	// Body is the body of Get and Create of a subresource. For other verbs, it is in the options: see [Call.Written].
	Body client.Object
	// List is the list to read.
	List client.ObjectList
	// Config is the configuration to apply.
	Config runtime.ApplyConfiguration
	// Patch is the patch of the verb of this name.
	Patch client.Patch
	// GetOptions and ListOptions are the options of reads of objects. Reads are frequent, and a slice in an interface is
	// an allocation.
	GetOptions  []client.GetOption
	ListOptions []client.ListOption
	// Options are the options of other calls: a slice with the type of the verb, such as []client.CreateOption. See
	// [Options].
	Options any

	// ofSubresource is set by the client of a subresource: its name may be empty.
	ofSubresource bool
}

// Options returns the options of a call, or nil if its options have another type.
func Options[O any](c *Call) []O {
	opts, _ := c.Options.([]O)
	return opts
}

// Do makes the call with a client.
func (c *Call) Do(ctx context.Context, to client.Client) error {
	if c.OfSubresource() {
		return c.doSubresource(ctx, to.SubResource(c.Subresource))
	}
	switch c.Verb {
	case Get, List:
		return c.Read(ctx, to)
	case Create:
		return to.Create(ctx, c.Object, Options[client.CreateOption](c)...)
	case Update:
		return to.Update(ctx, c.Object, Options[client.UpdateOption](c)...)
	case Patch:
		return to.Patch(ctx, c.Object, c.Patch, Options[client.PatchOption](c)...)
	case Apply:
		return to.Apply(ctx, c.Config, Options[client.ApplyOption](c)...)
	case Delete:
		return to.Delete(ctx, c.Object, Options[client.DeleteOption](c)...)
	case DeleteAllOf:
		return to.DeleteAllOf(ctx, c.Object, Options[client.DeleteAllOfOption](c)...)
	}
	return c.unknown()
}

// Read makes a call that gets an object or a list with a reader.
func (c *Call) Read(ctx context.Context, from client.Reader) error {
	switch c.Verb {
	case Get:
		return from.Get(ctx, c.Key, c.Object, c.GetOptions...)
	case List:
		return from.List(ctx, c.List, c.ListOptions...)
	}
	return c.unknown()
}

func (c *Call) doSubresource(ctx context.Context, to client.SubResourceClient) error {
	switch c.Verb {
	case Get:
		return to.Get(ctx, c.Object, c.Body, Options[client.SubResourceGetOption](c)...)
	case Create:
		return to.Create(ctx, c.Object, c.Body, Options[client.SubResourceCreateOption](c)...)
	case Update:
		return to.Update(ctx, c.Object, Options[client.SubResourceUpdateOption](c)...)
	case Patch:
		return to.Patch(ctx, c.Object, c.Patch, Options[client.SubResourcePatchOption](c)...)
	case Apply:
		return to.Apply(ctx, c.Config, Options[client.SubResourceApplyOption](c)...)
	}
	return c.unknown()
}

func (c *Call) unknown() error {
	return fmt.Errorf("a client has no call with verb %q and subresource %q", c.Verb, c.Subresource)
}

// OfSubresource reports whether the call is made with the client of a subresource.
func (c *Call) OfSubresource() bool { return c.ofSubresource || c.Subresource != "" }

// IsRead reports whether the call changes nothing.
func (c *Call) IsRead() bool { return c.Verb == Get || c.Verb == List }

// IsApply reports whether the call is a server-side apply, of a configuration or as a patch.
func (c *Call) IsApply() bool {
	return c.Verb == Apply || c.Verb == Patch && c.Patch.Type() == types.ApplyPatchType
}

// Subject returns the object or the list of the call. It returns nil for Apply: a configuration need not be an object.
func (c *Call) Subject() runtime.Object {
	switch {
	case c.Object != nil:
		return c.Object
	case c.List != nil:
		return c.List
	}
	return nil
}
