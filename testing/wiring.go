// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/wiring"
)

// Wiring is what a reconciler asks of a manager when it is set up: which kinds trigger a reconcile of what, which
// indexes it needs, and which options its controller has. A reconciler with a forgotten watch passes all other tests,
// but does not react in a cluster.
//
// Wiring is observed, not read from the reconciler. The reconciler is set up with a manager that needs no API server,
// its controller is started, and made-up events for all watched kinds show which requests result. The reconciler itself
// is not called.
//
// Each field lists a kind once, even if there are several watches for it. The order does not matter.
// [reconcilers.ChildReconciler] and [reconcilers.ChildSetReconciler] have their kind in Owns, in Tracks and in Indexes;
// without owner references they have it in Tracks only. The wiring of a sub reconciler does not contain what its root
// asks for.
//
// Of sources other than caches, such as channels, only the requests at the start are observed. Rate limiters are not
// observed.
type Wiring struct {
	// Controller is the name of the controller. Empty for its default, the kind in lower case.
	Controller string
	// For are the reconciled kinds: an event leads to a request with the name of its object.
	For []Watch
	// Owns are the kinds whose events lead to a request with the name of the owner, which is of a kind in For.
	Owns []Watch
	// Tracks are the kinds whose events lead to a request for each resource that tracks the object, as with
	// [reconcilers.EnqueueTracked] and the tracker of the config.
	Tracks []Watch
	// Watches are the kinds that are watched in another way, for example with a function that maps objects to requests,
	// and the kinds whose events led to no request.
	Watches []Watch
	// AtStart are the requests that the controller gets when it starts, without an event. An AggregateReconciler has one.
	AtStart []reconcilers.Request
	// Indexes of the caches. Nil asserts nothing; an empty slice expects no index.
	Indexes []Index
	// Options of the controller that differ from the default.
	Options ControllerOptions
	// Others are the wirings of further controllers, in the order in which they are set up. Their Indexes are nil.
	Others []Wiring

	// notes are what a reader should know about the observation.
	notes []string
}

// Watch is a watched kind.
type Watch struct {
	// Object is of the kind, in the form that is watched: an empty typed object, or an unstructured object or
	// PartialObjectMetadata with API version and kind. Duck types are watched as unstructured objects.
	Object client.Object
	// Cluster is the name of the watched cluster, see [OtherCluster]. Empty for that of the manager.
	Cluster string
	// Ignores are the changes that trigger no request, because a predicate filters them out. Defaults to none.
	Ignores []Change
}

// Change is a change of an object, which leads to an event for those who watch it.
type Change string

// The changes that watches are tried with.
const (
	// Created is a new object.
	Created Change = wiring.Created
	// SpecChanged is a change of the spec, or of any field other than metadata and status. It increments the generation,
	// except for kinds without one, such as ConfigMap and Secret: a predicate that compares generations filters out all
	// changes of these.
	SpecChanged Change = wiring.SpecChanged
	// StatusChanged is a change of the status, or of any field that changes neither the generation nor labels or
	// annotations.
	StatusChanged Change = wiring.StatusChanged
	// LabelsChanged is a change of labels.
	LabelsChanged Change = wiring.LabelsChanged
	// AnnotationsChanged is a change of annotations.
	AnnotationsChanged Change = wiring.AnnotationsChanged
	// Resynced is an event without a change, which caches send for each object from time to time. Tracked references are
	// kept only as long as such events renew them.
	Resynced Change = wiring.Resynced
	// DeletionRequested is a deletion that waits for finalizers.
	DeletionRequested Change = wiring.DeletionRequested
	// Deleted is the end of an object.
	Deleted Change = wiring.Deleted
)

// Index is an index of the cache for one kind.
type Index struct {
	// Object is of the kind, in the form that is indexed, as for a [Watch].
	Object client.Object
	// Field is the name of the index, as field selectors use it.
	Field string
	// Cluster is the name of the cluster that the cache is for. Empty for that of the manager.
	Cluster string
}

// ControllerOptions are options of a controller. A zero field is equal to the default value.
type ControllerOptions struct {
	// MaxConcurrentReconciles is the number of workers. Defaults to 1.
	MaxConcurrentReconciles int
	// CacheSyncTimeout is how long the controller waits for its caches to sync. Defaults to 2 minutes.
	CacheSyncTimeout time.Duration
	// ReconciliationTimeout is how long one request may take. Defaults to no limit.
	ReconciliationTimeout time.Duration
	// RecoverPanic reports whether the controller recovers from panics. Defaults to true.
	RecoverPanic *bool
	// NeedLeaderElection reports whether the controller runs on the leader only. Defaults to true.
	NeedLeaderElection *bool
	// EnableWarmup reports whether sources are started before the manager is elected. Defaults to false.
	EnableWarmup *bool
}

// RecordWiring calls setUp, which sets up a reconciler, and returns the wiring of the reconciler. It fails the test
// with all problems if the set-up fails. It takes some milliseconds, may be called concurrently and leaves no goroutine
// behind.
//
// The config is the result of [reconcilers.NewConfig] for the manager. As in production, the client cannot read from
// the cache during set-up. Of what is added to the manager, only controllers are started: briefly, with all their
// sources and without workers.
//
// The API has the given objects, and events are made up for them, too. Give an object if a predicate or a mapping
// accepts only certain objects: without one, no request is observed for that watch.
func RecordWiring(
	t testing.TB, scheme *runtime.Scheme, setUp func(
		ctx context.Context, mgr ctrl.Manager, config reconcilers.Config,
	) error, given ...client.Object,
) *Wiring {
	t.Helper()
	recorded, err := recordWiring(t.Context(), scheme, setUp, given...)
	if err != nil {
		t.Fatalf("unable to record the wiring: %s", err)
	}
	return recorded
}

// OtherCluster returns a cluster other than that of the manager, which must be the manager of [RecordWiring]. Its
// watches and indexes are recorded with the name of the cluster, which is required. The same name is the same cluster.
func OtherCluster(t testing.TB, mgr ctrl.Manager, name string) ctrlcluster.Cluster {
	t.Helper()
	other, err := wiring.OtherCluster(mgr, name)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// Assert fails the test if the wiring differs from the expected one, and prints the observed one.
func (w *Wiring) Assert(t *testing.T, expected *Wiring) {
	t.Helper()
	if diff := diffWiring(expected, w); diff != "" {
		failValue(t, "ExpectWiring", diff, "ExpectWiring", w)
	}
}
