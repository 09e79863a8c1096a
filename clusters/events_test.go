// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/clusters"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/await"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// events counts the calls of a watcher, by cluster and action.
type events struct {
	mu    sync.Mutex
	calls map[string]int
}

func (e *events) called(ctx context.Context, action string, site *websitev1.Website) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[clusters.Name(ctx)+" "+action+" "+site.Spec.Domain]++
	return nil
}

func (e *events) Add(ctx context.Context, site *websitev1.Website) error {
	return e.called(ctx, "add", site)
}

func (e *events) Update(ctx context.Context, previous, site *websitev1.Website) error {
	return e.called(ctx, "update from "+previous.Spec.Domain+" to", site)
}

func (e *events) Delete(ctx context.Context, site *websitev1.Website) error {
	return e.called(ctx, "delete", site)
}

// TestFleet_events handles the events of two clusters with objects of the same name, in the style of package operator.
func TestFleet_events(t *testing.T) {
	a, b := inMemory(t, "a"), inMemory(t, "b")
	handled := &events{calls: map[string]int{}}
	p := run(t, a, clusters.Options{SetUp: func(ctx context.Context, mgr ctrl.Manager) error {
		return (&operator.Controller[*websitev1.Website]{
			Name:     "events",
			Handlers: []reconcilers.SubReconciler[*websitev1.Website]{operator.WatcherReconciler[*websitev1.Website](handled)},
			Config:   reconcilers.NewConfig(mgr, &websitev1.Website{}, 0),
		}).SetupWithManager(ctx, mgr)
	}})
	a.engage(p.Fleet)
	connected := b.engage(p.Fleet)
	want := map[string]int{}
	expect := func(call string) {
		t.Helper()
		want[call]++
		await.Nil(t, timeout, func() error {
			handled.mu.Lock()
			defer handled.mu.Unlock()
			if diff := cmp.Diff(want, maps.Clone(handled.calls)); diff != "" {
				return fmt.Errorf("calls (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	a.add("same")
	expect("a add same.a.example")
	b.add("same")
	expect("b add same.b.example")
	site := &websitev1.Website{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "same"}, site); err != nil {
		t.Fatal(err)
	}
	site.Spec.Domain = "other.b.example"
	if err := b.Update(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	expect("b update from same.b.example to other.b.example")
	if err := a.Delete(t.Context(), newSite("same", "")); err != nil {
		t.Fatal(err)
	}
	expect("a delete same.a.example")
	connected.leave()
	await.Nil(t, timeout, func() error {
		if n := apitest.Counted(t, "trueup_handler_resources", nil); n != 0 {
			return fmt.Errorf("remembered resources after the cluster has left = %v, want 0", n)
		}
		return nil
	})
}

// TestFleet_fairNamespaces checks that the queue of all clusters has the option of the controller.
func TestFleet_fairNamespaces(t *testing.T) {
	a := inMemory(t, "a")
	handled := &events{calls: map[string]int{}}
	for name, fair := range map[string]bool{"by default": false, "with FairNamespaces": true} {
		t.Run(name, func(t *testing.T) {
			p := run(t, a, clusters.Options{SetUp: func(ctx context.Context, mgr ctrl.Manager) error {
				config := reconcilers.NewConfig(mgr, &websitev1.Website{}, 0)
				config.FairNamespaces = fair
				return (&operator.Controller[*websitev1.Website]{
					Name: "events", Config: config,
					Handlers: []reconcilers.SubReconciler[*websitev1.Website]{
						operator.WatcherReconciler[*websitev1.Website](handled),
					},
				}).SetupWithManager(ctx, mgr)
			}})
			a.engage(p.Fleet)
			if got := clusters.NamespacesTakeTurns(p.Fleet, "events"); got != fair {
				t.Errorf("namespaces take turns: %t, want %t", got, fair)
			}
		})
	}
}
