// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/weakmap"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// causer is implemented by event handlers and sources that know the type of the causes that they make.
type causer interface{ CauseType() CauseType }

// eventHandler records the causes of the requests that a handler enqueues.
type eventHandler struct {
	handler.EventHandler
	controller *controllerObserver
}

func (h *eventHandler) Create(ctx context.Context, evt event.CreateEvent, q queue) {
	cause := Cause{Verb: Created, after: evt.Object}
	if evt.IsInInitialList {
		cause.Type = CauseStartUp
	}
	h.EventHandler.Create(ctx, evt, h.controller.noting(q, h.EventHandler, cause))
}

func (h *eventHandler) Update(ctx context.Context, evt event.UpdateEvent, q queue) {
	if evt.ObjectOld == nil || evt.ObjectNew == nil {
		h.EventHandler.Update(ctx, evt, q) // logs the mistake
		return
	}
	cause := Cause{Verb: Updated, before: evt.ObjectOld, after: evt.ObjectNew}
	if evt.ObjectOld.GetResourceVersion() == evt.ObjectNew.GetResourceVersion() {
		cause.Type = CauseResync
	}
	h.EventHandler.Update(ctx, evt, h.controller.noting(q, h.EventHandler, cause))
}

func (h *eventHandler) Delete(ctx context.Context, evt event.DeleteEvent, q queue) {
	h.EventHandler.Delete(ctx, evt, h.controller.noting(q, h.EventHandler, Cause{Verb: Deleted, after: evt.Object}))
}

func (h *eventHandler) Generic(ctx context.Context, evt event.GenericEvent, q queue) {
	h.EventHandler.Generic(ctx, evt, h.controller.noting(q, h.EventHandler, Cause{Verb: Generic, after: evt.Object}))
}

// noting returns a queue that records the cause of each request that is added to it.
func (c *controllerObserver) noting(q queue, from any, cause Cause) queue {
	if !c.hub.Enabled() {
		return q
	}
	if cause.after != nil {
		cause.Kind, _ = apiutil.GVKForObject(cause.after, c.scheme)
		cause.Object = client.ObjectKeyFromObject(cause.after)
	}
	n := noter{controller: c, cause: cause}
	if typed, ok := from.(causer); ok {
		n.byHandler = typed.CauseType()
	}
	if priorities, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return &notingPriorityQueue{PriorityQueue: priorities, noter: n}
	}
	return &notingQueue{queue: q, noter: n}
}

// noter records the cause of requests.
type noter struct {
	controller *controllerObserver
	cause      Cause
	// byHandler is the type that the handler states, if it does.
	byHandler CauseType
}

// add records the cause of requests while they are added.
func (n *noter) add(requests []reconcile.Request, add func()) {
	if !n.controller.hub.Enabled() {
		add()
		return
	}
	at := time.Now()
	for _, req := range requests {
		cause := n.cause // a source may add requests in several goroutines
		cause.At = at
		if cause.Type == "" {
			cause.Type = n.typeFor(req)
		}
		n.controller.pending.adding(req, cause)
	}
	add()
	for _, req := range requests {
		n.controller.pending.added(req)
	}
}

// typeFor returns the type of the cause for a request. One event can have several types, because an object may own
// itself or be tracked by its owner.
func (n *noter) typeFor(req reconcile.Request) CauseType {
	obj, kind := n.cause.after, n.controller.kind
	switch {
	case n.byHandler != "":
		return n.byHandler
	case obj == nil:
		return CauseSource
	case n.cause.Kind.GroupKind() == kind.GroupKind() && n.cause.Object == req.NamespacedName:
		return CauseObject
	}
	for _, ref := range obj.GetOwnerReferences() {
		if gv, err := schema.ParseGroupVersion(ref.APIVersion); err == nil && gv.Group == kind.Group &&
			ref.Kind == kind.Kind && ref.Name == req.Name {
			return CauseOwned
		}
	}
	return CauseWatched
}

type notingQueue struct {
	queue
	noter
}

func (q *notingQueue) Add(req reconcile.Request) {
	q.add([]reconcile.Request{req}, func() { q.queue.Add(req) })
}

func (q *notingQueue) AddAfter(req reconcile.Request, after time.Duration) {
	q.add([]reconcile.Request{req}, func() { q.queue.AddAfter(req, after) })
}

func (q *notingQueue) AddRateLimited(req reconcile.Request) {
	q.add([]reconcile.Request{req}, func() { q.queue.AddRateLimited(req) })
}

type notingPriorityQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	noter
}

func (q *notingPriorityQueue) Add(req reconcile.Request) {
	q.add([]reconcile.Request{req}, func() { q.PriorityQueue.Add(req) })
}

func (q *notingPriorityQueue) AddAfter(req reconcile.Request, after time.Duration) {
	q.add([]reconcile.Request{req}, func() { q.PriorityQueue.AddAfter(req, after) })
}

func (q *notingPriorityQueue) AddRateLimited(req reconcile.Request) {
	q.add([]reconcile.Request{req}, func() { q.PriorityQueue.AddRateLimited(req) })
}

func (q *notingPriorityQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	q.add(requests, func() { q.PriorityQueue.AddWithOpts(o, requests...) })
}

// source returns a source that records causes.
func (c *controllerObserver) source(src source.Source) source.Source {
	c.noteWatch(src)
	if watch, ok := c.watch(src); ok {
		return c.kindSource(watch)
	}
	noting := &notingSource{Source: src, controller: c}
	if syncing, ok := src.(source.SyncingSource); ok {
		return &notingSyncingSource{notingSource: noting, syncing: syncing}
	}
	return noting
}

// noteWatch records the type of the objects that a source watches, and their cache.
func (c *controllerObserver) noteWatch(src source.Source) {
	if obj, informers, ok := watchedBy(src); ok {
		c.hub.watched.Store(typeOf(informers, obj), true)
		if at := weakmap.Address(informers); at != nil && at != weakmap.Address(c.mgr.GetCache()) {
			c.otherCaches.Store(at, informers)
		}
	}
}

// watchedBy returns the object and the cache of a source that watches a kind.
func watchedBy(src source.Source) (obj client.Object, informers cache.Cache, ok bool) {
	kind, ok := ctrlfields.KindOf(src)
	return kind.Object, kind.Cache, ok && !nilcheck.IsNilPointer(kind.Object)
}

// watch returns a copy of a source that watches a kind, with a handler that records events. If ok is false, causes do
// not name the object.
func (c *controllerObserver) watch(src source.Source) (_ source.Source, ok bool) {
	return ctrlfields.WithHandler(src, func(original handler.EventHandler) handler.EventHandler {
		return &eventHandler{EventHandler: original, controller: c}
	})
}

// notingSource records that a request comes from this source.
type notingSource struct {
	source.Source
	controller *controllerObserver
}

func (s *notingSource) Start(ctx context.Context, q queue) error {
	always := noter{controller: s.controller, cause: Cause{Type: CauseSource}}
	if typed, ok := s.Source.(causer); ok {
		always.cause.Type = typed.CauseType()
	}
	if priorities, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return s.Source.Start(ctx, &notingPriorityQueue{PriorityQueue: priorities, noter: always})
	}
	return s.Source.Start(ctx, &notingQueue{queue: q, noter: always})
}

// String returns the text of the source in logs.
func (s *notingSource) String() string { return fmt.Sprint(s.Source) }

type notingSyncingSource struct {
	*notingSource
	syncing source.SyncingSource
}

func (s *notingSyncingSource) WaitForSync(ctx context.Context) error {
	return s.syncing.WaitForSync(ctx)
}
