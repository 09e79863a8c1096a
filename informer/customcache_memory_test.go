// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/await"
)

// witness detects whether the objects of events stay in memory. It can keep them itself.
type witness struct {
	keeps bool

	mu       sync.Mutex
	received []weak.Pointer[corev1.ConfigMap]
	kept     map[string]*corev1.ConfigMap
}

func (w *witness) note(obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cm := obj.(*corev1.ConfigMap)
	w.received = append(w.received, weak.Make(cm))
	if w.keeps {
		w.kept[cm.Name] = cm
	}
}

func (w *witness) OnAdd(obj any, _ bool) { w.note(obj) }

func (w *witness) OnUpdate(old, obj any) {
	w.note(old)
	w.note(obj)
}

func (w *witness) OnDelete(obj any) { w.note(obj) }

// held returns the number of received objects, and how many of them are still in memory.
func (w *witness) held() (received, held int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pointer := range w.received {
		if pointer.Value() != nil {
			held++
		}
	}
	return len(w.received), held
}

// TestCustomCache_KeepsNoObjects checks that objects in a store are kept in memory only by handlers that keep them.
func TestCustomCache_KeepsNoObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		keeps bool
		held  int
	}{"handler keeps objects": {true, 50}, "handler keeps none": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			w := &witness{keeps: tc.keeps, kept: map[string]*corev1.ConfigMap{}}
			api := newTinyAPI()
			for i := range 50 {
				api.put(fmt.Sprint("n", i), "1")
			}
			informer := newTestInformer(t, api, NewMemoryStore())
			if _, err := informer.listeners.AddEventHandler(w); err != nil {
				t.Fatal(err)
			}
			launch(t, informer)
			if !informer.WaitForCacheSync(t.Context()) {
				t.Fatal("the informer is not synced")
			}
			for i := range 50 {
				api.put(fmt.Sprint("n", i), "2")
			}
			await.Nil(t, 10*time.Second, func() error {
				runtime.GC()
				if received, held := w.held(); received != 150 || held != tc.held {
					return fmt.Errorf("received %d objects, %d are in memory, want %d", received, held, tc.held)
				}
				return nil
			})
			runtime.KeepAlive(w)
		})
	}
}

func BenchmarkCustomCache(b *testing.B) {
	api := newTinyAPI()
	api.put("a", "1")
	informer := newTestInformer(b, api, NewMemoryStore())
	launch(b, informer)
	if !informer.WaitForCacheSync(b.Context()) {
		b.Fatal("the informer is not synced")
	}
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := informer.Get(
				b.Context(), client.ObjectKey{Namespace: "test", Name: "a"}, &corev1.ConfigMap{},
			); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("event", func(b *testing.B) {
		cm, version := &corev1.ConfigMap{}, 0
		cm.Namespace, cm.Name, cm.UID = "test", "b", "b"
		b.ReportAllocs()
		for b.Loop() {
			version++
			cm.ResourceVersion = fmt.Sprint(version)
			informer.objectSeen(b.Context(), cm, false)
		}
	})
}
