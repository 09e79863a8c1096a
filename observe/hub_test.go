// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"runtime"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/observe"
)

// fakeManager has only a cache.
type fakeManager struct {
	manager.Manager
	cache cache.Cache
}

func (m *fakeManager) GetCache() cache.Cache { return m.cache }

// wrapper is another type for the same manager.
type wrapper struct{ manager.Manager }

func newManager() *fakeManager { return &fakeManager{cache: &informertest.FakeInformers{}} }

func TestOf(t *testing.T) {
	mgr := newManager()
	hub := observe.Of(mgr)
	if hub != observe.Of(mgr) || hub != observe.Of(&wrapper{mgr}) {
		t.Error("one manager has several hubs")
	}
	if hub == observe.Of(newManager()) {
		t.Error("two managers have one hub")
	}
}

// TestOf_keepsNoManager tests that a hub does not keep its manager in memory.
func TestOf_keepsNoManager(t *testing.T) {
	collected := make(chan bool)
	func() {
		mgr := newManager()
		observe.Of(mgr).Add(observe.Nop)
		runtime.AddCleanup(mgr, func(done chan bool) { close(done) }, collected)
	}()
	for {
		runtime.GC()
		select {
		case <-collected:
			return
		case <-t.Context().Done():
			t.Fatal("the manager was not collected")
		default:
		}
	}
}

func TestHub_Add(t *testing.T) {
	hub := &observe.Hub{}
	got := ""
	add := func(name string) func() {
		return hub.Add(observe.Func(func(context.Context, observe.Event) { got += name }))
	}
	removeA, removeB := add("a"), add("b")
	hub.Observe(t.Context(), &observe.ReconcileStarted{})
	removeA()
	removeA()
	hub.Observe(t.Context(), &observe.ReconcileStarted{})
	removeB()
	hub.Observe(t.Context(), &observe.ReconcileStarted{})
	if want := "abb"; got != want || hub.Enabled() {
		t.Errorf("listeners called: %q, want %q; enabled: %t", got, want, hub.Enabled())
	}
	var none *observe.Hub
	if none.Enabled() || none.Observe(t.Context(), &observe.ReconcileStarted{}) != t.Context() {
		t.Error("a nil hub has listeners")
	}
}

func TestHub_AddDefault(t *testing.T) {
	calls := 0
	listener := observe.Func(func(context.Context, observe.Event) { calls++ })
	for name, tc := range map[string]struct {
		prepare func(*observe.Hub)
		want    int
	}{
		"enabled by default": {prepare: func(h *observe.Hub) { h.AddDefault(listener) }, want: 1},
		"added several times": {
			prepare: func(h *observe.Hub) { h.Add(listener); h.AddDefault(listener); h.Add(listener) }, want: 1,
		},
		"removed before":        {prepare: func(h *observe.Hub) { h.Remove(listener); h.AddDefault(listener) }},
		"removed afterwards":    {prepare: func(h *observe.Hub) { h.AddDefault(listener); h.Remove(listener) }},
		"added after a removal": {prepare: func(h *observe.Hub) { h.Remove(listener); h.Add(listener) }, want: 1},
		"another one is removed": {
			prepare: func(h *observe.Hub) { h.Remove(observe.Nop); h.AddDefault(listener) }, want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, before := &observe.Hub{}, calls
			tc.prepare(hub)
			hub.Observe(t.Context(), &observe.ReconcileStarted{})
			if got := calls - before; got != tc.want {
				t.Errorf("called %d times, want %d", got, tc.want)
			}
		})
	}
}
