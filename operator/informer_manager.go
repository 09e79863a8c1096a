// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/internal/guard"
	"trueup.dev/internal/lifecycle"
	"trueup.dev/internal/nilcheck"
)

// WithInformer returns a view of the manager that has the objects of one kind from an informer: its cache, its client
// and its field indexer use the informer for that kind in the informer's form, and what the manager has for all else. A
// controller that is made with it, and with the [reconcilers.Config] of it, works on the objects of the informer;
// others are not affected.
//
// The manager starts the informer and waits for it before it starts controllers. Until the informer has all objects,
// the manager is not ready: a check named `informer-<name>` says why, so the name should be unique. An informer belongs
// to one call. Views can be made of views.
//
// WithInformer makes no request. While the API server cannot be reached, or does not serve the kind, the manager waits
// and tries again; the reason is logged once, and counted in trueup_informer_start_failures_total.
func WithInformer(mgr ctrl.Manager, name string, informer Informer) (ctrl.Manager, error) {
	if made, ok := informer.(interface{ isEmpty() bool }); ok && made.isEmpty() || nilcheck.IsNil(informer) {
		return nil, fmt.Errorf("informer %q must not be nil", name)
	}
	object := informer.Object()
	if nilcheck.IsNil(object) {
		return nil, fmt.Errorf("informer %q must have an object of its kind", name)
	}
	gvk, err := apiutil.GVKForObject(object, mgr.GetScheme())
	if err != nil {
		return nil, fmt.Errorf("informer %q: %w", name, err)
	}
	started := startedInformer{
		informer, gvk.GroupKind().String(), mgr.GetLogger().WithValues("informer", name, "kind", gvk.GroupKind().String()),
	}
	if err := mgr.Add(started); err != nil {
		return nil, fmt.Errorf("add informer %q: %w", name, err)
	}
	if err := mgr.AddReadyzCheck("informer-"+name, started.check); err != nil {
		return nil, fmt.Errorf("add the check of informer %q: %w", name, err)
	}
	route := route{form: guard.NewForm(gvk, object), scheme: mgr.GetScheme(), informer: informer}
	return &informedManager{
		Manager: mgr,
		cache:   &informedCache{Cache: mgr.GetCache(), route: route},
		client:  &informedClient{Client: mgr.GetClient(), route: route},
	}, nil
}

var errNotFilled = errors.New("not all objects are known yet")

var informerStartFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "trueup_informer_start_failures_total",
	Help: "Failed attempts to start an informer. Each is tried again.",
}, []string{"kind"})

func init() {
	metrics.Registry.MustRegister(informerStartFailures)
}

// startedInformer is an informer with the methods by which a manager starts a cache, and waits for it before it starts
// anything else.
type startedInformer struct {
	Informer
	kind string
	log  logr.Logger
}

func (i startedInformer) GetCache() cache.Cache { return i }

// WaitForCacheSync has the informer watch its kind, and waits until it has all objects. It tries again while the API
// server cannot be asked for the kind: a manager does not stop when a cache cannot be started.
func (i startedInformer) WaitForCacheSync(ctx context.Context) bool {
	err := lifecycle.Retry(ctx, i.watch, func(err error, failures int) bool {
		informerStartFailures.WithLabelValues(i.kind).Inc()
		if failures == 1 {
			i.log.Info("unable to start the informer yet, trying again", "reason", err.Error())
		}
		return true
	})
	return err == nil && i.Informer.WaitForCacheSync(ctx)
}

func (i startedInformer) watch(ctx context.Context) error {
	_, err := i.GetInformer(ctx, i.Object(), cache.BlockUntilSynced(false))
	return err
}

// check is the readiness check of the informer.
func (i startedInformer) check(req *http.Request) error {
	events, err := i.GetInformer(req.Context(), i.Object(), cache.BlockUntilSynced(false))
	if err == nil && !events.HasSynced() {
		err = errNotFilled
	}
	return err
}

type informedManager struct {
	ctrl.Manager
	cache  *informedCache
	client *informedClient
}

func (m *informedManager) GetCache() cache.Cache                { return m.cache }
func (m *informedManager) GetClient() client.Client             { return m.client }
func (m *informedManager) GetFieldIndexer() client.FieldIndexer { return m.cache }

// route tells for what an informer is to be used.
type route struct {
	form     guard.Form
	scheme   *runtime.Scheme
	informer Informer
}

func (r route) is(obj runtime.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return false
	}
	if _, list := obj.(client.ObjectList); list {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return guard.NewForm(gvk, obj) == r.form
}

// isKind is for callers that only name a kind: they mean its Go type.
func (r route) isKind(gvk schema.GroupVersionKind) bool {
	obj, err := r.scheme.New(gvk)
	return err == nil && guard.NewForm(gvk, obj) == r.form
}

type informedCache struct {
	cache.Cache
	route
}

// CacheOf returns the cache behind this one that has the kind of obj, in its form.
func (c *informedCache) CacheOf(obj client.Object) cache.Cache {
	of := c.to(obj)
	if behind, ok := of.(interface {
		CacheOf(obj client.Object) cache.Cache
	}); ok {
		return behind.CacheOf(obj)
	}
	return of
}

func (c *informedCache) to(obj runtime.Object) cache.Cache {
	if c.is(obj) {
		return c.informer
	}
	return c.Cache
}

func (c *informedCache) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return c.to(obj).Get(ctx, key, obj, opts...)
}

func (c *informedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.to(list).List(ctx, list, opts...)
}

func (c *informedCache) GetInformer(
	ctx context.Context, obj client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	return c.to(obj).GetInformer(ctx, obj, opts...)
}

func (c *informedCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	if c.isKind(gvk) {
		return c.informer.GetInformerForKind(ctx, gvk, opts...)
	}
	return c.Cache.GetInformerForKind(ctx, gvk, opts...)
}

func (c *informedCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	return c.to(obj).RemoveInformer(ctx, obj)
}

func (c *informedCache) IndexField(
	ctx context.Context, obj client.Object, field string, extract client.IndexerFunc,
) error {
	return c.to(obj).IndexField(ctx, obj, field, extract)
}

// WaitForCacheSync waits for the informer, too: this is what the sources of a controller ask.
func (c *informedCache) WaitForCacheSync(ctx context.Context) bool {
	return c.informer.WaitForCacheSync(ctx) && c.Cache.WaitForCacheSync(ctx)
}

type informedClient struct {
	client.Client
	route
}

func (c *informedClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if c.is(obj) {
		return c.informer.Get(ctx, key, obj, opts...)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *informedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if c.is(list) {
		return c.informer.List(ctx, list, opts...)
	}
	return c.Client.List(ctx, list, opts...)
}
