// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*SuppressTransientErrors[client.Object, client.ObjectList])(nil)

// SuppressTransientErrors suppresses the first consecutive errors of a resource. Suppressed errors are retried with
// back-off, but the controller does not log or count them, and the status is not written. Messages that the failed
// reconciler logs itself are kept. From the Threshold-th consecutive error on, errors are returned. An [ErrDurable] is
// returned immediately. A halt is not an error.
//
// Errors are counted per resource, and per item of a [ForEach]. A success, a halt, an [ErrDurable] or a new generation
// of the resource resets the count. Once a day, the reconciler lists all resources and drops the counts of resources
// that no longer exist.
//
// RBAC, with the group and the plural of the kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch
type SuppressTransientErrors[Type client.Object, ListType client.ObjectList] struct {
	// Name identifies this reconciler in logs. Defaults to `SuppressTransientErrors`.
	Name string

	// ListType is the list kind of the resource. Defaults to the type parameter; required for unstructured objects and
	// duck types.
	ListType ListType

	// Setup registers watches and indexes. It is called after Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Threshold is the number of consecutive errors from which errors are returned. Defaults to 3.
	Threshold uint8

	// Reconciler runs as usual. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once

	mu        sync.Mutex
	counters  map[counted]errorCounter
	lastPurge time.Time
}

// counted is a resource or, in a loop, an item of it.
type counted struct {
	uid  types.UID
	item string
}

// errorCounter counts consecutive errors of one generation of a resource.
type errorCounter struct {
	generation int64
	count      uint8
}

const (
	defaultErrorThreshold = 3
	purgeInterval         = 24 * time.Hour
)

func (r *SuppressTransientErrors[T, LT]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "SuppressTransientErrors"
		}
		if nilcheck.IsNilPointer(r.ListType) {
			r.ListType = newEmpty[LT]()
		}
		if r.Threshold == 0 {
			r.Threshold = defaultErrorThreshold
		}
		r.counters = map[counted]errorCounter{}
	})
}

// SetupWithManager validates the reconciler, sets up Reconciler and calls Setup.
func (r *SuppressTransientErrors[T, LT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required field. If ctx requests recursion, it also validates Reconciler.
func (r *SuppressTransientErrors[T, LT]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *SuppressTransientErrors[T, LT]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *SuppressTransientErrors[T, LT]) describe(d *description) {
	r.init()
	d.is("SuppressTransientErrors", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.check(func(ctx context.Context, problems *problems) {
		problems.kind(d.label, "ListType", r.ListType)
		_, metadata := any(r.ListType).(*metav1.PartialObjectMetadataList)
		if !metadata && !nilcheck.IsNilPointer(newEmpty[T]()) {
			problems.listOf(d.label, "ListType", r.ListType, newEmpty[T]())
		}
		problems.requests(ctx, d.label, false)
	})
	d.accesses((*graph.Node).ReadsResource)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
	d.setsUp(r.Setup)
}

// Reconcile runs Reconciler and suppresses transient errors.
func (r *SuppressTransientErrors[T, LT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *SuppressTransientErrors[T, LT]) reconcile(ctx context.Context, resource T) (Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if r.suppresses(ctx, resource, err) {
		err = errors.Join(err, ErrSkipStatusUpdate, ErrQuiet)
	}
	r.purge(ctx)
	return result, err
}

// suppresses counts the error and reports whether to suppress it.
func (r *SuppressTransientErrors[T, LT]) suppresses(ctx context.Context, resource T, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	key := counted{uid: resource.GetUID(), item: itemOf(ctx)}
	if err == nil || errors.Is(err, ErrHaltSubReconcilers) {
		delete(r.counters, key)
		return false
	}
	counter := r.counters[key]
	if counter.generation != resource.GetGeneration() {
		counter = errorCounter{generation: resource.GetGeneration()}
	}
	if counter.count < math.MaxUint8 {
		counter.count++
	}
	r.counters[key] = counter
	return counter.count < r.Threshold
}

// purge drops the counters of resources that no longer exist, once a day. One worker does this. The other workers do
// not wait.
func (r *SuppressTransientErrors[T, LT]) purge(ctx context.Context) {
	if !r.purgeIsDue(rtime.RetrieveNow(ctx)) {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("purging stale resource counters")
	config, err := RetrieveConfig(ctx)
	if err != nil {
		log.Error(err, "purge failed to list resources")
		return
	}
	list := empty.Like(r.ListType)
	if err := config.List(ctx, list); err != nil {
		log.Error(err, "purge failed to list resources")
		return
	}
	present := sets.New[types.UID]()
	if err := meta.EachListItem(list, func(item runtime.Object) error {
		present.Insert(item.(client.Object).GetUID())
		return nil
	}); err != nil {
		log.Error(err, "purge failed to list resources")
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.counters {
		if !present.Has(key.uid) {
			delete(r.counters, key)
		}
	}
}

func (r *SuppressTransientErrors[T, LT]) purgeIsDue(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastPurge.IsZero() {
		r.lastPurge = now
		return false
	}
	if now.Sub(r.lastPurge) < purgeInterval {
		return false
	}
	r.lastPurge = now
	return true
}
