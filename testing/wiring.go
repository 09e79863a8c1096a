// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// Wiring is what a reconciler asks of a manager when it is set up: which kinds trigger a reconcile of what, which
// indexes it needs, which options its controller has. A reconciler with a watch that was forgotten passes all other
// tests, and does nothing when it should.
//
// Wiring is observed, not read from the reconciler: it is set up with a manager that needs no API server, its
// controller is started, and events are made up for all that it watches to see which requests come out. The reconciler
// itself is not called.
//
// Each kind is listed once in a field, however many watches there are for it. The order does not matter.
// [reconcilers.ChildReconciler] and [reconcilers.ChildSetReconciler] have their kind in Owns, in Tracks and in Indexes;
// without owner references they have it in Tracks only. What the root asks for itself is not part of the wiring of a
// sub reconciler.
//
// Of sources that are not caches, such as channels, nothing is seen but the requests they make at once. Rate limiters
// are not seen.
type Wiring struct {
	// Controller is the name of the controller. Empty for its default, the kind in lower case.
	Controller string
	// For are the kinds that are reconciled: an event makes a request with the name of its object.
	For []Watch
	// Owns are the kinds whose events make a request with the name of the owner, which is of a kind in For.
	Owns []Watch
	// Tracks are the kinds whose events make a request for each resource that tracks the object, as with
	// [reconcilers.EnqueueTracked] and the tracker of the config.
	Tracks []Watch
	// Watches are the kinds that are watched in any other way, with a function that maps objects to requests, for example,
	// and those whose events made no request.
	Watches []Watch
	// AtStart are the requests that are made without an event when the controller starts. An aggregate has one.
	AtStart []reconcilers.Request
	// Indexes of the caches. Nil asserts nothing; an empty slice says that there are none.
	Indexes []Index
	// Options of the controller that are not the default.
	Options ControllerOptions
	// Others are the wirings of further controllers, when there are several: in the order in which they are set up. They
	// have no Indexes of their own.
	Others []Wiring

	// notes are what a reader should know about how this was observed.
	notes []string
}

// Watch is a kind that is watched.
type Watch struct {
	// Object tells the kind, and in which form it is watched: an empty typed object, or an unstructured one or bare
	// metadata with API version and kind. Duck types are watched as unstructured objects.
	Object client.Object
	// Cluster is the name of the cluster it is watched in, see [OtherCluster]. Empty for that of the manager.
	Cluster string
	// Ignores are the changes that trigger nothing, because a predicate filters them out. The default is none.
	Ignores []Change
}

// Index is an index of the cache for one kind.
type Index struct {
	// Object tells the kind and the form, as for a [Watch].
	Object client.Object
	// Field is the name of the index, to be used in field selectors.
	Field string
	// Cluster is the name of the cluster whose cache it is. Empty for that of the manager.
	Cluster string
}

// ControllerOptions are options of a controller. A zero field is the default, and so is the value that it stands for.
type ControllerOptions struct {
	// MaxConcurrentReconciles is the number of workers. Defaults to 1.
	MaxConcurrentReconciles int
	// CacheSyncTimeout is how long caches may take until the controller gives up. Defaults to 2 minutes.
	CacheSyncTimeout time.Duration
	// ReconciliationTimeout is how long one request may take. Defaults to no limit.
	ReconciliationTimeout time.Duration
	// RecoverPanic tells whether the controller survives panics. Defaults to true.
	RecoverPanic *bool
	// NeedLeaderElection tells whether the controller runs on the leader only. Defaults to true.
	NeedLeaderElection *bool
	// EnableWarmup tells whether sources are started before the manager is elected. Defaults to false.
	EnableWarmup *bool
}

// RecordWiring has setUp set a reconciler up and returns its wiring. It fails the test when the set-up fails, with all
// that is wrong. It takes some milliseconds, may be called concurrently and leaves nothing behind.
//
// The config is what [reconcilers.NewConfig] returns for the manager. As in production, the client cannot read from the
// cache during set-up. Nothing that is added to the manager is started but controllers, for an instant and without
// workers; all their sources are.
//
// Objects that are given are there for whoever asks the API, and events are made up for them, too. Give an object where
// a predicate or a mapping wants certain contents: without one, no request is seen to come of that watch.
func RecordWiring(
	t testing.TB, scheme *runtime.Scheme, setUp func(
		ctx context.Context, mgr ctrl.Manager, config reconcilers.Config,
	) error, given ...client.Object,
) *Wiring {
	t.Helper()
	wiring, err := recordWiring(t.Context(), scheme, setUp, given...)
	if err != nil {
		t.Fatalf("unable to record the wiring: %s", err)
	}
	return wiring
}

// Assert fails the test when the wiring is another one than expected, and tells what it is.
func (w *Wiring) Assert(t *testing.T, expected *Wiring) {
	t.Helper()
	if diff := diffWiring(expected, w); diff != "" {
		failValue(t, "ExpectWiring", diff, "ExpectWiring", w)
	}
}
