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

	"trueup.dev/internal/call"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/weakmap"
)

// Client returns the client of a manager, as an observed client: its calls are passed to the hub of the manager.
func Client(mgr manager.Manager) client.Client {
	return NewClient(mgr.GetClient(), mgr.GetCache(), Of(mgr))
}

// NewClient returns a client that passes its calls to a hub. Without listeners, it only calls c. cached is the cache
// that c reads from. Before a write, the object is read from it, so that listeners get the change, if a controller of
// the hub watches the kind. It may be nil.
func NewClient(c client.Client, cached cache.Cache, hub *Hub) client.Client {
	return call.NewClient(c, (&calls{hub: hub, client: c, cached: cached}).do)
}

// NewReader returns a reader that passes its calls to a hub. c resolves the kinds of objects.
func NewReader(reader client.Reader, c client.Client, hub *Hub) client.Reader {
	calls := &calls{hub: hub, client: c}
	return call.NewReader(func(ctx context.Context, made call.Call) error {
		if !hub.Enabled() {
			return made.Read(ctx, reader)
		}
		return calls.read(ctx, &made, reader)
	})
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
	t := watchedType{cache: weak.Make(weakmap.Address(informers)), goType: reflect.TypeOf(obj)}
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
		run.note(call)
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

// do makes a call of the client.
func (c *calls) do(ctx context.Context, made call.Call) error {
	switch isSub := made.OfSubresource(); {
	case !c.hub.Enabled():
		return made.Do(ctx, c.client)
	case made.IsRead() && !isSub:
		return c.read(ctx, &made, c.client)
	case made.Verb == call.Apply:
		return c.apply(ctx, &made)
	case made.Verb == call.DeleteAllOf:
		options := (&client.DeleteAllOfOptions{}).ApplyOptions(call.Options[client.DeleteAllOfOption](&made))
		observed := &Call{Verb: VerbDeleteCollection, DryRun: len(options.DryRun) > 0}
		observed.Object.Namespace = options.Namespace
		return c.observe(ctx, observed, made.Object, func() error { return made.Do(ctx, c.client) }, func(*Call) {})
	case made.Verb == call.Get, made.Verb == call.Create && isSub:
		return c.subresource(ctx, &made)
	}
	return c.write(ctx, &made)
}

// subresource makes a call that gets or creates a subresource. A created one has no resource version of the object,
// because it is not the object.
func (c *calls) subresource(ctx context.Context, made *call.Call) error {
	observed := &Call{
		Verb: string(made.Verb), Subresource: made.Subresource, Object: client.ObjectKeyFromObject(made.Object),
		DryRun: len(made.DryRun()) > 0,
	}
	do := func() error { return made.Do(ctx, c.client) }
	return c.observe(ctx, observed, made.Object, do, func(observed *Call) {
		if made.Verb == call.Get {
			observed.After = made.Body.GetResourceVersion()
		}
	})
}

// write makes a call that creates, updates, patches or deletes an object.
func (c *calls) write(ctx context.Context, made *call.Call) error {
	obj := made.Object
	call := Call{
		Verb: string(made.Verb), Subresource: made.Subresource, Object: client.ObjectKeyFromObject(obj),
		DryRun: len(made.DryRun()) > 0, Before: obj.GetResourceVersion(),
	}
	if call.Verb == VerbCreate && call.Object.Name == "" {
		call.GenerateName = obj.GetGenerateName()
	}
	if call.before = c.stored(ctx, obj); call.before != nil {
		call.Before = call.before.GetResourceVersion()
		if r := runningFrom(ctx); r != nil && r.seen.inspectWrites {
			call.requested = obj.DeepCopyObject().(client.Object)
		}
	}
	do := func() error { return made.Do(ctx, c.client) }
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

// read makes a call that reads an object or a list.
func (c *calls) read(ctx context.Context, made *call.Call, from client.Reader) error {
	do := func() error { return made.Read(ctx, from) }
	isList := made.Verb == call.List
	call := finishedCalls.Get().(*Call)
	defer func() {
		call.answer = nil
		finishedCalls.Put(call)
	}()
	if isList {
		*call = Call{Verb: VerbList, Cached: c.cached != nil}
		call.Object.Namespace = namespaceOf(made.ListOptions)
		return c.observe(ctx, call, made.List, do, func(call *Call) {
			call.After, call.Items, call.answer = made.List.GetResourceVersion(), meta.LenList(made.List), made.List
		})
	}
	*call = Call{Verb: VerbGet, Object: made.Key, Cached: c.cached != nil}
	return c.observe(ctx, call, made.Object, do, func(call *Call) {
		call.After, call.answer = made.Object.GetResourceVersion(), made.Object
	})
}

// namespaceOf returns the namespace that a list is restricted to, or "".
func namespaceOf(options []client.ListOption) string {
	if len(options) == 1 {
		if all, ok := options[0].(*client.ListOptions); ok {
			return all.Namespace // without an allocation
		}
	}
	return (&client.ListOptions{}).ApplyOptions(options).Namespace
}
