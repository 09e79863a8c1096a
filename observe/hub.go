// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/objects/weakmap"
)

// Hub passes the events of a manager's controllers to listeners. The zero value is ready to use, as is a nil Hub, which
// has no listeners. It is safe for concurrent use.
type Hub struct {
	mu        sync.Mutex
	listeners atomic.Pointer[tee]
	// removed holds the listeners for which Remove has been called.
	removed []Listener
	// watched holds what the controllers watch, as watchedType.
	watched sync.Map
	// controllers maps full names to observed.
	controllers sync.Map
	cacheWaits  cacheWaits
	// startWatched is done when the start of the manager is watched.
	startWatched sync.Once
}

// hubs maps the identities of managers to their hubs.
var hubs weakmap.Map[byte, Hub]

// withoutManager is the hub of what belongs to no manager.
var withoutManager Hub

// Of returns the hub of a manager. It is the same for each call, also for a type that embeds the manager. Of(nil) is
// the hub of what belongs to no manager, such as reconcilers with a config that was not made for one.
func Of(mgr manager.Manager) *Hub {
	if mgr == nil {
		return &withoutManager
	}
	all := unwrap(mgr)
	if at := identify(all[len(all)-1]); at != nil {
		return hubs.Of(at)
	}
	return &Hub{}
}

// identify returns the identity of a manager: the address of its cache, which wrappers of managers pass on or wrap, or
// nil. The hub of a manager does not keep it in memory, and is removed with it.
func identify(mgr manager.Manager) *byte {
	c := mgr.GetCache()
	for {
		view, ok := c.(interface{ Unwrap() cache.Cache })
		if !ok {
			break
		}
		c = view.Unwrap()
	}
	for _, candidate := range []any{c, mgr} {
		if at := weakmap.Address(candidate); at != nil {
			return at
		}
	}
	return nil
}

// Add adds a listener and returns a function that removes it. Listeners may be added before and after the manager
// starts. A reconcile that runs already may pass some of its events to a new listener. A pointer that has been added
// is not added again.
func (h *Hub) Add(listener Listener) (remove func()) {
	added := &tee{[]Listener{listener}} // identifies the listener, which may not be comparable
	h.change(func(all []Listener) []Listener {
		if i := index(all, listener); i >= 0 {
			added = all[i].(*tee)
			return all
		}
		return append(slices.Clip(all), added)
	})
	return sync.OnceFunc(func() {
		h.change(func(all []Listener) []Listener {
			return slices.DeleteFunc(slices.Clone(all), func(l Listener) bool { return l == Listener(added) })
		})
	})
}

// AddDefault adds a listener, unless [Hub.Remove] has been called for it. Frameworks use it, so that their users can
// disable what is enabled by default. The listener must be a pointer.
func (h *Hub) AddDefault(listener Listener) {
	h.mu.Lock()
	removed := slices.ContainsFunc(h.removed, func(l Listener) bool { return same(l, listener) })
	h.mu.Unlock()
	if !removed {
		h.Add(listener)
	}
}

// Remove removes a listener, which must be a pointer. It may be called before the listener is added by default:
// [Hub.AddDefault] does not add it afterwards.
func (h *Hub) Remove(listener Listener) {
	h.mu.Lock()
	h.removed = append(h.removed, listener)
	h.mu.Unlock()
	h.change(func(all []Listener) []Listener {
		if i := index(all, listener); i >= 0 {
			return slices.Delete(slices.Clone(all), i, i+1)
		}
		return all
	})
}

// index returns the index of a listener among the listeners of a hub, or -1.
func index(all []Listener, listener Listener) int {
	return slices.IndexFunc(all, func(l Listener) bool { return same(l.(*tee).listeners[0], listener) })
}

// same reports whether two listeners are the same pointer. Other types may not be comparable.
func same(a, b Listener) bool {
	return reflect.ValueOf(a).Kind() == reflect.Pointer && reflect.ValueOf(b).Kind() == reflect.Pointer && a == b
}

func (h *Hub) change(change func([]Listener) []Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Listener
	if t := h.listeners.Load(); t != nil {
		all = t.listeners
	}
	if all = change(all); len(all) == 0 {
		h.listeners.Store(nil)
		return
	}
	h.listeners.Store(&tee{all})
}

// Reconciler returns the reconciler of an observed controller by its name, see [Hub.Controllers], or nil.
func (h *Hub) Reconciler(controller string) reconcile.Reconciler {
	if h == nil {
		return nil
	}
	if found, ok := h.controllers.Load(controller); ok {
		if o := found.(observed).observer.Value(); o != nil {
			return o.reconciler
		}
	}
	return nil
}

// Controllers returns the names of the observed controllers, sorted. A controller of several clusters has one for each,
// see [Run.Name].
func (h *Hub) Controllers() []string {
	names := []string{}
	h.controllers.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	slices.Sort(names)
	return names
}

// Watched returns the kinds that the observed controllers watch in a cache, sorted. The scheme has the Go types.
func (h *Hub) Watched(informers cache.Cache, scheme *runtime.Scheme) []schema.GroupVersionKind {
	id, found := weak.Make(weakmap.Address(informers)), []schema.GroupVersionKind{}
	h.watched.Range(func(watched, _ any) bool {
		t := watched.(watchedType)
		gvk := t.GroupVersionKind
		if obj, ok := reflect.New(t.goType.Elem()).Interface().(runtime.Object); ok && gvk.Empty() {
			gvk, _ = apiutil.GVKForObject(obj, scheme)
		}
		if t.cache == id && !gvk.Empty() && !slices.Contains(found, gvk) {
			found = append(found, gvk)
		}
		return true
	})
	slices.SortFunc(found, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	return found
}

// Enabled reports whether the hub has listeners.
func (h *Hub) Enabled() bool { return h != nil && h.listeners.Load() != nil }

// Observe passes an event to all listeners.
func (h *Hub) Observe(ctx context.Context, event Event) context.Context {
	if h == nil {
		return ctx
	}
	if t := h.listeners.Load(); t != nil {
		return t.Observe(ctx, event)
	}
	return ctx
}

var _ Listener = (*Hub)(nil)
