// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"trueup.dev/informer"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// suppliers are all kinds of informers.
func suppliers() map[string]informer.Supplier {
	return map[string]informer.Supplier{
		"default": informer.DefaultSupplier, "memory store": over(informer.NewMemoryStore()),
		"forgetful store": over(forgetful{}),
	}
}

// forgetful is a store that has lost its content.
type forgetful struct{}

func (forgetful) Get(context.Context, []string) (map[string][]byte, error) { return nil, nil }
func (forgetful) Set(context.Context, string, []byte) error                { return nil }
func (forgetful) Delete(context.Context, string) error                     { return nil }

func TestInformers_Select(t *testing.T) {
	t.Parallel()
	for supplier, supply := range suppliers() {
		t.Run(supplier, func(t *testing.T) {
			e := newEnv(t)
			other := e.anotherNamespace()
			for i := range 12 {
				blue := newConfigMap(fmt.Sprintf("blue-%d", i), nil)
				blue.Labels = map[string]string{"team": "blue", "stage": "prod"}
				e.Add(blue)
			}
			red := newConfigMap("red", nil)
			red.Labels = map[string]string{"team": "red", "stage": "prod"}
			e.Add(red)
			elsewhere := newConfigMap("elsewhere", nil)
			elsewhere.Namespace, elsewhere.Labels = other, map[string]string{"team": "red", "stage": "prod"}
			e.Add(elsewhere)

			tests := map[string]struct {
				options informer.Options
				want    int
				// matched only for one informer
				one, outside string
			}{
				"label": {
					options: informer.Options{LabelFilters: []string{"team=blue"}}, want: 12, one: "blue-1", outside: "red",
				},
				"labels": {
					options: informer.Options{LabelFilters: []string{"team in (blue, red)", "team!=blue"}}, want: 1,
					one: "red", outside: "blue-1",
				},
				"field": {
					options: informer.Options{FieldSelectors: []string{"metadata.name=red"}}, want: 1, one: "red",
					outside: "blue-1",
				},
				"both": {
					options: informer.Options{
						FieldSelectors: []string{"metadata.name!=red"}, LabelFilters: []string{"team=red"},
					},
					want: 0, outside: "red",
				},
				"namespaces": {
					options: informer.Options{Namespaces: []string{e.Namespace, other}, LabelFilters: []string{"stage"}},
					want:    14, one: "red", outside: "none",
				},
				"other namespace": {
					options: informer.Options{Namespaces: []string{other}, LabelFilters: []string{"stage"}}, want: 1,
					outside: "red",
				},
				"metadata only": {
					options: informer.Options{MetadataOnly: true, LabelFilters: []string{"stage"}}, want: 13, one: "red",
					outside: "kube-root-ca.crt",
				},
			}
			views := map[string]ctrl.Manager{}
			e.start(func(_ context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				for name, tc := range tests {
					view, err := informer.View(mgr, name, e.supply(supply, mgr, tc.options))
					e.Must(err)
					views[name] = view
				}
				return nil
			})
			for name, tc := range tests {
				reader := views[name].GetClient()
				var list client.ObjectList = &corev1.ConfigMapList{}
				var object client.Object = &corev1.ConfigMap{}
				if tc.options.MetadataOnly {
					kind := metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
					object = &metav1.PartialObjectMetadata{TypeMeta: kind}
					kind.Kind += "List"
					list = &metav1.PartialObjectMetadataList{TypeMeta: kind}
				}
				e.Eventually(func() error {
					var notStarted *cache.ErrCacheNotStarted
					err := reader.List(e.Context(), list)
					if err != nil && !errors.As(err, &notStarted) {
						t.Fatal(err)
					}
					return err
				})
				if got := lengthOf(list); got != tc.want {
					t.Errorf("%s: %d objects, want %d", name, got, tc.want)
				}
				if tc.one != "" {
					e.Must(reader.Get(e.Context(), client.ObjectKey{Namespace: e.Namespace, Name: tc.one}, object))
				}
				err := reader.Get(e.Context(), client.ObjectKey{Namespace: e.Namespace, Name: tc.outside}, object)
				if !apierrs.IsNotFound(err) && name != "other namespace" || err == nil {
					t.Errorf("%s: read of %q, which is not selected: %v", name, tc.outside, err)
				}
			}
		})
	}
}

func lengthOf(list client.ObjectList) int {
	if partial, ok := list.(*metav1.PartialObjectMetadataList); ok {
		return len(partial.Items)
	}
	return len(list.(*corev1.ConfigMapList).Items)
}

// Managed fields are as large as a small object, and no cache needs them.
func TestWeaknessC7_ManagedFieldsAreNotKept(t *testing.T) {
	t.Parallel()
	for supplier, supply := range suppliers() {
		t.Run(supplier, func(t *testing.T) {
			e := newEnv(t)
			e.Add(newConfigMap("test", map[string]string{"value": "1"}))
			e.Must(e.Read(newConfigMap("test", nil)))
			var source informer.Informer
			e.start(func(_ context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				source = e.supply(supply, mgr, informer.Options{})
				_, err := informer.View(mgr, "test", source)
				return err
			})
			received := make(chan *corev1.ConfigMap, 10)
			events, err := source.GetInformer(e.Context(), &corev1.ConfigMap{})
			e.Must(err)
			_, err = events.AddEventHandler(handlerFunc(func(obj any) { received <- obj.(*corev1.ConfigMap) }))
			e.Must(err)
			read := &corev1.ConfigMap{}
			e.Eventually(func() error {
				return source.Get(
					e.Context(), client.ObjectKey{Namespace: e.Namespace, Name: "test"}, read, client.UnsafeDisableDeepCopy,
				)
			})
			for what, cm := range map[string]*corev1.ConfigMap{"received": <-received, "read": read} {
				if len(cm.ManagedFields) > 0 || cm.UID == "" {
					t.Errorf("%s has the managed fields %v", what, cm.ManagedFields)
				}
			}
		})
	}
}

type handlerFunc func(obj any)

func (f handlerFunc) OnAdd(obj any, _ bool) { f(obj) }
func (f handlerFunc) OnUpdate(_, obj any)   { f(obj) }
func (f handlerFunc) OnDelete(any)          {}

// checks collects the checks that are added to a manager.
type checks struct {
	ctrl.Manager
	ready map[string]healthz.Checker
}

func (c *checks) AddReadyzCheck(name string, check healthz.Checker) error {
	c.ready[name] = check
	return c.Manager.AddReadyzCheck(name, check)
}

func TestInformers_ReadyWhenFilled(t *testing.T) {
	t.Parallel()
	for supplier, supply := range suppliers() {
		t.Run(supplier, func(t *testing.T) {
			e := newEnv(t)
			caught := &checks{ready: map[string]healthz.Checker{}}
			e.watches.hold("configmaps")
			var called atomic.Bool
			watcher := &calls{fail: func(string) error { called.Store(true); return nil }}
			e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				caught.Manager = mgr
				c := operator.NewInformerController(operator.DefaultInformerControllerConfig())
				e.Must(
					errors.Join(
						c.AddInformer(e.supply(supply, mgr, informer.Options{}), "test"), c.AddWatcher(watcher, "test"),
					),
				)
				return c.SetupWithManager(ctx, caught)
			})
			check := caught.ready["informer-test"]
			if check == nil {
				t.Fatalf("the checks are %v", caught.ready)
			}
			request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, "/readyz", nil)
			e.Must(err)
			if check(request) == nil {
				t.Error("ready before all objects are listed")
			}
			e.Add(newConfigMap("test", nil))
			e.watches.release("configmaps")
			e.Eventually(func() error { return check(request) })
			watcher.until(e, "add test ")
		})
	}
}

// The guard against stale caches works with informers, too, whether or not their store works.
func TestInformers_StaleCache(t *testing.T) {
	t.Parallel()
	for supplier, supply := range suppliers() {
		t.Run(supplier, func(t *testing.T) {
			e := newEnv(t)
			e.start(e.inView(supply, root(generated(""))))
			e.Add(newResource("first", map[string]string{"want": "yes"}))
			e.Eventually(func() error { return want(1, len(e.childrenOf("first"))) })

			e.watches.hold("configmaps")
			before := apitest.Counted(e, "trueup_stale_cache_waits_total", nil)
			resource := newResource("test", map[string]string{"want": "yes"})
			e.Add(resource)
			e.Eventually(func() error {
				if len(e.childrenOf("test")) == 0 {
					return errors.New("no child yet")
				}
				e.touch(resource)
				if apitest.Counted(e, "trueup_stale_cache_waits_total", nil) < before+3 {
					return errors.New("not deferred yet")
				}
				return nil
			})
			if got := len(e.childrenOf("test")); got != 1 {
				t.Errorf("%d children exist, want 1", got)
			}
			e.watches.release("configmaps")
			change(e, newResource("test", nil), func(r *fixture.Resource) { r.Spec.Fields["value"] = "2" })
			e.Eventually(func() error {
				children := e.childrenOf("test")
				if len(children) == 1 && children[0].Data["value"] == "2" {
					return nil
				}
				return fmt.Errorf("the children are %v", children)
			})
			e.Eventually(func() error { // a write is recorded when its response arrives, which may be after the watch event
				writes := slices.Sorted(slices.Values(e.traffic.of("configmaps")))
				return want("POST POST PUT", strings.Join(writes, " "))
			})
		})
	}
}

func TestInformers_ErrorHandler(t *testing.T) {
	t.Parallel()
	for supplier, supply := range suppliers() {
		t.Run(supplier, func(t *testing.T) {
			e := newEnv(t)
			wire, handled := &connection{}, make(chan error, 1000)
			watcher := &calls{}
			e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				c := operator.NewInformerController(operator.InformerControllerConfig{})
				informer := e.supply(supply, e.overConnection(wire), informer.Options{
					ErrorHandler: func(_ context.Context, err error) { handled <- err },
				})
				e.Must(errors.Join(c.AddInformer(informer, "test"), c.AddWatcher(watcher, "test")))
				return c.SetupWithManager(ctx, mgr)
			})
			e.Add(newConfigMap("test", nil))
			watcher.until(e, "add test ")
			wire.disconnect()
			if err := <-handled; err == nil {
				t.Error("called without an error")
			}
			e.Add(newConfigMap("later", nil))
			wire.reconnect(e)
			watcher.until(e, "add later ")
		})
	}
}

// Objects without a Go type work like others.
func TestInformers_Forms(t *testing.T) {
	t.Parallel()
	for supplier, supply := range suppliers() {
		t.Run(supplier, func(t *testing.T) {
			e := newEnv(t)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(widgetKind)
			widgets := resource.Kind{
				Schema: resource.NewSimpleSchema(widgetKind.Group, widgetKind.Version, newUnstructured(widgetKind, ""), list),
			}
			resources := resource.Kind{
				Schema: resource.NewSimpleSchema(
					fixture.GroupVersion.Group, fixture.GroupVersion.Version, &fixture.Resource{}, &fixture.ResourceList{},
				),
			}
			watcher := &calls{}
			e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				c := operator.NewInformerController(operator.InformerControllerConfig{})
				for _, kind := range []resource.Kind{widgets, resources} {
					informer, err := supply(kind, mgr, informer.Options{Namespaces: []string{e.Namespace}})
					e.Must(errors.Join(err, c.AddInformer(informer, kind.Kind()), c.AddWatcher(watcher, kind.Kind())))
				}
				return c.SetupWithManager(ctx, mgr)
			})
			widget := newUnstructured(widgetKind, "widget")
			e.Add(widget)
			e.Add(newResource("typed", nil))
			watcher.until(e, "add widget *unstructured.Unstructured", "add typed *fixture.Resource")
			e.touch(widget)
			watcher.until(e, "update widget *unstructured.Unstructured>*unstructured.Unstructured")
			e.Must(e.Delete(e.Context(), widget))
			watcher.until(e, "delete widget *unstructured.Unstructured")
		})
	}
}
