// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/objects/weakmap"
)

// CacheWait means that a controller has not started for some seconds, because the cache of a kind has not been filled:
// of a kind that it watches, or of one with an informer from before the start of the manager, for which all controllers
// wait. It is repeated while the controller waits.
type CacheWait struct {
	// Controller is the name of the controller, and Cluster the name of the cluster, see [Run].
	Controller, Cluster string

	Kind schema.GroupVersionKind
	// Since is the start of the wait.
	Since time.Time
	// Err is the error of a list of the kind, or says that all controllers wait for another cluster. It is nil if the list
	// succeeds, and if it cannot be tried: in another cluster than the cluster of the manager, and for informers that are
	// not made by controller-runtime.
	Err error
	// Ended reports whether the wait is over, because the cache has been filled or the controller stops.
	Ended bool
}

func (*CacheWait) event() {}

// Name returns the name of the controller, with an @ and the name of the cluster behind it if there is one.
func (w *CacheWait) Name() string { return fullName(w.Controller, w.Cluster) }

// String describes the wait.
func (w *CacheWait) String() string {
	text := "waits for the cache of " + w.Kind.GroupKind().String()
	if w.Err != nil {
		text += ": " + w.Err.Error()
	}
	return text
}

const (
	// cacheWaitInterval is the time after which a wait is reported, and reported again.
	cacheWaitInterval = 5 * time.Second
	// tryTimeout limits an attempt to list a kind.
	tryTimeout = 3 * time.Second
)

// kindSource is a source of the events of a kind. It reports that its controller waits for the cache.
type kindSource struct {
	source.SyncingSource
	controller *controllerObserver
	object     client.Object
	informers  cache.Cache

	mu   sync.Mutex
	last *CacheWait // nil before the first report, and after the end
}

// String returns the text of the source in logs and errors.
func (s *kindSource) String() string { return fmt.Sprint(s.SyncingSource) }

// kindSource returns src with reports, if it watches a kind.
func (c *controllerObserver) kindSource(src source.Source) source.Source {
	syncing, ok := src.(source.SyncingSource)
	if !ok {
		return src
	}
	obj, informers, ok := watchedBy(src)
	if !ok {
		return src
	}
	return &kindSource{SyncingSource: syncing, controller: c, object: obj, informers: informers}
}

// WaitForSync waits until the cache is filled. The error names the kinds whose caches are not: the sources of all kinds
// time out together, because each waits for the whole cache.
func (s *kindSource) WaitForSync(ctx context.Context) error {
	waits := &s.controller.hub.cacheWaits
	waits.add(s)
	defer waits.remove(s)
	defer s.end()
	stop := s.reportWait(ctx)
	err := s.SyncingSource.WaitForSync(ctx)
	stop()
	if err == nil {
		return nil
	}
	if missing := waits.missing(ctx); len(missing) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(missing, "; "), err)
	}
	return err
}

// reportWait reports the wait until stop is called, which waits for the last report.
func (s *kindSource) reportWait(ctx context.Context) (stop func()) {
	since := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(cacheWaitInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if s.isSynced(ctx) {
				s.end()
			} else {
				s.report(ctx, since)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (s *kindSource) report(ctx context.Context, since time.Time) {
	err := s.try(ctx)
	if ctx.Err() != nil {
		return
	}
	wait := CacheWait{Controller: s.controller.name, Cluster: s.controller.cluster, Kind: s.kind(), Since: since, Err: err}
	s.mu.Lock()
	isNew := s.last == nil || s.last.String() != wait.String()
	s.last = new(wait)
	s.mu.Unlock()
	if isNew {
		s.controller.log.Info("The controller cannot start yet: it "+wait.String(), "since", since.UTC().Format(time.RFC3339))
	}
	s.controller.hub.Observe(ctx, &wait)
}

// end reports that the wait is over, if it was reported.
func (s *kindSource) end() {
	s.mu.Lock()
	last := s.last
	s.last = nil
	s.mu.Unlock()
	if last != nil {
		ended := *last
		ended.Ended = true
		s.controller.hub.Observe(context.Background(), &ended)
	}
}

func (s *kindSource) kind() schema.GroupVersionKind {
	gvk, _ := apiutil.GVKForObject(s.object, s.controller.scheme)
	if gvk.Empty() {
		gvk.Kind = reflect.TypeOf(s.object).String()
	}
	return gvk
}

// isSynced reports whether the cache of the kind is filled, which does not mean that the whole cache is.
func (s *kindSource) isSynced(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	informer, err := s.informers.GetInformer(ctx, s.object, cache.BlockUntilSynced(false))
	return err == nil && informer.HasSynced()
}

// reason returns the error of the last report, or tries now if there was none.
func (s *kindSource) reason(ctx context.Context) error {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last != nil {
		return last.Err
	}
	return s.try(context.WithoutCancel(ctx))
}

// try returns why the cache of the kind cannot be filled, or nil if that is unknown.
func (s *kindSource) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	if _, err := s.informers.GetInformer(ctx, s.object, cache.BlockUntilSynced(false)); meta.IsNoMatchError(err) {
		return fmt.Errorf("%w: the API server does not serve it, apply its CustomResourceDefinition", err)
	} else if err != nil {
		return err
	}
	return s.controller.tryList(ctx, s.informers, s.kind())
}

// cacheWaits holds the kinds that the controllers of a manager wait for. The zero value is ready to use.
type cacheWaits struct {
	mu    sync.Mutex
	kinds map[*kindSource]bool
	// failed describes the caches that were not filled in time.
	failed map[string]bool
}

func (w *cacheWaits) add(s *kindSource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kinds == nil {
		w.kinds, w.failed = map[*kindSource]bool{}, map[string]bool{}
	}
	w.kinds[s] = true
}

func (w *cacheWaits) remove(s *kindSource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.kinds, s)
}

// missing describes the caches that are not filled, sorted.
func (w *cacheWaits) missing(ctx context.Context) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.kinds {
		if s.isSynced(ctx) {
			continue
		}
		text := "the cache of " + s.kind().GroupKind().String() + " did not sync"
		if err := s.reason(ctx); err != nil {
			text += " (" + err.Error() + ")"
		}
		w.failed[text] = true
	}
	return slices.Sorted(maps.Keys(w.failed))
}

// tryList lists a kind as the informers of a manager do, to learn why these are not filled: informers only log it.
func (c *controllerObserver) tryList(ctx context.Context, informers cache.Cache, kind schema.GroupVersionKind) error {
	if weakmap.Address(informers) != weakmap.Address(c.mgr.GetCache()) || kind.Version == "" {
		return nil
	}
	for _, namespace := range ctrlfields.Namespaces(informers, kind) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.mgr.GetAPIReader().List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return err
		}
	}
	return nil
}
