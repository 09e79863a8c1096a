// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/empty"
	"trueup.dev/internal/step"
)

// Client returns the client of a manager, as an observed client: its calls are passed to the hub of the manager.
func Client(mgr manager.Manager) client.Client {
	return NewClient(mgr.GetClient(), mgr.GetCache(), Of(mgr))
}

// NewClient returns a client that passes its calls to a hub. Without listeners, it only calls c. cached is the cache
// that c reads from. Before a write, the object is read from it, so that listeners get the change, if a controller of
// the hub watches the kind. It may be nil.
func NewClient(c client.Client, cached cache.Cache, hub *Hub) client.Client {
	calls := &calls{hub: hub, client: c, cached: cached}
	return &observedClient{observedReader{calls, c, cached != nil}, calls}
}

// NewReader returns a reader that passes its calls to a hub. c resolves the kinds of objects.
func NewReader(reader client.Reader, c client.Client, hub *Hub) client.Reader {
	return &observedReader{&calls{hub: hub, client: c}, reader, false}
}

// calls passes calls to a hub.
type calls struct {
	hub    *Hub
	client client.Client
	cached cache.Cache
	// kinds holds the kinds of Go types whose objects do not carry them.
	kinds sync.Map
}

// watchedType is the type of objects of a cache. The kind is empty for Go types that have one kind.
type watchedType struct {
	cache weak.Pointer[byte]
	// goType is a field of its own: with an embedded reflect.Type, the linker would keep all methods of all types.
	goType reflect.Type
	schema.GroupVersionKind
}

func typeOf(informers cache.Cache, obj client.Object) watchedType {
	t := watchedType{cache: weak.Make(address(informers)), goType: reflect.TypeOf(obj)}
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		t.GroupVersionKind = obj.GetObjectKind().GroupVersionKind()
	}
	return t
}

// clockStart is the time to measure durations from: time.Since reads one clock, and time.Now two.
var clockStart = time.Now()

// observe makes a call and passes it to the hub. answered completes the call after it succeeded.
func (c *calls) observe(
	ctx context.Context, call *Call, of runtime.Object, do func() error, answered func(call *Call),
) error {
	call.Kind = c.kindOf(of)
	started := time.Since(clockStart)
	err := do()
	call.Err, call.Duration = err, time.Since(clockStart)-started
	if err == nil {
		answered(call)
	}
	call.Path = step.Names(ctx)
	if run := runningFrom(ctx); run != nil {
		call.Run = &run.Run
		if call.IsWrite() {
			call.Dropped = run.takeDropped(call)
			run.wrote(call)
		}
		run.seen.note(call)
	}
	c.hub.Observe(ctx, call)
	return err
}

// kindOf returns the kind of an object, or of the items of a list.
func (c *calls) kindOf(obj runtime.Object) schema.GroupVersionKind {
	kind := obj.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		goType := reflect.TypeOf(obj)
		known, ok := c.kinds.Load(goType)
		if !ok {
			found, err := c.client.GroupVersionKindFor(obj)
			if err != nil {
				return kind
			}
			c.kinds.Store(goType, found)
			known = found
		}
		kind = known.(schema.GroupVersionKind)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return kind
}

// write makes a call that writes an object.
func (c *calls) write(ctx context.Context, call Call, obj client.Object, dryRun []string, do func() error) error {
	if !c.hub.Enabled() {
		return do()
	}
	call.Object, call.DryRun = client.ObjectKeyFromObject(obj), len(dryRun) > 0
	call.Before = obj.GetResourceVersion()
	if call.Verb == VerbCreate && call.Object.Name == "" {
		call.GenerateName = obj.GetGenerateName()
	}
	if call.before = c.stored(ctx, obj); call.before != nil {
		call.Before = call.before.GetResourceVersion()
		if r := runningFrom(ctx); r != nil && r.seen.entry.InspectWrites {
			call.requested = obj.DeepCopyObject().(client.Object)
		}
	}
	return c.observe(ctx, &call, obj, do, func(call *Call) {
		call.Object = client.ObjectKeyFromObject(obj) // the name may be generated
		if call.DryRun || call.Verb == VerbDelete {
			return
		}
		call.After, call.answer = obj.GetResourceVersion(), obj
		call.NoOp = call.Before != "" && call.Before == call.After
		if call.before != nil {
			call.after = obj.DeepCopyObject().(client.Object)
		}
	})
}

// stored returns the object in the cache, which must not be changed, or nil if it is not there.
func (c *calls) stored(ctx context.Context, obj client.Object) client.Object {
	if c.cached == nil || obj.GetName() == "" {
		return nil
	}
	if _, watched := c.hub.watched.Load(typeOf(c.cached, obj)); !watched {
		return nil // the read would start an informer
	}
	cached := empty.Like(obj)
	if c.cached.Get(ctx, client.ObjectKeyFromObject(obj), cached, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	return cached
}

type observedReader struct {
	*calls
	reader client.Reader
	// fromCache reports whether the reader reads from a cache.
	fromCache bool
}

func (r *observedReader) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if !r.hub.Enabled() {
		return r.reader.Get(ctx, key, obj, opts...)
	}
	call := finishedCalls.Get().(*Call)
	defer func() {
		call.answer = nil
		finishedCalls.Put(call)
	}()
	*call = Call{Verb: VerbGet, Object: key, Cached: r.fromCache}
	return r.observe(ctx, call, obj, func() error { return r.reader.Get(ctx, key, obj, opts...) }, func(call *Call) {
		call.After, call.answer = obj.GetResourceVersion(), obj
	})
}

func (r *observedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !r.hub.Enabled() {
		return r.reader.List(ctx, list, opts...)
	}
	call := &Call{Verb: VerbList, Cached: r.fromCache}
	call.Object.Namespace = (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return r.observe(ctx, call, list, func() error { return r.reader.List(ctx, list, opts...) }, func(call *Call) {
		call.After, call.Items, call.answer = list.GetResourceVersion(), meta.LenList(list), list
	})
}

// observedClient embeds no client: if controller-runtime adds a method, this type must fail to compile.
type observedClient struct {
	observedReader
	*calls
}

var _ client.Client = (*observedClient)(nil)

func (c *observedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	dryRun := (&client.CreateOptions{}).ApplyOptions(opts).DryRun
	return c.write(ctx, Call{Verb: VerbCreate}, obj, dryRun, func() error { return c.client.Create(ctx, obj, opts...) })
}

func (c *observedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	dryRun := (&client.UpdateOptions{}).ApplyOptions(opts).DryRun
	return c.write(ctx, Call{Verb: VerbUpdate}, obj, dryRun, func() error { return c.client.Update(ctx, obj, opts...) })
}

func (c *observedClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	dryRun := (&client.PatchOptions{}).ApplyOptions(opts).DryRun
	return c.write(ctx, Call{Verb: VerbPatch}, obj, dryRun, func() error {
		return c.client.Patch(ctx, obj, patch, opts...)
	})
}

func (c *observedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	dryRun := (&client.DeleteOptions{}).ApplyOptions(opts).DryRun
	return c.write(ctx, Call{Verb: VerbDelete}, obj, dryRun, func() error { return c.client.Delete(ctx, obj, opts...) })
}

func (c *observedClient) DeleteAllOf(
	ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption,
) error {
	do := func() error { return c.client.DeleteAllOf(ctx, obj, opts...) }
	if !c.hub.Enabled() {
		return do()
	}
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	call := &Call{Verb: VerbDeleteCollection, DryRun: len(o.DryRun) > 0}
	call.Object.Namespace = o.Namespace
	return c.observe(ctx, call, obj, do, func(*Call) {})
}

func (c *observedClient) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption,
) error {
	return c.apply(ctx, obj, "", (&client.ApplyOptions{}).ApplyOptions(opts).DryRun, func() error {
		return c.client.Apply(ctx, obj, opts...)
	})
}

func (c *observedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *observedClient) SubResource(name string) client.SubResourceClient {
	inner := c.client.SubResource(name)
	if !c.hub.Enabled() {
		return inner
	}
	return &observedSubResource{calls: c.calls, name: name, client: inner}
}

func (c *observedClient) Scheme() *runtime.Scheme     { return c.client.Scheme() }
func (c *observedClient) RESTMapper() meta.RESTMapper { return c.client.RESTMapper() }
func (c *observedClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.client.GroupVersionKindFor(obj)
}

func (c *observedClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return c.client.IsObjectNamespaced(obj)
}
