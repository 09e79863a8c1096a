// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

const (
	// toleratedFailures is the number of consecutive failures after which the store is paused.
	toleratedFailures = 3
	// storePause is the length of the pause after each further failure, so that an unresponsive store does not delay
	// every event and every read.
	storePause = time.Second
	// outageEnd is the time that a store must work without a failure before the outage is over.
	outageEnd = 10 * time.Second
)

// checkedStore verifies everything that a store returns. To callers, a failure of the store is a miss. It reports each
// failure, and logs the beginning and the end of an outage.
type checkedStore struct {
	store Store
	// hub receives events. It is nil without a manager.
	hub    atomic.Pointer[observe.Hub]
	kind   schema.GroupKind
	prefix string
	seed   maphash.Seed

	mu sync.Mutex
	// failures is the number of consecutive failed calls.
	failures int
	// failed is the time of the last failure during an outage, zero if there is no outage.
	failed time.Time
	// pausedUntil is the end of the pause.
	pausedUntil time.Time
}

func newCheckedStore(store Store, gvk schema.GroupVersionKind, object client.Object) *checkedStore {
	prefix := gvk.GroupVersion().String() + "/" + gvk.Kind + "/"
	switch object.(type) {
	case *metav1.PartialObjectMetadata:
		prefix += "metadata/"
	case runtime.Unstructured:
		prefix += "unstructured/"
	}
	return &checkedStore{store: store, kind: gvk.GroupKind(), prefix: prefix, seed: maphash.MakeSeed()}
}

func (s *checkedStore) keyOf(key client.ObjectKey) string {
	return s.prefix + key.Namespace + "/" + key.Name
}

// get returns the objects whose entries are valid, as copies of an empty object.
func (s *checkedStore) get(
	ctx context.Context, empty client.Object, wanted map[client.ObjectKey]entry,
) map[client.ObjectKey]client.Object {
	keys := make([]string, 0, len(wanted))
	for key, known := range wanted {
		if known.hash != 0 {
			keys = append(keys, s.keyOf(key))
		}
	}
	if len(keys) == 0 || s.isPaused() {
		return nil
	}
	values, err := s.store.Get(ctx, keys)
	s.judge(ctx, "get", err)
	found := make(map[client.ObjectKey]client.Object, len(values))
	for key, known := range wanted {
		value, ok := values[s.keyOf(key)]
		if !ok || s.hash(value) != known.hash {
			continue
		}
		obj := empty.DeepCopyObject().(client.Object)
		if err := json.Unmarshal(value, obj); err != nil || !known.is(obj) {
			s.judge(ctx, "decode", err)
			continue
		}
		found[key] = obj
	}
	return found
}

// set writes an object to the store, and returns the hash of the value that the store should have.
func (s *checkedStore) set(ctx context.Context, key client.ObjectKey, obj client.Object) uint64 {
	value, err := json.Marshal(obj)
	if err != nil {
		s.judge(ctx, "encode", err)
		return 0
	}
	if !s.isPaused() {
		s.judge(ctx, "set", s.store.Set(ctx, s.keyOf(key), value))
	}
	return s.hash(value)
}

func (s *checkedStore) delete(ctx context.Context, key client.ObjectKey) {
	if !s.isPaused() {
		s.judge(ctx, "delete", s.store.Delete(ctx, s.keyOf(key)))
	}
}

func (s *checkedStore) hash(value []byte) uint64 {
	return max(maphash.Bytes(s.seed, value), 1)
}

func (s *checkedStore) isPaused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.pausedUntil)
}

func (s *checkedStore) judge(ctx context.Context, operation string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := logr.FromContextOrDiscard(ctx).WithValues("kind", s.kind.String(), "operation", operation)
	if err == nil {
		s.failures = 0
		if !s.failed.IsZero() && time.Since(s.failed) >= outageEnd {
			s.failed = time.Time{}
			log.Info("the store of an informer works again")
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	s.events().Report(ctx, &observe.AttemptFailed{
		Attempt: observe.UseStore, Kind: s.kind, Operation: operation, Err: err,
	})
	if s.failed.IsZero() {
		log.Error(err, "the store of an informer fails; reading objects from the API server until it works again")
	}
	s.failed = time.Now()
	if s.failures++; s.failures >= toleratedFailures {
		s.pausedUntil = s.failed.Add(storePause)
	}
}

// missed reports that objects are read from the API server.
func (s *checkedStore) missed(ctx context.Context) {
	s.events().Report(ctx, &observe.StoreMissed{Kind: s.kind})
}

// events returns the hub of the manager, or that of what belongs to no manager.
func (s *checkedStore) events() *observe.Hub {
	if hub := s.hub.Load(); hub != nil {
		return hub
	}
	return metrics.Enable(nil)
}
