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

	"trueup.dev/internal/engine/guard"
	"trueup.dev/observe"
)

// ownerIndexField is the name of the cache index of objects by the UID of their controller.
const ownerIndexField = "trueup.dev/controller-uid"

// ownerIndexes holds the indexes by owner that the cache behind a Config has. With an index, a list of the children of
// one parent does not iterate over the children of all parents. All copies of a Config share it.
type ownerIndexes struct {
	indexer client.FieldIndexer
	hub     *observe.Hub

	mu         sync.RWMutex
	registered map[ownerIndex]struct{}
}

// ownerIndex is an index of one kind, by the UID of the controller or by the label of an inventory.
type ownerIndex struct {
	field string
	kind  guard.Form
}

// inventoryIndexPrefix is followed by the key of the label.
const inventoryIndexPrefix = "trueup.dev/inventory/"

// values returns the indexed values of an object.
func (i ownerIndex) values(obj client.Object) []string {
	label, byInventory := strings.CutPrefix(i.field, inventoryIndexPrefix)
	if !byInventory {
		return controllerUID(obj)
	}
	if value, ok := obj.GetLabels()[label]; ok {
		return []string{value}
	}
	return nil
}

func newOwnerIndexes(indexer client.FieldIndexer, hub *observe.Hub) *ownerIndexes {
	return &ownerIndexes{indexer: indexer, hub: hub, registered: map[ownerIndex]struct{}{}}
}

// setUp registers an index. Obj is an object of its kind. If registration needs the API server, it is delayed until the
// controller starts, because setup must work without an API server. The caches of controller-runtime first request the
// resource of the kind from the API server.
func (x *ownerIndexes) setUp(ctx context.Context, bldr *Builder, index ownerIndex, obj client.Object) error {
	if x == nil || x.has(index) {
		return nil
	}
	if !needsServer(x.indexer, obj) {
		if err := x.register(ctx, index, obj); err == nil || !isTemporary(err) {
			return err
		}
	}
	bldr.WatchesRawSource(&ownerIndexSource{indexes: x, index: index, object: obj, log: logr.FromContextOrDiscard(ctx)})
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

// register adds an index. It can be called repeatedly for one index, also through several Configs with the same cache.
func (x *ownerIndexes) register(ctx context.Context, index ownerIndex, obj client.Object) error {
	if x.has(index) {
		return nil
	}
	err := x.indexer.IndexField(ctx, obj, index.field, index.values)
	// The index exists if another controller of the manager owns the same kind. Only this package uses the field name,
	// so the existing index is equal. The cache reports the conflict only in the error text.
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") {
		return fmt.Errorf("index %s by owner: %w", index.kind.Kind, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.registered[index] = struct{}{}
	return nil
}

func (x *ownerIndexes) has(index ownerIndex) bool {
	if x == nil {
		return false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.registered[index]
	return ok
}

// forget disables an index.
func (x *ownerIndexes) forget(index ownerIndex) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.registered, index)
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
