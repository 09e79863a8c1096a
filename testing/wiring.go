// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/fakeapi"
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
// without owner references they have it in Tracks only. The wiring of a subreconciler does not contain what its root
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
	// Cluster is the name of the watched cluster, see [OtherCluster]. Empty for the cluster of the manager.
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
	// Cluster is the name of the cluster that the cache is for. Empty for the cluster of the manager.
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

// OtherCluster returns a cluster other than the cluster of the manager, which must be the manager of [RecordWiring].
// Its watches and indexes are recorded with the name of the cluster, which is required. The same name is the same
// cluster.
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

// setUpFunc sets up a reconciler that uses the config.
type setUpFunc = func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error

// recordWiring calls setUp with a manager that records, and returns what it has asked for. The error lists all
// problems.
func recordWiring(
	ctx context.Context, scheme *runtime.Scheme, setUp setUpFunc, given ...client.Object,
) (*Wiring, error) {
	if scheme == nil {
		return nil, errors.New("a scheme is required")
	}
	stored, err := copyForWiring(scheme, given)
	if err != nil {
		return nil, err
	}
	observed, err := wiring.Observe(ctx, scheme, stored, setUp)
	if err != nil {
		return nil, err
	}
	recorded := each(observed.Controllers, wiringOf)
	first := &recorded[0]
	if len(recorded) > 1 {
		first.Others = recorded[1:]
	}
	if len(observed.Indexes) > 0 {
		first.Indexes = each(observed.Indexes, func(i wiring.Index) Index { return Index(i) })
	}
	return first, nil
}

// copyForWiring returns the given objects as the API stores them.
func copyForWiring(scheme *runtime.Scheme, given []client.Object) ([]client.Object, error) {
	var stored []client.Object
	problems := []error{}
	for i, obj := range given {
		obj, err := givenObject(obj, scheme)
		if err != nil {
			problems = append(problems, fmt.Errorf("given[%d]: %w", i, err))
			continue
		}
		stored = append(stored, obj)
	}
	return stored, errors.Join(append(problems, prefixed("given", fakeapi.ValidateGiven(stored, scheme))...)...)
}

// wiringOf returns what a controller has asked for, without indexes, which belong to no controller.
func wiringOf(c wiring.Controller) Wiring {
	return Wiring{
		Controller: c.Name, For: watchesFrom(c.For), Owns: watchesFrom(c.Owns), Tracks: watchesFrom(c.Tracks),
		Watches: watchesFrom(c.Watches), AtStart: c.AtStart,
		Options: optionsFrom(c.Options).withoutDefaults(), notes: c.Notes,
	}
}

// watchesFrom converts watches. It returns nil for none, so that the printed wiring has no empty fields.
func watchesFrom(observed []wiring.Watch) []Watch {
	var watches []Watch
	for _, w := range observed {
		watch := Watch{Object: w.Object, Cluster: w.Cluster}
		for _, change := range w.Ignores {
			watch.Ignores = append(watch.Ignores, Change(change))
		}
		watches = append(watches, watch)
	}
	return watches
}

func optionsFrom(o controller.Options) ControllerOptions {
	return ControllerOptions{
		MaxConcurrentReconciles: o.MaxConcurrentReconciles, CacheSyncTimeout: o.CacheSyncTimeout,
		ReconciliationTimeout: o.ReconciliationTimeout, RecoverPanic: o.RecoverPanic,
		NeedLeaderElection: o.NeedLeaderElection, EnableWarmup: o.EnableWarmup,
	}
}

// diffWiring returns the difference, or "" if the wirings are equal. It appends the notes of the observation.
func diffWiring(expected, observed *Wiring) string {
	if expected == nil {
		expected = &Wiring{}
	}
	difference := &wiring.Difference{}
	compareWirings(difference, "", *expected, *observed)
	if expected.Indexes != nil {
		difference.Add("Indexes", each(expected.Indexes, Index.text), each(observed.Indexes, Index.text))
	}
	return difference.Text(observed.notes)
}

func compareWirings(d *wiring.Difference, prefix string, expected, observed Wiring) {
	d.Add(prefix+"Controller", []string{expected.Controller}, []string{observed.Controller})
	d.Add(prefix+"For", each(expected.For, Watch.describe), each(observed.For, Watch.describe))
	d.Add(prefix+"Owns", each(expected.Owns, Watch.describe), each(observed.Owns, Watch.describe))
	d.Add(prefix+"Tracks", each(expected.Tracks, Watch.describe), each(observed.Tracks, Watch.describe))
	d.Add(prefix+"Watches", each(expected.Watches, Watch.describe), each(observed.Watches, Watch.describe))
	d.Add(
		prefix+"AtStart", each(expected.AtStart, reconcilers.Request.String),
		each(observed.AtStart, reconcilers.Request.String),
	)
	d.Add(prefix+"Options", expected.Options.describe(), observed.Options.describe())
	d.Add(prefix+"Others", expected.countOthers(), observed.countOthers())
	for i := range max(len(expected.Others), len(observed.Others)) {
		compareWirings(d, fmt.Sprintf("%sOthers[%d].", prefix, i), expected.other(i), observed.other(i))
	}
}

func (w Wiring) countOthers() []string {
	if len(w.Others) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("further controllers: %d", len(w.Others))}
}

// other returns the wiring of a further controller, or an empty wiring if there is none.
func (w Wiring) other(i int) Wiring {
	if i < len(w.Others) {
		return w.Others[i]
	}
	return Wiring{}
}

// text identifies the watched kind.
func (w Watch) text() string { return wiring.Describe(w.Object, w.Cluster) }

// describe returns text and the ignored changes.
func (w Watch) describe() string {
	ignored := []string{}
	for _, change := range wiring.Changes {
		if slices.Contains(w.Ignores, Change(change)) {
			ignored = append(ignored, string(change))
		}
	}
	if len(ignored) == 0 {
		return w.text()
	}
	return w.text() + ", ignores: " + strings.Join(ignored, ", ")
}

func (i Index) text() string { return wiring.Index(i).String() }

// describe returns an entry for each option that differs from the default.
func (o ControllerOptions) describe() []string {
	entries := []string{}
	for field, value := range reflect.ValueOf(o.withoutDefaults()).Fields() {
		if !value.IsZero() {
			entries = append(entries, fmt.Sprintf("%s %v", field.Name, reflect.Indirect(value)))
		}
	}
	return entries
}

// withoutDefaults returns the options, with zero instead of default values.
func (o ControllerOptions) withoutDefaults() ControllerOptions {
	if o.MaxConcurrentReconciles == 1 {
		o.MaxConcurrentReconciles = 0
	}
	if o.CacheSyncTimeout == 2*time.Minute {
		o.CacheSyncTimeout = 0
	}
	o.RecoverPanic = unless(o.RecoverPanic, true)
	o.NeedLeaderElection = unless(o.NeedLeaderElection, true)
	o.EnableWarmup = unless(o.EnableWarmup, false)
	return o
}

// unless returns the value, or nil if it is the default value.
func unless(value *bool, fallback bool) *bool {
	if value != nil && *value == fallback {
		return nil
	}
	return value
}

// recordReconciler records the wiring of the reconciler that a factory returns. The context of the set-up has the
// additional configs, each for a cluster with the name of the config.
func recordReconciler(
	ctx context.Context, scheme *runtime.Scheme, factory func(
		config reconcilers.Config,
	) any, additional map[string]ExpectConfig, given []client.Object,
) (*Wiring, error) {
	return recordWiring(ctx, scheme, func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		ctx, err := stashOtherClusters(ctx, mgr, config, additional)
		if err != nil {
			return err
		}
		config.Client = wiringClient{config.Client}
		return wiring.SetUp(ctx, mgr, factory(config))
	}, given...)
}

// wiringClient is a [TestClient] for factories that need one. It ignores reactors, as a set-up makes no calls to react
// to.
type wiringClient struct{ client.Client }

var _ TestClient = wiringClient{}

func (wiringClient) AddGiven(...client.Object)                   {}
func (wiringClient) AddReactor(string, string, ReactionFunc)     {}
func (wiringClient) PrependReactor(string, string, ReactionFunc) {}

// recordSubReconciler records the wiring of the subreconciler that a factory returns, below a root reconciler for
// resources like the given one, and omits what the root asks for.
func recordSubReconciler[T client.Object](
	ctx context.Context, scheme *runtime.Scheme, resource T, factory func(
		config reconcilers.Config,
	) reconcilers.SubReconciler[T],
	additional map[string]ExpectConfig, given []client.Object,
) (*Wiring, error) {
	if unwrapped, ok := resource.DeepCopyObject().(T); ok {
		resource = unwrapped
	}
	root := schema.GroupVersionKind{}
	recorded, err := recordReconciler(ctx, scheme, func(config reconcilers.Config) any {
		// The set-up reports an unknown kind.
		root, _ = config.GroupVersionKindFor(resource)
		return &reconcilers.ResourceReconciler[T]{Type: resource, Reconciler: factory(config), Config: config}
	}, additional, given)
	if err != nil {
		return nil, err
	}
	var others []Watch
	for _, watch := range recorded.For {
		if kind, err := apiutil.GVKForObject(watch.Object, scheme); err != nil || kind != root {
			others = append(others, watch)
		}
	}
	recorded.For = others
	return recorded, nil
}

// stashOtherClusters returns a context with a config for each additional config of a case. They share the tracker, as
// all tracked objects trigger the same resources.
func stashOtherClusters(
	ctx context.Context, mgr ctrl.Manager, config reconcilers.Config, additional map[string]ExpectConfig,
) (context.Context, error) {
	configs := map[string]reconcilers.Config{}
	for _, name := range slices.Sorted(maps.Keys(additional)) {
		other, err := wiring.OtherCluster(mgr, name)
		if err != nil {
			return nil, err
		}
		configs[name] = config.WithCluster(other)
	}
	return reconcilers.StashAdditionalConfigs(ctx, configs), nil
}
