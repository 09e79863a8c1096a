// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// overlay has the objects that a plan has written, above the objects of a cluster. An object is copied from the cluster
// before it is first written. From then on, it is read from the overlay.
type overlay struct {
	cluster client.Client
	kinds   *kindSet
	manager string // the default field manager
	dryRun  *dryRun
	notify  func(memapi.Event) error

	mu       sync.Mutex
	server   *memapi.Server
	registry *kinds.Registry
	loaded   map[objectID]map[string]any // the content in the cluster, nil if the object does not exist there
	order    []objectID                  // in which they were loaded
	sent     map[objectID]map[string]any // what created an object
	by       map[objectID]string         // the client that wrote an object last, or deleted it
	deleted  map[objectID]bool
	seen     int64 // the version up to which events were handled
	unknown  []string
	assumed  map[objectID]assumed
	searched map[types.UID]bool // deleted objects whose dependents were loaded
}

// assumed is the state of an object that was made ready.
type assumed struct {
	uid        types.UID
	generation int64
}

// objectID identifies an object.
type objectID struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

func newOverlay(cluster client.Client, kinds *kindSet, manager string, dryRun *dryRun) *overlay {
	o := &overlay{
		cluster: cluster, kinds: kinds, manager: manager, dryRun: dryRun, notify: func(memapi.Event) error { return nil },
		loaded: map[objectID]map[string]any{}, sent: map[objectID]map[string]any{}, by: map[objectID]string{},
		deleted: map[objectID]bool{}, assumed: map[objectID]assumed{}, searched: map[types.UID]bool{},
	}
	kinds.mu.Lock()
	defer kinds.mu.Unlock()
	o.registry = kinds.registry
	o.server = memapi.New(memapi.Options{
		Registry: kinds.registry, Applier: kinds.applier, TrackFields: true, WithoutNamespaces: true,
	})
	o.seen = o.server.Version()
	return o
}

// note records something that the plan does not know, once.
func (o *overlay) note(text string) {
	if text != "" && !slices.Contains(o.unknown, text) {
		o.unknown = append(o.unknown, text)
	}
}

// kindOf returns the kind of an object, or of the items of a list, and makes the overlay know it.
func (o *overlay) kindOf(ctx context.Context, obj runtime.Object) (schema.GroupVersionKind, error) {
	gvk, err := o.plainKind(obj)
	if err != nil {
		return gvk, err
	}
	return gvk, o.define(ctx, gvk)
}

func (o *overlay) define(ctx context.Context, gvk schema.GroupVersionKind) error {
	registry, applier, unknown, err := o.kinds.ensure(ctx, gvk)
	if err != nil {
		return err
	}
	o.note(unknown)
	if registry == o.registry {
		return nil
	}
	o.registry = registry
	return o.server.Redefine(registry, applier)
}

// load copies an object from the cluster, unless it was copied before.
func (o *overlay) load(ctx context.Context, id objectID) error {
	if kind, ok := o.registry.For(id.kind); ok && !kind.Namespaced {
		id.key.Namespace = ""
	}
	if _, ok := o.loaded[id]; ok || id.key.Name == "" {
		return nil
	}
	u, err := o.kinds.read(ctx, id)
	switch {
	case apierrs.IsNotFound(err):
		o.remember(id, nil)
		return nil
	case err != nil:
		return fmt.Errorf("plan: read %s %s before it is written: %w", id.kind.Kind, id.key, err)
	}
	if err := o.server.Load(u); err != nil {
		return err
	}
	o.remember(id, o.server.Content(id.kind, id.key))
	return nil
}

func (o *overlay) remember(id objectID, content map[string]any) {
	o.loaded[id] = content
	o.order = append(o.order, id)
	o.seen = max(o.seen, o.server.Version())
}

// loadNamespace copies a namespace, because nothing can be created without it.
func (o *overlay) loadNamespace(ctx context.Context, name string) error {
	id := objectID{namespaceKind, client.ObjectKey{Name: name}}
	if _, ok := o.loaded[id]; ok || name == "" {
		return nil
	}
	_, err := o.kinds.read(ctx, id)
	switch {
	case apierrs.IsForbidden(err):
		o.note("whether the namespace exists: reading Namespaces is forbidden")
	case apierrs.IsNotFound(err) && o.kinds.withoutNamespaces(ctx):
	default:
		return o.load(ctx, id)
	}
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "unknown", ResourceVersion: "1"},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	if err := o.server.Load(namespace); err != nil {
		return err
	}
	o.remember(id, o.server.Content(id.kind, id.key))
	return nil
}

// has reports whether an object is read from the overlay.
func (o *overlay) has(id objectID) bool {
	_, ok := o.loaded[id]
	return ok
}

// changed returns the events since the last call.
func (o *overlay) changed() []memapi.Event {
	events := slices.Clone(o.server.Events(o.seen))
	for _, e := range events {
		id := objectID{e.Kind, e.Key}
		if !o.has(id) { // its name was generated
			o.remember(id, nil)
		}
		if o.by[id] == "" || !o.deleted[id] {
			o.by[id] = e.Client
		}
		o.deleted[id] = e.Type == watch.Deleted || e.Object.GetDeletionTimestamp() != nil
	}
	o.seen = o.server.Version()
	return events
}

// version returns the version of the last write.
func (o *overlay) version() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.server.Version()
}
