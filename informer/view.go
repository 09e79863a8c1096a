// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/weakmap"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

// View returns a view of the manager in which the objects of one kind come from an informer. The cache, the client and
// the field indexer of the view use the informer for that kind in the informer's form, and the manager's cache for
// everything else. A controller that uses the view, and a [trueup.dev/reconcilers.Config] made from the view, works on
// the objects of the informer. Other controllers are not affected.
//
// The manager starts the informer and waits for it before it starts controllers. Until the informer has all objects,
// the manager is not ready: the check `informer-<name>` reports the reason, and `informer-<name>-2` is the check of a
// second view of the manager with the same name. Each informer can be passed to View only once. To use several
// informers, make a view of a view.
//
// View makes no request. While the API server is unreachable, or does not serve the kind, the manager waits and
// retries. The reason is logged once, and the metric trueup_informer_start_failures_total counts the failures. It does
// not wait for an informer of [WhileServed].
//
// The metrics of package observe/metrics are enabled for the manager, unless observe.Of(mgr).Remove(metrics.Default())
// is called, before or afterwards.
func View(mgr ctrl.Manager, name string, informer Informer) (ctrl.Manager, error) {
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
		informer, gvk.GroupKind(), mgr.GetLogger().WithValues("informer", name, "kind", gvk.GroupKind().String()),
		metrics.Enable(mgr),
	}
	reportTo(informer, started.hub)
	if err := mgr.Add(started); err != nil {
		return nil, fmt.Errorf("add informer %q: %w", name, err)
	}
	if err := mgr.AddReadyzCheck(checkName(mgr, started.hub, "informer-"+name), started.check); err != nil {
		return nil, fmt.Errorf("add the check of informer %q: %w", name, err)
	}
	route := route{form: guard.NewForm(gvk, object), scheme: mgr.GetScheme(), informer: informer}
	return &informedManager{
		Manager: mgr,
		cache:   &informedCache{Cache: mgr.GetCache(), route: route},
		client:  &informedClient{Client: mgr.GetClient(), route: route},
	}, nil
}

// checkNames has the names of the checks of each manager, by the manager's hub, or by the part of a cluster.
var checkNames weakmap.Map[byte, sync.Map]

// checkName returns a name that no other check of the manager has: a manager replaces a check of the same name.
func checkName(mgr ctrl.Manager, hub *observe.Hub, name string) string {
	of := weakmap.Address(hub)
	if part, _ := observe.InCluster(mgr); part != nil {
		of = weakmap.Address(part)
	}
	used, unique := checkNames.Of(of), name
	for n := 2; ; n++ {
		if _, taken := used.LoadOrStore(unique, true); !taken {
			return unique
		}
		unique = name + "-" + strconv.Itoa(n)
	}
}

// reportTo sets the hub that receives the events of an informer, if it has events.
func reportTo(informer Informer, hub *observe.Hub) {
	if reports, ok := informer.(interface{ reportTo(hub *observe.Hub) }); ok {
		reports.reportTo(hub)
	}
}

// startedInformer adds GetCache to an informer, so that the manager starts it as a cache and waits for it before it
// starts anything else.
type startedInformer struct {
	Informer
	kind schema.GroupKind
	log  logr.Logger
	hub  *observe.Hub
}

func (i startedInformer) GetCache() cache.Cache { return i }

// WaitForCacheSync starts the watch of the informer, and waits until the informer has all objects. It retries while
// the API server is unreachable, so that the manager does not stop.
func (i startedInformer) WaitForCacheSync(ctx context.Context) bool {
	if lifecycle.RunsWhileServed(i.Informer) {
		return i.Informer.WaitForCacheSync(ctx)
	}
	err := lifecycle.Retry(ctx, func(ctx context.Context) error {
		_, err := lifecycle.EventsOf(ctx, i.Informer)
		return err
	}, func(err error, failures int) bool {
		i.hub.Report(ctx, &observe.AttemptFailed{Attempt: observe.StartInformer, Kind: i.kind, Err: err})
		if failures == 1 {
			i.log.Info("unable to start the informer, retrying", "reason", err.Error())
		}
		return true
	})
	return err == nil && i.Informer.WaitForCacheSync(ctx)
}

// check is the readiness check of the informer.
func (i startedInformer) check(req *http.Request) error {
	return lifecycle.CheckSynced(req.Context(), i.Informer)
}

type informedManager struct {
	ctrl.Manager
	cache  *informedCache
	client *informedClient
}

// Unwrap returns the manager. Package observe uses it.
func (m *informedManager) Unwrap() ctrl.Manager { return m.Manager }

func (m *informedManager) GetCache() cache.Cache                { return m.cache }
func (m *informedManager) GetClient() client.Client             { return m.client }
func (m *informedManager) GetFieldIndexer() client.FieldIndexer { return m.cache }

// route decides which objects come from an informer.
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

// isKind is for callers that pass only a kind: they refer to its Go type.
func (r route) isKind(gvk schema.GroupVersionKind) bool {
	obj, err := r.scheme.New(gvk)
	return err == nil && guard.NewForm(gvk, obj) == r.form
}

type informedCache struct {
	cache.Cache
	route
}

// Unwrap returns the cache of the manager. Package observe uses it: a view has the listeners of its manager.
func (c *informedCache) Unwrap() cache.Cache { return c.Cache }

// CacheOf returns the underlying cache for the kind and form of obj.
func (c *informedCache) CacheOf(obj client.Object) cache.Cache {
	of := c.to(obj)
	if behind, ok := of.(interface {
		CacheOf(obj client.Object) cache.Cache
	}); ok {
		return behind.CacheOf(obj)
	}
	return of
}

// KeepsIndexes reports whether the informer of the kind and form of obj has its indexes again after it was removed.
func (c *informedCache) KeepsIndexes(obj client.Object) bool {
	keeps, ok := c.to(obj).(interface{ KeepsIndexes(obj client.Object) bool })
	return ok && keeps.KeepsIndexes(obj)
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

// WaitForCacheSync also waits for the informer: the sources of a controller call it.
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
