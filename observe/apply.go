// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type observedSubResource struct {
	*calls
	name   string
	client client.SubResourceClient
}

var _ client.SubResourceClient = (*observedSubResource)(nil)

func (s *observedSubResource) Get(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption,
) error {
	call := &Call{Verb: VerbGet, Subresource: s.name, Object: client.ObjectKeyFromObject(obj)}
	return s.observe(ctx, call, obj, func() error { return s.client.Get(ctx, obj, sub, opts...) }, func(call *Call) {
		call.After = sub.GetResourceVersion()
	})
}

// Create does not report a resource version, because what it creates is not the object.
func (s *observedSubResource) Create(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	call := &Call{Verb: VerbCreate, Subresource: s.name, Object: client.ObjectKeyFromObject(obj)}
	call.DryRun = len((&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun) > 0
	return s.observe(ctx, call, obj, func() error { return s.client.Create(ctx, obj, sub, opts...) }, func(*Call) {})
}

func (s *observedSubResource) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	dryRun := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).DryRun
	return s.write(ctx, Call{Verb: VerbUpdate, Subresource: s.name}, obj, dryRun, func() error {
		return s.client.Update(ctx, obj, opts...)
	})
}

func (s *observedSubResource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	dryRun := (&client.SubResourcePatchOptions{}).ApplyOptions(opts).DryRun
	return s.write(ctx, Call{Verb: VerbPatch, Subresource: s.name}, obj, dryRun, func() error {
		return s.client.Patch(ctx, obj, patch, opts...)
	})
}

func (s *observedSubResource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return s.apply(ctx, obj, s.name, (&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun, func() error {
		return s.client.Apply(ctx, obj, opts...)
	})
}

// apply makes the call of a server-side apply. The configuration is the answer of the server.
func (c *calls) apply(
	ctx context.Context, obj runtime.ApplyConfiguration, subresource string, dryRun []string, do func() error,
) error {
	if !c.hub.Enabled() {
		return do()
	}
	sent := metadataOf(obj)
	call := &Call{
		Verb: VerbPatch, Apply: true, Subresource: subresource, Object: client.ObjectKeyFromObject(sent),
		DryRun: len(dryRun) > 0, Before: sent.GetResourceVersion(),
	}
	if stored := c.stored(ctx, c.objectOf(sent)); stored != nil {
		call.Before = stored.GetResourceVersion()
	}
	return c.observe(ctx, call, sent, do, func(call *Call) {
		call.After, call.answer = metadataOf(obj).GetResourceVersion(), obj
		call.NoOp = call.Before != "" && call.Before == call.After
	})
}

// objectOf returns an object of the Go type that reconcilers read for a kind, with the name of another one.
func (c *calls) objectOf(named *metav1.PartialObjectMetadata) client.Object {
	kind := named.GroupVersionKind()
	known, _ := c.client.Scheme().New(kind)
	obj, ok := known.(client.Object)
	if !ok {
		content := &unstructured.Unstructured{}
		content.SetGroupVersionKind(kind)
		obj = content
	}
	obj.SetNamespace(named.Namespace)
	obj.SetName(named.Name)
	return obj
}

// metadataOf returns the kind and the metadata of a configuration.
func metadataOf(obj runtime.ApplyConfiguration) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	if data, err := json.Marshal(obj); err == nil {
		_ = json.Unmarshal(data, metadata) // an unusual configuration is shown without a name
	}
	return metadata
}
