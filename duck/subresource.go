// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// duckSubResourceWriter writes subresources, including the status. Dangerous clients, too, reject Create and Update of
// a duck typed object.
type duckSubResourceWriter struct {
	writer client.SubResourceWriter
	scheme SchemeAccessor
}

var _ client.SubResourceWriter = (*duckSubResourceWriter)(nil)

func (w *duckSubResourceWriter) isDuck(obj runtime.Object) bool {
	return IsDuck(obj, w.scheme.Scheme())
}

// Apply passes through, because apply configurations are not bound to a Go type.
func (w *duckSubResourceWriter) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return w.writer.Apply(ctx, obj, opts...)
}

func (w *duckSubResourceWriter) Create(
	ctx context.Context, obj client.Object, subResource client.Object, opts ...client.SubResourceCreateOption,
) error {
	if w.isDuck(obj) {
		return errCreate
	}
	return w.writer.Create(ctx, obj, subResource, opts...)
}

func (w *duckSubResourceWriter) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	if w.isDuck(obj) {
		return errUpdate
	}
	return w.writer.Update(ctx, obj, opts...)
}

func (w *duckSubResourceWriter) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	if !w.isDuck(obj) {
		return w.writer.Patch(ctx, obj, patch, opts...)
	}
	// a patch with a body applies to the body
	var options client.SubResourcePatchOptions
	options.ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	patch, err := boundPatch(patch, body)
	if err != nil {
		return err
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		return w.writer.Patch(ctx, u, patch, opts...)
	})
}

// duckSubResourceClient also reads subresources.
type duckSubResourceClient struct {
	duckSubResourceWriter
	reader client.SubResourceReader
}

var _ client.SubResourceClient = (*duckSubResourceClient)(nil)

func (c *duckSubResourceClient) Get(
	ctx context.Context, obj client.Object, subResource client.Object, opts ...client.SubResourceGetOption,
) error {
	if !c.isDuck(obj) {
		return c.reader.Get(ctx, obj, subResource, opts...)
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		// for an unstructured object, clients require an unstructured subresource
		return asUnstructured(subResource, func(sub *unstructured.Unstructured) error {
			return c.reader.Get(ctx, u, sub, opts...)
		})
	})
}
