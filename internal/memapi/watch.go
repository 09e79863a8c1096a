// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchBuffer is the number of unread events after which the server ends a watch.
const watchBuffer = 1024

// watcher sends events to a client. It has no goroutine: the server writes to its buffered channel.
type watcher struct {
	table     *table
	selector  selector
	prototype client.Object // an object of the type that the client receives
	bookmarks bool

	mu      sync.Mutex // the client may stop the watch while the server writes
	stopped bool
	events  chan watch.Event
}

func (w *watcher) ResultChan() <-chan watch.Event {
	return w.events
}

// Stop ends the watch. Events that are already in the channel can still be read.
func (w *watcher) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.stopped = true
		close(w.events)
	}
}

// send sends an event, or ends the watch if the channel is full.
func (w *watcher) send(kind watch.EventType, obj runtime.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	select {
	case w.events <- watch.Event{Type: kind, Object: obj}:
	default:
		w.stopped = true
		close(w.events)
	}
}

// see sends an event as a watch with the selector of this watcher reports it.
func (w *watcher) see(s *Server, event Event) {
	t := w.table
	if event.record.table.shelf != t.shelf {
		return
	}
	current, err := s.as(t, event.record)
	var old *record
	if err == nil {
		old, err = s.as(t, event.before)
	}
	if err != nil {
		w.fail(err)
		return
	}
	before := old != nil && w.selector.matches(t, event.Key, old.object)
	after := event.Type != watch.Deleted && w.selector.matches(t, event.Key, current.object)
	switch {
	case before && after:
		w.show(watch.Modified, current)
	case after:
		w.show(watch.Added, current)
	case before && event.Type == watch.Deleted:
		w.show(watch.Deleted, current)
	case before:
		removed := shallowCopy(old.object)
		removed.SetResourceVersion(strconv.FormatInt(event.Version, 10))
		w.show(watch.Deleted, &record{table: t, object: removed, status: old.status})
	}
}

// fail ends the watch with an error.
func (w *watcher) fail(err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	w.send(watch.Error, new(status.Status()))
	w.Stop()
}

func (w *watcher) show(kind watch.EventType, r *record) {
	obj := w.prototype.DeepCopyObject().(client.Object)
	if err := w.table.respond(r, obj); err != nil {
		w.send(watch.Error, &apierrors.NewInternalError(err).ErrStatus)
		return
	}
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // clients leave it empty
	}
	w.send(kind, obj)
}

// bookmark sends the client a bookmark for a version.
func (w *watcher) bookmark(version int64, annotations map[string]string) {
	obj := w.prototype.DeepCopyObject().(client.Object)
	obj.SetResourceVersion(strconv.FormatInt(version, 10))
	obj.SetAnnotations(annotations)
	w.send(watch.Bookmark, obj)
}

// Bookmark sends a bookmark to every watcher that has asked for bookmarks. A real server sends one about every minute.
func (s *Server) Bookmark() {
	for _, w := range s.open() {
		if w.bookmarks {
			w.bookmark(s.version, nil)
		}
	}
}

// open returns the watchers that have not been stopped.
func (s *Server) open() []*watcher {
	s.watchers = slices.DeleteFunc(s.watchers, func(w *watcher) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.stopped
	})
	return s.watchers
}

// Watch watches the objects of a kind until the watch is stopped or the context is done. With a resource version in the
// raw options, later changes are sent first; without one, all existing objects are sent first as added.
func (c *serverClient) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := c.server
	t, err := s.tableOf(list)
	if err != nil {
		return nil, err
	}
	var options client.ListOptions
	options.ApplyOptions(opts)
	// handlers/get.go listOpts: validation and the conversion of field selectors
	if err := validateListOptions(&options, true); err != nil {
		return nil, err
	}
	sel, err := newSelector(t, &options)
	if err != nil {
		return nil, err
	}
	prototype, err := t.prototype(list)
	if err != nil {
		return nil, err
	}
	raw := options.Raw
	if raw == nil {
		raw = &metav1.ListOptions{}
	}
	// handleWatch calls Store.Watch and WatchPredicate, which ask the watch cache: Cacher.Watch in
	// storage/cacher/cacher.go parses the version, and sends what exists or what has changed since
	since, err := s.watchVersion(raw.ResourceVersion)
	if err != nil {
		return nil, err
	}
	initial := raw.SendInitialEvents != nil && *raw.SendInitialEvents || raw.SendInitialEvents == nil && since == 0
	w := &watcher{table: t, selector: sel, prototype: prototype, bookmarks: raw.AllowWatchBookmarks}
	replayed := s.Events(since)
	w.events = make(chan watch.Event, watchBuffer+len(t.sorted)+len(replayed))
	switch {
	case initial:
		if err := w.showAll(s, raw.SendInitialEvents != nil); err != nil {
			return nil, err
		}
	case since == 0: // from now on
	case since < s.compacted:
		w.send(
			watch.Error,
			&apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", since, s.compacted)).ErrStatus,
		)
		w.Stop()
		return w, nil
	default:
		for _, event := range replayed {
			w.see(s, event)
		}
	}
	s.watchers = append(s.open(), w)
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

// showAll sends all objects as added. withBookmark reports whether the client asked for a bookmark after them.
func (w *watcher) showAll(s *Server, withBookmark bool) error {
	for _, r := range w.table.sorted {
		r, err := s.as(w.table, r)
		if err != nil {
			return err
		}
		if w.selector.matches(w.table, r.key, r.object) {
			w.show(watch.Added, r)
		}
	}
	if withBookmark && w.bookmarks {
		w.bookmark(s.version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return nil
}

// watchVersion returns the version after which a watch starts, or 0 if the request has none.
func (s *Server) watchVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	since, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", version, err))
	}
	if since > s.version {
		return 0, tooLargeVersion(since, s.version)
	}
	return since, nil
}

// prototype returns an object of the type that a list of the same client has.
func (t *table) prototype(list client.ObjectList) (client.Object, error) {
	switch list.(type) {
	case *metav1.PartialObjectMetadataList:
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(t.kind.GroupVersionKind)
		return obj, nil
	case runtime.Unstructured:
		return newUnstructured(t.kind.GroupVersionKind), nil
	}
	if t.goType == nil {
		return nil, fmt.Errorf("the scheme has no type for %s", t.kind.GroupVersionKind)
	}
	return t.empty(), nil
}
