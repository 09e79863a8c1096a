// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/informer"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/resource"
	"trueup.dev/shards"
	"trueup.dev/simple"
)

// With one shard per instance, one instance handles each object for its whole life, and every instance can read all
// objects.
func TestShards(t *testing.T) {
	for name, supplier := range map[string]informer.Supplier{
		"in memory": informer.DefaultSupplier,
		"in a store": informer.CustomCacheSupplier(func(resource.Kind) (informer.Store, error) {
			return informer.NewMemoryStore(), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			var calls [2]record
			var stores [2]*resource.TypedStore[*Widget]
			for i := range calls {
				shard, err := informer.Shard(i, len(calls))
				e.Must(err)
				config := e.config("sharded")
				config.Clients = &simple.Clients{}
				stores[i], err = resource.NewTypedStore[*Widget](widgetKind, config.Clients)
				e.Must(err)
				config.InformerConfig.InformerOptions.ShardFilter = shard
				config.InformerConfig.InformerSupplier = supplier
				config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: calls[i].watcher()}}
				e.start(config)
			}
			const count = 12
			for i := range count {
				e.Add(newWidget(fmt.Sprint("n", i), "first"))
			}
			handled := func(verb string) func() error {
				return func() error {
					first, second := calls[0].all(), calls[1].all()
					for i := range count {
						prefix, times := fmt.Sprintf("%s n%d", verb, i), 0
						for _, call := range append(first[:len(first):len(first)], second...) {
							if call == prefix || strings.HasPrefix(call, prefix+" ") {
								times++
							}
						}
						if times != 1 {
							return fmt.Errorf("%s: %d times, want once: %q and %q", prefix, times, first, second)
						}
					}
					return nil
				}
			}
			e.Eventually(handled("add"))
			for i := range calls {
				if len(calls[i].all()) == 0 {
					t.Errorf("instance %d handled no objects", i)
				}
				list, err := stores[i].List(e.Context(), resource.StoreListOptions{Namespace: e.Namespace})
				e.Must(err)
				if len(list.Items) != count {
					t.Errorf("instance %d reads %d objects, want all %d", i, len(list.Items), count)
				}
			}
			for i := range count {
				widget := newWidget(fmt.Sprint("n", i), "")
				widget.Namespace = e.Namespace
				e.patch(widget, `{"spec":{"title":"second"}}`)
			}
			e.Eventually(handled("update"))
			e.Must(e.DeleteAllOf(e.Context(), &Widget{}, client.InNamespace(e.Namespace)))
			for i := range count {
				widget := newWidget(fmt.Sprint("n", i), "")
				widget.Namespace = e.Namespace
				e.WaitForDeletion(widget)
			}
			e.Eventually(handled("delete"))
		})
	}
	for _, wrong := range [][2]int{{0, 0}, {-1, 2}, {2, 2}} {
		if _, err := informer.Shard(wrong[0], wrong[1]); err == nil {
			t.Errorf("Shard(%d, %d): no error", wrong[0], wrong[1])
		}
	}
}

// Two replicas of an app, and a user who moves an object as a sharder does.
func TestApp_Shard(t *testing.T) {
	const ring = "widgets"
	e := newEnv(t)
	var calls [2]record
	for i, name := range []string{"a", "b"} {
		shard, err := shards.New(shards.Options{
			Ring: ring, Shard: name, Namespace: e.Namespace, Kinds: []client.Object{&Widget{}},
		})
		e.Must(err)
		config := e.config("divided")
		config.LeaderElection, config.Shard = simple.LeaderElection{}, shard
		config.ManagedKinds = []simple.AppManagedKind{{
			Kind: widgetKind, Watcher: calls[i].watcher(), ReconcileOptions: simple.ReconcileOptions{UsePlain: true},
		}}
		e.start(config)
	}
	called := func(i int, verb string) {
		t.Helper()
		e.Eventually(func() error { return calls[i].has(verb + " moves") })
	}
	widget := newWidget("moves", "first")
	widget.Labels = map[string]string{shards.ShardLabel(ring): "a"}
	e.Add(widget)
	called(0, "add")
	e.patch(widget, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, shards.DrainLabel(ring)))
	apitest.Until(e.Env, widget, func(w *Widget) error {
		if len(w.Labels) > 0 {
			return fmt.Errorf("labels %v", w.Labels)
		}
		return nil
	})
	e.patch(widget, fmt.Sprintf(`{"metadata":{"labels":{%q:"b"}}}`, shards.ShardLabel(ring)))
	called(1, "add")
	e.Must(e.Delete(e.Context(), widget))
	called(1, "delete")
	if calls := calls[0].all(); len(calls) != 1 {
		t.Errorf("the first replica was called for an object that has moved: %q", calls)
	}
}
