// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
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

// intercepted returns a client whose requests go through an interceptor. The corpus applies configurations that are
// unstructured and contain their kind. Others are not intercepted, nor are reads and applies of subresources.
func intercepted(inner client.Client, by interceptor) client.Client {
	return call.NewClient(inner, func(ctx context.Context, c call.Call) error {
		about := c.Subject()
		if c.Verb == call.Apply {
			about, _ = c.Config.(runtime.Object)
		}
		if about == nil || c.OfSubresource() && (c.Verb == call.Get || c.Verb == call.Apply) {
			return c.Do(ctx, inner)
		}
		gvk, err := inner.GroupVersionKindFor(about)
		if err != nil {
			return err
		}
		if meta.IsListType(about) {
			gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		}
		r := &request{Site: Site{Verb: string(c.Verb), Kind: gvk.Kind}, gvk: gvk, patch: c.Patch}
		if c.IsApply() {
			r.Verb = string(call.Apply)
		}
		if c.Subresource != "" {
			r.Kind += "/" + c.Subresource
		}
		if !c.IsRead() {
			r.obj = c.Object
		}
		if c.Verb == call.Delete {
			r.deletion = (&client.DeleteOptions{}).ApplyOptions(call.Options[client.DeleteOption](&c))
		}
		r.do = func(r *request) error {
			sent := c
			sent.Patch = r.patch
			if r.obj != nil {
				sent.Object = r.obj
			}
			if r.deletion != nil {
				sent.Options = []client.DeleteOption{r.deletion}
			}
			return sent.Do(ctx, inner)
		}
		return by.serve(ctx, r)
	})
}
