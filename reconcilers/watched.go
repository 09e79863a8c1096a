// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watched knows which kinds a controller watches with [EnqueueTracked]. Until its builder has been read nothing is
// known. A nil watched knows nothing.
type watched struct {
	// reconciler is the name of the root reconciler.
	reconciler string

	mu sync.Mutex
	// handlers are those that EnqueueTracked has returned during set-up.
	handlers []*trackedHandler

	kinds atomic.Pointer[watchedKinds]
	// warned are the kinds that a warning was logged for.
	warned sync.Map
}

// watchedKinds are what the watches of a controller are for.
type watchedKinds struct {
	// tracked are the kinds that are watched with EnqueueTracked, in the cache that tells of their events.
	tracked map[watchedKind]passes
	// any are the kinds that are watched with EnqueueTracked, or with a handler that is not known and may do the same.
	any map[schema.GroupKind]bool
	// incomplete is true when the controller may have more watches.
	incomplete bool
}

type watchedKind struct {
	cache cache.Cache
	schema.GroupKind
}

// passes tells which events of a watch predicates let pass for certain.
type passes struct{ creations, all bool }

// begin is called before anything is set up.
func (w *watched) begin(reconciler string) {
	w.reconciler = reconciler
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handlers = nil
	w.kinds.Store(nil)
}

// issue notes a handler that is used somewhere: in the builder, as set-up will find out, or in a watch that is added
// later.
func (w *watched) issue(tracked *trackedHandler) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := w.kinds.Load()
	if kinds == nil {
		w.handlers = append(w.handlers, tracked)
	} else if !kinds.incomplete {
		w.kinds.Store(&watchedKinds{tracked: kinds.tracked, any: kinds.any, incomplete: true})
	}
}

// learn reads the builder of the controller, which is about to be built. With more the author may add watches to the
// controller later.
func (w *watched) learn(mgr Manager, bldr *Builder, more bool) {
	watches, ok := watchesOf(mgr, bldr)
	kinds := &watchedKinds{tracked: map[watchedKind]passes{}, any: map[schema.GroupKind]bool{}, incomplete: more || !ok}
	found := map[*trackedHandler]bool{}
	for _, watch := range watches {
		gvk, err := apiutil.GVKForObject(watch.object, mgr.GetScheme())
		if err != nil {
			kinds.incomplete = true
			continue
		}
		kinds.any[gvk.GroupKind()] = true
		if tracked, ours := watch.handler.(*trackedHandler); ours {
			found[tracked] = true
			key := watchedKind{watch.cache, gvk.GroupKind()}
			now := passesOf(watch.predicates)
			before := kinds.tracked[key]
			kinds.tracked[key] = passes{creations: before.creations || now.creations, all: before.all || now.all}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tracked := range w.handlers {
		if !found[tracked] {
			// It is part of another handler, or for a watch that is yet to come.
			kinds.incomplete = true
		}
	}
	w.handlers = nil
	w.kinds.Store(kinds)
}

// by returns which events of a kind in a cache make requests of those who track the objects.
func (w *watched) by(informers cache.Cache, kind schema.GroupKind) passes {
	if w == nil || informers == nil {
		return passes{}
	}
	kinds := w.kinds.Load()
	if kinds == nil || len(kinds.tracked) == 0 {
		return passes{}
	}
	return kinds.tracked[watchedKind{informers, kind}]
}

// lacks reports whether events of a kind make no requests, for certain.
func (w *watched) lacks(kind schema.GroupKind) bool {
	if w == nil {
		return false
	}
	kinds := w.kinds.Load()
	return kinds != nil && !kinds.incomplete && !kinds.any[kind]
}

// warnOnce reports whether there was no warning for this kind yet.
func (w *watched) warnOnce(kind schema.GroupKind) bool {
	_, warned := w.warned.LoadOrStore(kind, true)
	return !warned
}

// readWatch is a watch that was read from a builder.
type readWatch struct {
	cache      cache.Cache
	object     client.Object
	handler    any
	predicates []predicate.Predicate
}

// watchesOf returns the watches of a builder whose handlers the author has chosen. It returns false when some cannot be
// read.
//
// Builders tell nobody what they were given. What is read here are fields of controller-runtime that are not exported:
// their types are compared first, and when one has changed, all is unknown.
func watchesOf(mgr Manager, bldr *Builder) ([]readWatch, bool) {
	fields := reflect.ValueOf(bldr).Elem()
	inputs, ok := unexported[[]builder.WatchesInput[Request]](fields, "watchesInput")
	sources, alsoOK := unexported[[]source.Source](fields, "rawSources")
	filters, andOK := unexported[[]predicate.Predicate](fields, "globalPredicates")
	if !ok || !alsoOK || !andOK {
		return nil, false
	}
	watches, complete := []readWatch{}, true
	for i := range *inputs {
		input := reflect.ValueOf(&(*inputs)[i]).Elem()
		object, ok := unexported[client.Object](input, "obj")
		does, alsoOK := unexported[handler.EventHandler](input, "handler")
		predicates, andOK := unexported[[]predicate.Predicate](input, "predicates")
		if !ok || !alsoOK || !andOK {
			return nil, false
		}
		watches = append(watches, readWatch{
			cache: mgr.GetCache(), object: *object, handler: *does, predicates: slices.Concat(*filters, *predicates),
		})
	}
	for _, src := range *sources {
		switch src := src.(type) {
		case *ownerIndexSource, startSource:
			continue // they have no events
		default:
			watch, ok := readSource(src)
			if !ok {
				complete = false
				continue
			}
			watches = append(watches, watch)
		}
	}
	return watches, complete
}

// readSource reads a [source.Kind], whose type is internal to controller-runtime and whose fields are exported.
func readSource(src any) (watch readWatch, ok bool) {
	value := reflect.ValueOf(src)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return watch, false
	}
	object, hasObject := exported[client.Object](value.Elem(), "Type")
	informers, hasCache := exported[cache.Cache](value.Elem(), "Cache")
	does, hasHandler := exported[any](value.Elem(), "Handler")
	if !hasObject || !hasCache || !hasHandler {
		return watch, false
	}
	watch = readWatch{cache: informers, object: object, handler: does}
	predicates, ok := exported[[]predicate.Predicate](value.Elem(), "Predicates")
	if !ok {
		// They are for objects of one Go type.
		predicates = []predicate.Predicate{nil}
	}
	watch.predicates = predicates
	return watch, true
}

// unexported returns a field of an addressable struct, if it has exactly this type.
func unexported[T any](of reflect.Value, name string) (*T, bool) {
	field := of.FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return nil, false
	}
	return (*T)(field.Addr().UnsafePointer()), true
}

func exported[T any](of reflect.Value, name string) (value T, ok bool) {
	if field := of.FieldByName(name); field.IsValid() && field.CanInterface() {
		value, ok = field.Interface().(T)
	}
	return value, ok
}

// passesOf returns which events get through all predicates for certain.
func passesOf(predicates []predicate.Predicate) passes {
	for _, p := range predicates {
		var creations func(event.CreateEvent) bool
		switch p := p.(type) {
		case predicate.Funcs:
			creations = p.CreateFunc
		case predicate.GenerationChangedPredicate:
			creations = p.CreateFunc
		case predicate.ResourceVersionChangedPredicate:
			creations = p.CreateFunc
		case predicate.LabelChangedPredicate:
			creations = p.CreateFunc
		case predicate.AnnotationChangedPredicate:
			creations = p.CreateFunc
		default:
			return passes{}
		}
		if creations != nil {
			return passes{}
		}
	}
	return passes{creations: true, all: len(predicates) == 0}
}
