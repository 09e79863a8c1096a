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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	apicall "trueup.dev/internal/call"
)

// processClient is the client of a process: that of a manager, whose calls are injection points.
type processClient struct {
	client.Client // makes the calls with do

	server  client.Client
	process *process
	// live is set for a client that reads from the API server.
	live bool
}

func newProcessClient(server client.Client, p *process, live bool) *processClient {
	c := &processClient{server: server, process: p, live: live}
	c.Client = apicall.NewClient(server, c.do)
	return c
}

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

// writeOptions are the options of a write that matter to oracles.
type writeOptions struct {
	// conditional is set for a delete with a precondition.
	conditional bool
	// dryRun is set for an update or a patch that is not stored.
	dryRun bool
	// manager is the field manager, or empty for that of the client.
	manager string
}

func writeOptionsOf(r *apicall.Call) (o writeOptions) {
	switch r.Verb {
	case apicall.Create:
		o.manager = (&client.CreateOptions{}).ApplyOptions(apicall.Options[client.CreateOption](r)).FieldManager
	case apicall.Update, apicall.Patch:
		o.dryRun = len(r.DryRun()) > 0
	case apicall.Delete:
		p := (&client.DeleteOptions{}).ApplyOptions(apicall.Options[client.DeleteOption](r)).Preconditions
		o.conditional = p != nil && (p.UID != nil || p.ResourceVersion != nil)
	}
	return o
}

func (c *processClient) do(ctx context.Context, r apicall.Call) error {
	if !r.IsRead() {
		return c.write(ctx, r)
	}
	about := r.Subject()
	gvk, err := c.kindOf(about)
	if err != nil {
		return err
	}
	submitted := &call{Site: inject.Site{Act: string(r.Verb), Kind: gvk.Kind, Key: r.Key}, gvk: gvk}
	switch {
	case r.OfSubresource():
		submitted.Kind += "/" + r.Subresource
		submitted.Key = client.ObjectKeyFromObject(r.Object)
	case r.Verb == apicall.List:
		options := (&client.ListOptions{}).ApplyOptions(r.ListOptions)
		submitted.Key.Namespace, submitted.out = options.Namespace, r.List
		if submitted.cached = c.cached(about, gvk); submitted.cached {
			list := r.List
			submitted.do = func(client.Object) error { return c.process.list(gvk, list, options) }
		}
	default:
		submitted.into = r.Object
		if submitted.cached = c.cached(about, gvk); submitted.cached {
			key, obj, opts := r.Key, r.Object, r.GetOptions
			submitted.do = func(client.Object) error { return c.process.informer(gvk).read(gvk, key, obj, opts...) }
		}
	}
	if !submitted.cached {
		live := r // only this closure needs it: reads from the cache are frequent
		submitted.Act = "live " + submitted.Act
		submitted.do = func(client.Object) error { return live.Do(detached(ctx), c.server) }
	}
	return c.process.submit(ctx, submitted)
}

// write makes a call that writes. While a configuration to apply waits to be served, it is an object like others.
func (c *processClient) write(ctx context.Context, r apicall.Call) error {
	obj, act := r.Object, r.Verb
	if r.Verb == apicall.Apply {
		config, err := untyped(r.Config)
		if err != nil {
			return err
		}
		obj = config
	}
	if r.IsApply() {
		act = apicall.Apply
	}
	gvk, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	kind, key := gvk.Kind, client.ObjectKeyFromObject(obj)
	if r.Subresource != "" {
		kind += "/" + r.Subresource
	}
	if key.Name == "" {
		key.Name = obj.GetGenerateName()
	}
	return c.process.submit(ctx, &call{
		Site: inject.Site{Act: string(act), Kind: kind, Key: key}, gvk: gvk, obj: obj, writeOptions: writeOptionsOf(&r),
		do: func(written client.Object) error {
			sent := r
			switch {
			case r.Verb != apicall.Apply:
				sent.Object = written
			case written != obj: // the response is lost
				sent.Config = client.ApplyConfigurationFromUnstructured(written.(*unstructured.Unstructured))
			}
			return sent.Do(detached(ctx), c.server)
		},
	})
}

func untyped(config runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	return obj, json.Unmarshal(encoded, &obj.Object)
}
