// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
)

// apply makes the call of a server-side apply. The configuration is the answer of the server.
func (c *calls) apply(ctx context.Context, made *call.Call) error {
	sent := metadataOf(made.Config)
	call := &Call{
		Verb: VerbPatch, Apply: true, Subresource: made.Subresource, Object: client.ObjectKeyFromObject(sent),
		DryRun: len(made.DryRun()) > 0, Before: sent.GetResourceVersion(),
	}
	if stored := c.stored(ctx, c.objectOf(sent)); stored != nil {
		call.Before = stored.GetResourceVersion()
	}
	do := func() error { return made.Do(ctx, c.client) }
	return c.observe(ctx, call, sent, do, func(call *Call) {
		call.After, call.answer = metadataOf(made.Config).GetResourceVersion(), made.Config
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
