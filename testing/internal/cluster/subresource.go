// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Status implements [client.Client].
func (c *caseClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.Client].
func (c *caseClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{caseClient: c, real: c.real.SubResource(name)}
}

// subresourceClient is the client for a subresource of a case on a cluster.
type subresourceClient struct {
	*caseClient
	real client.SubResourceClient
}

// Get implements [client.SubResourceReader].
func (s *subresourceClient) Get(
	ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceGetOption,
) error {
	rec, u, err := s.parent(ctx, obj)
	if err != nil {
		return err
	}
	body, err := s.toUnstructured(subResource)
	if err != nil {
		return err
	}
	if err := s.real.Get(ctx, u, body, opts...); err != nil {
		return err
	}
	return s.intoBody(rec, body, subResource)
}

// Create implements [client.SubResourceWriter].
func (s *subresourceClient) Create(
	ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceCreateOption,
) error {
	rec, u, err := s.parent(ctx, obj)
	if err != nil {
		return err
	}
	body, err := s.toUnstructured(subResource)
	if err != nil {
		return err
	}
	err = s.through(ctx, rec, u, "", nil, func(string) error { return s.real.Create(ctx, u, body, opts...) })
	if err != nil {
		return err
	}
	return s.intoBody(rec, body, subResource)
}

// Update implements [client.SubResourceWriter].
func (s *subresourceClient) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	if options.SubResourceBody == nil {
		return s.write(obj, func(sent, live *unstructured.Unstructured) error {
			rec, err := s.target(ctx, sent, false)
			if err != nil {
				return err
			}
			var foreign []metav1.OwnerReference
			changed, err := s.change(ctx, rec, sent.GroupVersionKind(), sent.GetResourceVersion(), s.update(rec, sent, &foreign,
				func(u *unstructured.Unstructured) error { return s.real.Update(ctx, u, options) }))
			if err != nil {
				return err
			}
			live.Object = changed.Object
			s.written(rec, sent.Object, live, options.DryRun)
			return nil
		})
	}
	rec, u, err := s.parent(ctx, obj)
	if err != nil {
		return err
	}
	body, err := s.toUnstructured(options.SubResourceBody)
	if err != nil {
		return err
	}
	update := client.SubResourceUpdateOptions{UpdateOptions: options.UpdateOptions, SubResourceBody: body}
	sent := body.DeepCopy()
	err = s.through(ctx, rec, u, sent.GetResourceVersion(), options.DryRun, func(version string) error {
		var foreign []metav1.OwnerReference
		_, err := s.update(rec, sent, &foreign, func(hidden *unstructured.Unstructured) error {
			body.Object = hidden.Object
			return s.real.Update(ctx, u, &update)
		})(version, func(*unstructured.Unstructured) {})
		return err
	})
	if err != nil {
		return err
	}
	return s.intoBody(rec, body, options.SubResourceBody)
}

// Patch implements [client.SubResourceWriter].
func (s *subresourceClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	if options.SubResourceBody == nil {
		return s.patch(ctx, obj, patch, options.DryRun, func(live *unstructured.Unstructured, patch client.Patch) error {
			return s.real.Patch(ctx, live, patch, options)
		})
	}
	rec, u, err := s.parent(ctx, obj)
	if err != nil {
		return err
	}
	data, err := patch.Data(options.SubResourceBody)
	if err != nil {
		return err
	}
	hidden, err := s.hidePatch(rec, obj.GetNamespace(), patch.Type(), data)
	if err != nil {
		return err
	}
	body, err := s.toUnstructured(options.SubResourceBody)
	if err != nil {
		return err
	}
	send := client.SubResourcePatchOptions{PatchOptions: options.PatchOptions, SubResourceBody: body}
	err = s.through(ctx, rec, u, hidden.version, options.DryRun, func(version string) error {
		data, err := hidden.data(version)
		if err != nil {
			return err
		}
		return s.real.Patch(ctx, u, client.RawPatch(patch.Type(), data), &send)
	})
	if err != nil {
		return err
	}
	return s.intoBody(rec, body, options.SubResourceBody)
}

// Apply implements [client.SubResourceWriter].
func (s *subresourceClient) Apply(
	ctx context.Context, applied runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return s.apply(ctx, applied, func(live *unstructured.Unstructured) error {
		return s.real.Apply(ctx, client.ApplyConfigurationFromUnstructured(live), options)
	}, options.DryRun)
}

// parent returns the object of the case that has the subresource of a call.
func (s *subresourceClient) parent(ctx context.Context, obj client.Object) (
	*record, *unstructured.Unstructured, error,
) {
	kind, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		return nil, nil, err
	}
	u := newUnstructured(kind, obj.GetNamespace(), obj.GetName())
	rec, err := s.target(ctx, u, false)
	return rec, u, err
}

// through calls a function that writes to a subresource with a type of its own, and reads the changed object.
func (s *subresourceClient) through(
	ctx context.Context, rec *record, u *unstructured.Unstructured, sent string, dryRun []string, call func(
		version string,
	) error,
) error {
	kind, isGone := u.GroupVersionKind(), false
	changed, err := s.change(ctx, rec, kind, sent, func(version string, _ func(
		*unstructured.Unstructured,
	),
	) (*unstructured.Unstructured, error) {
		if err := call(version); err != nil {
			return nil, err
		}
		live := newUnstructured(kind, u.GetNamespace(), u.GetName())
		err := s.caseClient.real.Get(ctx, client.ObjectKeyFromObject(live), live)
		isGone = apierrs.IsNotFound(err)
		return live, client.IgnoreNotFound(err)
	})
	if err != nil || isGone || len(dryRun) > 0 {
		return err
	}
	s.settle(rec, nil, changed)
	return nil
}

// intoBody sets a subresource, which has the metadata of its object, to the response of the server.
func (s *subresourceClient) intoBody(rec *record, body *unstructured.Unstructured, obj client.Object) error {
	if body.GetUID() == rec.uid {
		s.reveal(rec, body)
	}
	return into(body.Object, obj)
}
