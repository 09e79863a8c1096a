// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
	apicall "trueup.dev/internal/call"
)

// processClient is the client of a process: the client of a manager, whose calls are injection points.
type processClient struct {
	client.Client // makes the calls with do

	server  client.Client
	process *Process
	// live is set for a client that reads from the API server.
	live bool
}

func newProcessClient(server client.Client, p *Process, live bool) *processClient {
	c := &processClient{server: server, process: p, live: live}
	c.Client = apicall.NewClient(server, c.do)
	return c
}

// RESTMapper returns the mapper of the process.
func (c *processClient) RESTMapper() meta.RESTMapper { return c.process.mapper() }

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
	return !c.live && !untyped && !c.process.program.Uncached[gvk]
}

// setWriteOptions sets the options of a write that matter to oracles.
func setWriteOptions(c *world.Call, r *apicall.Call) {
	switch r.Verb {
	case apicall.Create:
		c.Manager = (&client.CreateOptions{}).ApplyOptions(apicall.Options[client.CreateOption](r)).FieldManager
	case apicall.Update, apicall.Patch:
		c.DryRun = len(r.DryRun()) > 0
	case apicall.Delete:
		p := (&client.DeleteOptions{}).ApplyOptions(apicall.Options[client.DeleteOption](r)).Preconditions
		c.Conditional = p != nil && (p.UID != nil || p.ResourceVersion != nil)
	}
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
	submitted := &call{Call: world.Call{Site: inject.Site{Act: string(r.Verb), Kind: gvk.Kind, Key: r.Key}, GVK: gvk}}
	switch {
	case r.OfSubresource():
		submitted.Kind += "/" + r.Subresource
		submitted.Key = client.ObjectKeyFromObject(r.Object)
	case r.Verb == apicall.List:
		options := (&client.ListOptions{}).ApplyOptions(r.ListOptions)
		submitted.Key.Namespace, submitted.Out = options.Namespace, r.List
		if submitted.Cached = c.cached(about, gvk); submitted.Cached {
			list := r.List
			submitted.do = func(client.Object) error { return c.process.list(gvk, list, options) }
		}
	default:
		submitted.Into = r.Object
		if submitted.Cached = c.cached(about, gvk); submitted.Cached {
			key, obj, opts := r.Key, r.Object, r.GetOptions
			submitted.do = func(client.Object) error { return c.process.informer(gvk).read(gvk, key, obj, opts...) }
		}
	}
	if !submitted.Cached {
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
	submitted := &call{
		Call: world.Call{Site: inject.Site{Act: string(act), Kind: kind, Key: key}, GVK: gvk, Obj: obj},
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
	}
	setWriteOptions(&submitted.Call, &r)
	return c.process.submit(ctx, submitted)
}

func untyped(config runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	return obj, json.Unmarshal(encoded, &obj.Object)
}

// GetConfig returns the configuration of clients that send HTTP requests. Their requests are calls of the process, with
// the same faults as requests of its APIReader and of its client. As with the configuration of a manager, the user
// agent is set, from which some operators take the name of their field manager.
func (m *processManager) GetConfig() *rest.Config {
	return &rest.Config{Host: "http://converge.invalid", QPS: -1, UserAgent: phrase.Manager, Transport: m.transport()}
}

// GetHTTPClient returns the HTTP client of GetConfig.
func (m *processManager) GetHTTPClient() *http.Client { return &http.Client{Transport: m.transport()} }

func (m *processManager) transport() http.RoundTripper { return processTransport{m.process} }

// watchingClient is a client of a process that can also watch the API server.
type watchingClient struct{ *processClient }

var _ client.WithWatch = (*watchingClient)(nil)

// Watch watches objects until the process ends. Events arrive at once, and there are no faults: informers of client-go
// retry after a random time.
func (c *watchingClient) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	gvk, err := c.kindOf(list)
	if err != nil {
		return nil, err
	}
	var (
		events watch.Interface
		failed error
	)
	server := c.process.world.Server.Client(c.process.program.Client)
	err = c.process.submit(ctx, &call{
		Call: world.Call{Site: inject.Site{Act: "live watch", Kind: gvk.Kind}},
		begin: func() {
			if failed = c.process.gateway.permissions.watchPermitted(c.process.program, gvk, opts); failed == nil {
				events, failed = server.Watch(ctx, list, opts...)
			}
		},
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	context.AfterFunc(c.process.ctx, events.Stop)
	return events, nil
}
