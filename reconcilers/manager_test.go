// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"

	"trueup.dev/reconcilers"
)

// newManager returns a manager that works without an API server. It uses the client of the world. If events is nil, it
// has a real cache, which never syncs.
func newManager(t testing.TB, w *world, events *eventCache, unknown ...string) ctrl.Manager {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range w.Scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	for _, kind := range unknown {
		mapper = withoutKind(w.Scheme, kind)
	}
	options := ctrl.Options{
		Scheme:         w.Scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return w.Config.Client, nil },
		Metrics:        server.Options{BindAddress: "0"},
		Controller:     ctrlconfig.Controller{SkipNameValidation: new(true)},
	}
	if events != nil {
		options.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) { return events, nil }
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://nowhere.invalid"}, options)
	if err != nil {
		t.Fatalf("create manager: %v", err)
	}
	return mgr
}

func withoutKind(scheme *runtime.Scheme, kind string) *meta.DefaultRESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Kind != kind {
			mapper.Add(gvk, meta.RESTScopeNamespace)
		}
	}
	return mapper
}

// configFor returns the config of a manager, with the recorder and the tracker of the world.
func configFor(w *world, mgr ctrl.Manager) reconcilers.Config {
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	config.Recorder, config.Tracker, config.APIReader = w.Config.Recorder, w.Config.Tracker, w.Config.APIReader
	return config
}

// start runs the manager until the test ends.
func start(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	<-mgr.Elected()
}

// eventCache is a cache whose events a test sends. It records the requested watches and indexes.
type eventCache struct {
	*informertest.FakeInformers

	mu        sync.Mutex
	informers map[schema.GroupVersionKind]*eventInformer
	indexed   []string
	indexErr  error
}

type eventInformer struct {
	*controllertest.FakeInformer
	mu      sync.Mutex
	watches int
	forms   map[string]bool
	objects []client.Object
	// handlers are those that the watches added.
	handlers []toolscache.ResourceEventHandler
}

func newEventCache(scheme *runtime.Scheme) *eventCache {
	return &eventCache{
		FakeInformers: &informertest.FakeInformers{Scheme: scheme}, informers: map[schema.GroupVersionKind]*eventInformer{},
	}
}

func (c *eventCache) GetInformer(
	_ context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	informer := c.informer(obj)
	informer.mu.Lock()
	defer informer.mu.Unlock()
	informer.forms[fmt.Sprintf("%T", obj)] = true
	return informer, nil
}

func (c *eventCache) informer(obj client.Object) *eventInformer {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.informers[gvk] == nil {
		c.informers[gvk] = &eventInformer{
			FakeInformer: controllertest.NewFakeInformer(controllertest.Synced), forms: map[string]bool{},
		}
	}
	return c.informers[gvk]
}

func (c *eventCache) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indexed = append(c.indexed, fmt.Sprintf("%T by %s", obj, field))
	if extract(obj) != nil {
		return fmt.Errorf("an object without an owner is in the index")
	}
	return c.indexErr
}

func (i *eventInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.watches++
	// A new handler receives all existing objects.
	for _, obj := range i.objects {
		handler.OnAdd(obj, true)
	}
	i.handlers = append(i.handlers, handler)
	return i.FakeInformer.AddEventHandlerWithOptions(handler, options)
}

// changed sends an event of obj to all watches of its kind.
func (c *eventCache) changed(obj client.Object) {
	informer := c.informer(obj)
	informer.mu.Lock()
	defer informer.mu.Unlock()
	informer.objects = append(informer.objects, obj)
	informer.Add(obj)
}

// deliver calls event with each handler of a kind.
func (c *eventCache) deliver(kind client.Object, event func(handler toolscache.ResourceEventHandler)) {
	informer := c.informer(kind)
	informer.mu.Lock()
	defer informer.mu.Unlock()
	for _, handler := range informer.handlers {
		event(handler)
	}
}

// isWatched reports whether a kind has a handler.
func (c *eventCache) isWatched(kind client.Object) bool {
	informer := c.informer(kind)
	informer.mu.Lock()
	defer informer.mu.Unlock()
	return len(informer.handlers) > 0
}

// requests receives the requests of the reconcilers of a running manager.
type requests chan reconcilers.Request

// next returns the next request. It fails the test after a timeout.
func (r requests) next(t *testing.T, why string) reconcilers.Request {
	t.Helper()
	select {
	case req := <-r:
		return req
	case <-time.After(10 * time.Second):
		t.Fatalf("no request after %s", why)
		return reconcilers.Request{}
	}
}

// deadline waits until reached returns true. It fails the test after a timeout.
func deadline(t *testing.T, what string, reached func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) {
		return reached(), nil
	})
	if err != nil {
		t.Fatalf("timed out waiting: %s", what)
	}
}
