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

// ownerIndexField is the name of the cache index of objects by the UID of their controller.
const ownerIndexField = "trueup.dev/controller-uid"

// ownerIndex holds the kinds for which the cache behind a Config has an index by owner. With the index, listing the
// children of one parent does not iterate over the children of all parents. All copies of a Config share it.
type ownerIndex struct {
	indexer client.FieldIndexer

	mu    sync.RWMutex
	kinds map[guard.Form]struct{}
}

func newOwnerIndex(indexer client.FieldIndexer) *ownerIndex {
	return &ownerIndex{indexer: indexer, kinds: map[guard.Form]struct{}{}}
}

// setUp registers the index for the kind of obj. If registration needs the API server, it is delayed until the
// controller starts, because setup must work without an API server. The caches of controller-runtime first request the
// resource of the kind from the API server.
func (x *ownerIndex) setUp(ctx context.Context, bldr *Builder, kind guard.Form, obj client.Object) error {
	if x == nil || x.has(kind) {
		return nil
	}
	if !needsServer(x.indexer, obj) {
		if err := x.register(ctx, kind, obj); err == nil || !isTemporary(err) {
			return err
		}
	}
	bldr.WatchesRawSource(&ownerIndexSource{index: x, kind: kind, object: obj, log: logr.FromContextOrDiscard(ctx)})
	return nil
}

// needsServer reports whether registering an index for the kind of obj sends requests to the API server.
func needsServer(indexer client.FieldIndexer, obj client.Object) bool {
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

// register indexes the kind of obj. It can be called repeatedly for one kind, also through several Configs with the
// same cache.
func (x *ownerIndex) register(ctx context.Context, kind guard.Form, obj client.Object) error {
	if x.has(kind) {
		return nil
	}
	err := x.indexer.IndexField(ctx, obj, ownerIndexField, controllerUID)
	// The index exists if another controller of the manager owns the same kind. Only this package uses the field name,
	// so the existing index is equal. The cache reports the conflict only in the error text.
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

// forget disables the index for a kind.
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

// controlledBy restricts list options to the objects that owner controls. It returns false if the options already have
// a field selector, because the index would replace it.
func controlledBy(owner types.UID, opts []client.ListOption) (*client.ListOptions, bool) {
	listOptions := (&client.ListOptions{}).ApplyOptions(opts)
	if listOptions.FieldSelector != nil && !listOptions.FieldSelector.Empty() {
		return nil, false
	}
	listOptions.FieldSelector = fields.OneTermEqualSelector(ownerIndexField, string(owner))
	return listOptions, true
}
