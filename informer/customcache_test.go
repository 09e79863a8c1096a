// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCustomCache_Events checks the events that handlers receive if the store works, has lost all entries, or
// fails.
func TestCustomCache_Events(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		store  Store
		want   []string
	}{
		"store": {
			reason: "previous and last states come from the store", store: NewMemoryStore(),
			want: []string{
				"add a 1 initial=true", "update a 1>2", "update a 2>3", "delete a 3", "add a 4 initial=false", "delete a 4",
			},
		},
		"forgetful store": {
			reason: "unknown fields are empty, and every event is delivered", store: forgetful{},
			want: []string{
				"add a 1 initial=true", "update a >2", "update a >3", "delete a 3", "add a 4 initial=false", "delete a ",
			},
		},
		"failing store": {
			reason: "an error is a miss", store: failing{},
			want: []string{
				"add a 1 initial=true", "update a >2", "update a >3", "delete a 3", "add a 4 initial=false", "delete a ",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newTinyAPI()
				api.put("a", "1")
				informer := newTestInformer(t, api, tc.store)
				a := listen(t, informer)
				launch(t, informer)
				for _, do := range []func(){
					func() {},
					func() { api.put("a", "2") },
					func() { api.put("a", "3") },
					func() { api.remove("a") },
					func() { api.put("a", "4") },
					func() { api.disconnect(); api.remove("a"); api.connect(true) },
				} {
					do()
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				if diff := cmp.Diff(tc.want, a.received()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

type forgetful struct{}

func (forgetful) Get(context.Context, []string) (map[string][]byte, error) { return nil, nil }
func (forgetful) Set(context.Context, string, []byte) error                { return nil }
func (forgetful) Delete(context.Context, string) error                     { return nil }

type failing struct{}

func (failing) Get(context.Context, []string) (map[string][]byte, error) { return nil, errFault }
func (failing) Set(context.Context, string, []byte) error                { return errFault }
func (failing) Delete(context.Context, string) error                     { return errFault }

// running returns an informer that has all objects of the API.
func running(t *testing.T, api *tinyAPI, store Store) *CustomCache {
	t.Helper()
	informer := newTestInformer(t, api, store)
	launch(t, informer)
	if !informer.WaitForCacheSync(t.Context()) {
		t.Fatal("the informer is not synced")
	}
	return informer
}

func TestCustomCache_StartsFromTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, store := newTinyAPI(), NewMemoryStore()
		api.put("kept", "1")
		api.put("changed", "1")
		api.put("removed", "1")
		earlier := newTestInformer(t, api, store)
		stop := launch(t, earlier)
		synctest.Wait()
		stop()
		api.put("changed", "2")
		api.remove("removed")
		if store.Len() != 3 {
			t.Fatalf("%d entries, want 3", store.Len())
		}

		informer := newTestInformer(t, api, store)
		a := listen(t, informer)
		launch(t, informer)
		synctest.Wait()
		got := slices.Sorted(slices.Values(a.received()))
		if diff := cmp.Diff([]string{"add changed 2 initial=true", "add kept 1 initial=true"}, got); diff != "" {
			t.Errorf("an old entry must be ignored (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(api.state(), listed(t, informer)); diff != "" {
			t.Errorf("lists differ (-want +got):\n%s", diff)
		}
	})
}

// slow is a store behind a network that drops all packets.
type slow struct{ failing }

func (slow) Set(context.Context, string, []byte) error {
	time.Sleep(500 * time.Millisecond)
	return errFault
}

func TestCustomCache_StoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTinyAPI()
		for i := range 1000 {
			api.put(fmt.Sprintf("n%d", i), "1")
		}
		begin := time.Now()
		informer := running(t, api, slow{})
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it took %s to sync 1000 objects", took)
		}
		if n := len(listed(t, informer)); n != 1000 {
			t.Errorf("%d objects, want 1000", n)
		}
	})
}

func TestCustomCache_Resyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTinyAPI()
		api.put("a", "1")
		informer := newTestInformer(t, api, NewMemoryStore(), func(s *selection) { s.resync = time.Hour })
		resynced, not := listen(t, informer), newAudience(t, informer)
		if _, err := informer.listeners.AddEventHandlerWithResyncPeriod(not, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := informer.listeners.AddEventHandlerWithResyncPeriod(not, time.Minute); err == nil {
			t.Error("a resync period other than the informer's: no error")
		}
		launch(t, informer)
		time.Sleep(150 * time.Minute)
		synctest.Wait()
		want := []string{"add a 1 initial=true", "update a 1>1", "update a 1>1"}
		if diff := cmp.Diff(want, resynced.received()); diff != "" {
			t.Errorf("resynced (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"add a 1 initial=true"}, not.received()); diff != "" {
			t.Errorf("not resynced (-want +got):\n%s", diff)
		}
	})
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestCustomCache_Refuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTinyAPI()
		api.disconnect()
		informer := newTestInformer(t, api, NewMemoryStore())
		ctx, key := t.Context(), client.ObjectKey{Namespace: "test", Name: "a"}
		if err := informer.Get(ctx, key, &corev1.ConfigMap{}); !errors.As(err, new(*cache.ErrCacheNotStarted)) {
			t.Errorf("a read before the start: %v", err)
		}
		partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
		stop := launch(t, informer)
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, blocked := informer.GetInformer(short, &corev1.ConfigMap{})
		_, byKind := informer.GetInformerForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		_, indexers := informer.GetInformerForKind(
			ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, cache.BlockUntilSynced(false),
		)
		must(t, indexers)
		for name, err := range map[string]error{
			"another kind": informer.Get(ctx, key, &corev1.Secret{}), "another form": informer.Get(ctx, key, partial),
			"another list": informer.List(ctx, &corev1.SecretList{}), "another kind by name": byKind,
			"not synced": blocked, "a list that is not synced": informer.List(short, &corev1.ConfigMapList{}),
			"second start": informer.Start(ctx), "late index": informer.IndexField(ctx, &corev1.ConfigMap{}, "late", nil),
			"indexers":              informer.listeners.AddIndexers(toolscache.Indexers{}),
			"removal of other kind": informer.RemoveInformer(ctx, &corev1.Secret{}),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if informer.WaitForCacheSync(short) {
			t.Error("synced without an API")
		}
		must(t, informer.RemoveInformer(ctx, &corev1.ConfigMap{}))
		stop() // has ended already
		if informer.WaitForCacheSync(ctx) {
			t.Error("synced after its end")
		}
		if _, err := informer.GetInformer(ctx, &corev1.ConfigMap{}); err == nil {
			t.Error("available after its removal")
		}
		if _, err := informer.listeners.AddEventHandler(newAudience(t, informer)); err == nil ||
			!informer.listeners.IsStopped() {
			t.Errorf("a handler after the end: %v", err)
		}
	})
}

func TestCustomCache_RemovesHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTinyAPI()
		informer := running(t, api, NewMemoryStore())
		removed, kept := newAudience(t, informer), listen(t, informer)
		registration, err := informer.listeners.AddEventHandler(removed)
		must(t, err)
		api.put("a", "1")
		synctest.Wait()
		if !registration.HasSynced() || !toolscache.IsDone(registration.HasSyncedChecker()) ||
			!toolscache.IsDone(informer.listeners.HasSyncedChecker()) {
			t.Error("not synced")
		}
		must(t, informer.listeners.RemoveEventHandler(registration), informer.listeners.RemoveEventHandler(registration))
		api.put("b", "1")
		synctest.Wait()
		if diff := cmp.Diff([]string{"add a 1 initial=false"}, removed.received()); diff != "" {
			t.Errorf("removed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"add a 1 initial=false", "add b 1 initial=false"}, kept.received()); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}

// Each namespace has its own connection. An event from one connection says nothing about the progress of the others.
func TestCustomCache_Namespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := newTinyAPI(), newTinyAPI()
		there.namespace = "other"
		there.disconnect()
		here.put("a", "1")
		there.put("b", "1")
		informer, err := newCustomCache(selection{object: &corev1.ConfigMap{}}, scheme.Scheme, here, NewMemoryStore())
		must(t, err)
		for _, api := range []*tinyAPI{here, there} {
			informer.addFeed(api.namespace, api.source()).onError = func(context.Context, *toolscache.Reflector, error) {}
		}
		a := listen(t, informer)
		launch(t, informer)
		synctest.Wait()
		if informer.listeners.HasSynced() {
			t.Error("synced without one of the namespaces")
		}
		there.connect(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !informer.listeners.HasSynced() || informer.listeners.SeenUpTo() != "" {
			t.Errorf("synced: %t, seen up to %q", informer.listeners.HasSynced(), informer.listeners.SeenUpTo())
		}
		there.disconnect()
		there.put("c", "1")
		there.remove("b")
		there.connect(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"add a 1 initial=true", "add b 1 initial=true", "add c 1 initial=false", "delete b 1"}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(a.received()))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for namespace, want := range map[string]bool{"test": true, "other": true, "third": false} {
			err := informer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
			if (err == nil) != want {
				t.Errorf("list of %s: %v", namespace, err)
			}
			err = informer.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "none"}, &corev1.ConfigMap{})
			if apierrs.IsNotFound(err) != want {
				t.Errorf("read in %s: %v", namespace, err)
			}
		}
	})
}

func TestCustomCache_SeenUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTinyAPI()
		api.put("a", "1")
		informer := newTestInformer(t, api, NewMemoryStore())
		if got := informer.listeners.SeenUpTo(); got != "" {
			t.Errorf("seen up to %q before the start", got)
		}
		launch(t, informer)
		for i, do := range []func(){
			func() {}, func() { api.put("a", "2") }, func() { api.put("b", "1") }, func() { api.remove("a") },
		} {
			do()
			synctest.Wait()
			if got, want := informer.listeners.SeenUpTo(), fmt.Sprint(i+1); got != want {
				t.Errorf("seen up to %q, want %q", got, want)
			}
		}
	})
}
