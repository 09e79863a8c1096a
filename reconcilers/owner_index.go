// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/guard"
)

// ownerIndexField is the name of the cache index that finds objects by the UID of their controller.
const ownerIndexField = "trueup.dev/controller-uid"

// ownerIndex knows for which kinds the cache behind a Config can find the objects that a given owner controls, so that
// looking up the children of one parent does not cost a walk over everybody's children. It is shared by all copies of a
// Config.
type ownerIndex struct {
	indexer client.FieldIndexer

	mu    sync.RWMutex
	kinds map[guard.Form]struct{}
}

func newOwnerIndex(indexer client.FieldIndexer) *ownerIndex {
	return &ownerIndex{indexer: indexer, kinds: map[guard.Form]struct{}{}}
}

// setUp registers the index for the kind of obj: at once where that needs no API server, else when the controller
// starts. The caches of controller-runtime ask the API server for the resource of the kind first, and set-up must work
// without one.
func (x *ownerIndex) setUp(ctx context.Context, bldr *Builder, kind guard.Form, obj client.Object) error {
	if x == nil || x.has(kind) {
		return nil
	}
	if !asksServer(x.indexer, obj) {
		if err := x.register(ctx, kind, obj); err == nil || !mayPass(err) {
			return err
		}
	}
	bldr.WatchesRawSource(&ownerIndexSource{index: x, kind: kind, object: obj, log: logr.FromContextOrDiscard(ctx)})
	return nil
}

// asksServer reports whether registering an index for the kind of obj makes requests to the API server.
func asksServer(indexer client.FieldIndexer, obj client.Object) bool {
	if routed, ok := indexer.(interface {
		CacheOf(obj client.Object) cache.Cache
	}); ok {
		indexer = routed.CacheOf(obj)
	}
	t := reflect.TypeOf(indexer)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && t.PkgPath() == reflect.TypeFor[cache.Options]().PkgPath()
}

// register indexes the kind of obj. It may be called many times for one kind, also through several Configs for one
// cache.
func (x *ownerIndex) register(ctx context.Context, kind guard.Form, obj client.Object) error {
	if x.has(kind) {
		return nil
	}
	err := x.indexer.IndexField(ctx, obj, ownerIndexField, controllerUID)
	// The index is there already when another controller of the manager owns the same kind. The field's name is ours
	// alone, so what is there is the same index. The cache has no other way to tell.
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") {
		return fmt.Errorf("index %s by owner: %w", kind.Kind, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds[kind] = struct{}{}
	return nil
}

func (x *ownerIndex) has(kind guard.Form) bool {
	if x == nil {
		return false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.kinds[kind]
	return ok
}

// forget makes lookups of a kind go without the index from now on.
func (x *ownerIndex) forget(kind guard.Form) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.kinds, kind)
}

func controllerUID(obj client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return []string{string(ref.UID)}
	}
	return nil
}

// controlledBy narrows list options to the objects that owner controls. It returns false when the caller's options have
// a field selector of their own, which a second one would replace.
func controlledBy(owner types.UID, opts []client.ListOption) (*client.ListOptions, bool) {
	listOptions := (&client.ListOptions{}).ApplyOptions(opts)
	if listOptions.FieldSelector != nil && !listOptions.FieldSelector.Empty() {
		return nil, false
	}
	listOptions.FieldSelector = fields.OneTermEqualSelector(ownerIndexField, string(owner))
	return listOptions, true
}
