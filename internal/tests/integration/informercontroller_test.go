// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/informer"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// In the original, a store that failed or lost its content made events disappear: changes while it failed, deletions of
// objects that it had lost, and deletions during a disconnection when it could not list.
func TestWeaknessB8_NoStoreLosesEvents(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]informer.Store{
		"forgetful": forgetful{}, "failing": failing{}, "memory": informer.NewMemoryStore(),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			for _, name := range []string{"stays", "changes", "goes", "is-replaced"} {
				e.Add(newConfigMap(name, map[string]string{"value": "1"}))
			}
			watcher, wire := &calls{}, &connection{}
			e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				c := operator.NewInformerController(operator.InformerControllerConfig{})
				informer := e.supply(over(store), e.overConnection(wire), informer.Options{})
				e.Must(errors.Join(c.AddInformer(informer, "test"), c.AddWatcher(watcher, "test")))
				return c.SetupWithManager(ctx, mgr)
			})
			watcher.until(e, "add stays 1", "add changes 1", "add goes 1", "add is-replaced 1")
			change(e, newConfigMap("stays", nil), func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"value": "2"} })
			e.Must(e.Delete(e.Context(), e.named("goes")))
			watcher.until(e, "update stays 1>2", "delete goes 1")
			e.Add(newConfigMap("goes", map[string]string{"value": "again"}))
			watcher.until(e, "add goes again")

			wire.disconnect()
			change(e, newConfigMap("changes", nil), func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"value": "2"} })
			e.Must(e.Delete(e.Context(), e.named("goes")))
			e.Must(e.Delete(e.Context(), e.named("is-replaced")))
			e.Add(newConfigMap("is-replaced", map[string]string{"value": "2"}))
			e.Add(newConfigMap("comes", map[string]string{"value": "1"}))
			wire.reconnect(e)
			watcher.until(
				e, "update changes 1>2", "delete goes again", "delete is-replaced 1", "add is-replaced 2", "add comes 1",
			)
			counts := map[string]int{}
			for _, line := range watcher.made() {
				counts[line]++
			}
			for line, n := range counts {
				if n > 1 {
					t.Errorf("%d calls %q", n, line)
				}
			}
			if len(counts) != 12 {
				t.Errorf("%d calls, want 12: %v", len(counts), watcher.made())
			}
		})
	}
}

func (e *env) named(name string) *corev1.ConfigMap {
	cm := newConfigMap(name, nil)
	cm.Namespace = e.Namespace
	return cm
}

type failing struct{}

var errStore = errors.New("out of order")

func (failing) Get(context.Context, []string) (map[string][]byte, error) { return nil, errStore }
func (failing) Set(context.Context, string, []byte) error                { return errStore }
func (failing) Delete(context.Context, string) error                     { return errStore }

// In the original, handlers for one kind with different selectors were all called for the objects of every selector.
func TestWeaknessA8_SelectorsOfOneKindAreKeptApart(t *testing.T) {
	e := newEnv(t)
	blue, red, both := &calls{}, &calls{}, &calls{}
	e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		selected := func(label string) informer.Informer {
			return e.supply(informer.DefaultSupplier, mgr, informer.Options{LabelFilters: []string{label}})
		}
		c := operator.NewInformerController(operator.InformerControllerConfig{})
		e.Must(errors.Join(
			c.AddInformer(selected("team=blue"), "blue"), c.AddWatcher(blue, "blue"),
			c.AddInformer(selected("team=red"), "red"), c.AddWatcher(red, "red"),
			// Two informers under one name are how callers request this.
			c.AddInformer(selected("team=blue"), "both"), c.AddInformer(selected("team=red"), "both"),
			c.AddWatcher(both, "both"),
		))
		return c.SetupWithManager(ctx, mgr)
	})
	for _, team := range []string{"blue", "red"} {
		cm := newConfigMap(team, nil)
		cm.Labels = map[string]string{"team": team}
		e.Add(cm)
	}
	blue.until(e, "add blue ")
	red.until(e, "add red ")
	both.until(e, "add blue ", "add red ")
	change(e, newConfigMap("blue", nil), func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"team": "red"} })
	blue.until(e, "delete blue ")
	red.until(e, "add blue ")
	if diff := cmp.Diff([]string{"add blue ", "delete blue "}, blue.made()); diff != "" {
		t.Errorf("blue (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"add red ", "add blue "}, red.made()); diff != "" {
		t.Errorf("red (-want +got):\n%s", diff)
	}
}

func TestInformerController_Handlers(t *testing.T) {
	e := newEnv(t)
	var mu sync.Mutex
	order, handled := []string{}, []string{}
	note := func(to *[]string, line string) {
		mu.Lock()
		defer mu.Unlock()
		*to = append(*to, line)
	}
	failures := 0
	first := &calls{fail: func(string) error {
		note(&order, "first")
		if failures++; failures <= 3 {
			return fmt.Errorf("failure %d", failures)
		}
		return nil
	}}
	second := &operator.TypedReconciler[*corev1.ConfigMap]{ReconcileFunc: func(
		_ context.Context, req operator.TypedReconcileRequest[*corev1.ConfigMap],
	) (operator.ReconcileResult, error) {
		if req.Object.Name == "test" {
			note(&order, "second "+req.Action.String())
		}
		return operator.ReconcileResult{}, nil
	}}
	c := operator.NewInformerController(operator.InformerControllerConfig{
		RetryPolicy:  func(error, int) (bool, time.Duration) { return true, time.Millisecond },
		ErrorHandler: func(_ context.Context, err error) { note(&handled, err.Error()) },
	})
	e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		informer := e.supply(over(informer.NewMemoryStore()), mgr, informer.Options{})
		e.Must(
			errors.Join(
				c.AddInformer(informer, "handlers"), c.AddWatcher(first, "handlers"), c.AddReconciler(second, "handlers"),
			),
		)
		return c.SetupWithManager(ctx, mgr)
	})
	e.Add(newConfigMap("test", nil))
	e.Eventually(func() error { return want(4, len(first.made())) })
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"failure 1", "failure 2", "failure 3"}, handled); diff != "" {
		t.Errorf("errors that were handled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first", "second Created", "first", "first", "first"}, order); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if err := c.AddWatcher(first, "handlers"); err == nil {
		t.Error("a watcher was added to a running controller")
	}
}

func TestInformerController_RunsByItself(t *testing.T) {
	e := newEnv(t)
	e.Add(newConfigMap("test", map[string]string{"value": "1"}))
	behind := e.overConnection(&connection{})
	watcher := &calls{}
	c := operator.NewInformerController(operator.InformerControllerConfig{
		KubeConfig: e.RESTConfig(), Scheme: fixture.NewScheme(),
	})
	informer := e.supply(informer.MetadataOnlySupplier, behind, informer.Options{})
	e.Must(errors.Join(c.AddInformer(informer, e.Namespace), c.AddWatcher(watcher, e.Namespace)))
	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	e.Eventually(func() error {
		select {
		case err := <-ended:
			t.Fatalf("ended with %v", err)
		default:
		}
		return want(1, len(watcher.made()))
	})
	if diff := cmp.Diff([]string{"add test *v1.PartialObjectMetadata"}, watcher.made()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	cancel()
	e.Must(<-ended)
}
