// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/observe"
)

// Shard returns an [Options.ShardFilter] for one of several instances that share the objects of a kind. Each
// object belongs to one index, from 0 to count-1, determined by its namespace and name. An object that is deleted and
// created again belongs to the same instance.
func Shard(index, count int) (func(object client.Object) bool, error) {
	if count < 1 || index < 0 || index >= count {
		return nil, fmt.Errorf(
			"a shard must have a count of at least 1 and an index from 0 to count-1, got index %d of %d", index, count,
		)
	}
	return func(object client.Object) bool {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(object.GetNamespace() + "/" + object.GetName()))
		return int(hash.Sum32()%uint32(count)) == index
	}, nil
}

// sharded returns an informer that provides only the objects of its shard.
func sharded(informer Informer, filter func(object client.Object) bool) Informer {
	if filter == nil {
		return informer
	}
	return &shardInformer{informer, filter}
}

type shardInformer struct {
	Informer
	filter func(object client.Object) bool
}

func (s *shardInformer) reportTo(hub *observe.Hub) { reportTo(s.Informer, hub) }

func (s *shardInformer) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if err := s.Informer.Get(ctx, key, obj, opts...); err != nil || s.filter(obj) {
		return err
	}
	return apierrs.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, key.Name)
}

func (s *shardInformer) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	limit := options.Limit
	options.Limit = 0 // objects of other shards must not count
	if err := s.Informer.List(ctx, list, options); err != nil {
		return err
	}
	items := []runtime.Object{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok && s.filter(obj) && (limit == 0 || int64(len(items)) < limit) {
			items = append(items, item)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return meta.SetList(list, items)
}

func (s *shardInformer) GetInformer(
	ctx context.Context, obj client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	return s.events(s.Informer.GetInformer(ctx, obj, opts...))
}

func (s *shardInformer) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	return s.events(s.Informer.GetInformerForKind(ctx, gvk, opts...))
}

func (s *shardInformer) events(all cache.Informer, err error) (cache.Informer, error) {
	if err != nil {
		return nil, err
	}
	return shardEvents{all, s.filter}, nil
}

// shardEvents filters the events of a shard.
type shardEvents struct {
	cache.Informer
	filter func(object client.Object) bool
}

func (e shardEvents) only(handler toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return toolscache.FilteringResourceEventHandler{Handler: handler, FilterFunc: func(event any) bool {
		if unknown, ok := event.(toolscache.DeletedFinalStateUnknown); ok {
			event = unknown.Obj
		}
		obj, ok := event.(client.Object)
		return ok && e.filter(obj)
	}}
}

func (e shardEvents) AddEventHandler(handler toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error,
) {
	return e.Informer.AddEventHandler(e.only(handler))
}

func (e shardEvents) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, period time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return e.Informer.AddEventHandlerWithResyncPeriod(e.only(handler), period)
}

func (e shardEvents) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return e.Informer.AddEventHandlerWithOptions(e.only(handler), options)
}

// CacheOf returns the underlying cache of the informer.
func (s *shardInformer) CacheOf(obj client.Object) cache.Cache {
	if behind, ok := s.Informer.(interface {
		CacheOf(obj client.Object) cache.Cache
	}); ok {
		return behind.CacheOf(obj)
	}
	return s.Informer
}
