// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/duck"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/lease"
	"trueup.dev/internal/engine/served"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
	"trueup.dev/shards"
	"trueup.dev/tracker"
)

// Config holds the clients with which reconcilers access a cluster. All API calls of this package use the clients of a
// Config, so wrapping these clients affects all calls. Configs are comparable with ==.
type Config struct {
	// Client reads from the caches of the manager and writes to the API server. It accepts duck types.
	client.Client
	// APIReader reads from the API server and bypasses the caches.
	APIReader client.Reader
	// Discovery discovers the APIs that the API server serves.
	Discovery discovery.DiscoveryInterface
	// Recorder records events about the reconciled resource. The reconcilers of this package use it. Defaults to none: no
	// events are recorded.
	Recorder record.EventRecorder
	// Events select which events the Recorder gets. Defaults to all.
	Events EventOptions
	// EventRecorder records events of the newer events.k8s.io API, with a related object and an action. Notes of more than
	// 1,024 bytes are cut, and an empty action is replaced by the reason: the API server refuses such events.
	events.EventRecorder
	// Tracker records which resources depend on objects that they do not own.
	Tracker tracker.Tracker

	// AllowStaleReads allows a reconcile although the caches do not have earlier writes of this controller yet.
	// Defaults to false: a request is delayed for some milliseconds until the caches that it reads from have its
	// previous writes to the resource and to other objects. This applies to writes that use the context of a reconcile
	// and the Client of a Config for a cluster, see [NewConfig].
	AllowStaleReads bool
	// StaleReadsTimeout is the maximum time for which a request is delayed. After that time the request reads from the
	// API server once. This is logged and counted by the metric trueup_stale_cache_timeouts_total. A request that
	// depends on an object which is not in the caches is also repeated after this time, unless it is requeued earlier:
	// if the object is deleted before the caches receive it, no watch event is delivered. Defaults to 10 seconds.
	StaleReadsTimeout time.Duration

	// AllowHotLoops disables the hot-loop protection. By default, the controller detects
	//
	//   - 100 reconciles of a resource in a row, faster than five per second, that are each only a consequence of the
	//     reconcile before. The Warning event HotLoop names the writes that repeat.
	//   - a field that this controller and another writer change back and forth: the controller has restored the same
	//     value five times, at any speed, or the API server has stored another value than sent five times, because of a
	//     mutating webhook. The Warning event FieldConflict names the field and both field managers, without values.
	//   - an object that is created and deleted in turns: the controller has created an object of the same name, or has
	//     deleted one, five times within a minute. The Warning event HotLoop names the step that creates it and the step
	//     that deletes it, if they are steps of this controller.
	//
	// It then logs the hot loop, counts it in the metric trueup_hot_loops_total, and delays further requests for that
	// resource. The delay starts at 1 second and grows to 1 minute. A change by another client of another object ends
	// the delay. Set AllowHotLoops for a controller that processes a queue one reconcile at a time.
	AllowHotLoops bool
	// LoopCondition is the type of a status condition, for example "Looping". A [ResourceReconciler] sets it to True
	// while the resource is in a hot loop, with the reason and the message of the event, and removes it one hour after
	// the last delayed request. By default, hot loops set no condition.
	LoopCondition string

	// FairNamespaces makes the namespaces take turns in the queue of the controller: a namespace with 50,000 objects
	// does not delay the changes in another one. The priority of a request counts first, see docs/operating.md. The
	// requests of one namespace keep their order. The metric workqueue_depth then has no priorities. Defaults to false:
	// requests of one priority are reconciled in the order in which they were added.
	FairNamespaces bool

	// FieldOwner is the name under which the API server records the fields that this controller writes to children. It
	// says which objects the controller has made: only these are ever deleted, see [ChildReconciler]. Two controllers for
	// resources of one kind need different names if they are in different managers of one program. It must not change
	// between versions, or the new version must know the name before, see [Config.WithFormerFieldOwners]. At most 128
	// bytes. Defaults to `trueup/<kind>.<group>@<hash>`: the kind of the reconciled resource, below an
	// [AggregateReconciler] also its name, and a hash of the path of the Go module of the main package, without its
	// major version.
	FieldOwner string

	// Shard is this replica, if the objects are divided among several replicas that run at the same time. The
	// reconcilers then release resources that move to another replica, before anything else happens, and children get
	// the label of the replica that creates them. Predicates do not hold back the events that ask for it. WithCluster
	// drops it. See package trueup.dev/shards. Defaults to nil: the objects are not divided.
	Shard *shards.Shard

	// formerOwners are the field owners of earlier versions, or nil.
	formerOwners *[]string
	// recorded are the last events, for Events. It is nil if the Config was not created for a manager.
	recorded   *recordedEvents
	syncPeriod time.Duration
	// noSyncPeriod reports whether NewConfig was called without a sync period.
	noSyncPeriod bool
	owners       *ownerIndexes
	// hub receives what the reconcilers do. It is nil if the Config was not created for a manager.
	hub *observe.Hub
	// lease is the lease of the manager. It is nil without leader election, and if the Config was not created for a
	// manager.
	lease *lease.Lease
	// guard records writes. It is nil if the Config was not created for a cluster.
	guard *guard.Cluster
	// cache is the cache that Client reads from and that delivers watch events. It is nil if the Config was not created
	// for a cluster.
	cache cache.Cache
}

func (c Config) staleReadsTimeout() time.Duration {
	return cmp.Or(c.StaleReadsTimeout, guard.DefaultTimeout)
}

// recorderName is the reporting component of events. It is the same for all controllers, because users' alerts and
// tests depend on it.
const recorderName = "controller"

// defaultSyncPeriod is the resync period of the cache of a manager by default.
const defaultSyncPeriod = 10 * time.Hour

// NewConfig returns the config for the cluster of a manager, with a new tracker. The sync period is the maximum time
// between reconciles of a resource (the manager's cache.Options.SyncPeriod), or 0 for the default of 10 hours.
//
// Tracked references of a resource do not expire while the resource is idle. A reference ends when the resource is
// deleted, or with a reconcile that succeeds without renewing it, more than twice the sync period after the last
// renewal. References that are added outside of a reconcile expire after twice the sync period.
//
// The metrics of package observe/metrics are enabled for the manager, unless observe.Of(mgr).Remove(metrics.Default())
// is called, before or afterwards.
//
// If the manager has leader election, controllers neither start a reconcile nor write with the Client of a Config after
// the lease was released, or has expired because the process was paused: another replica may be the leader.
//
// The second argument is ignored and may be nil. Users of earlier versions pass the kind of the resource.
func NewConfig(mgr ctrl.Manager, _ client.Object, syncPeriod time.Duration) Config {
	config := Config{syncPeriod: syncPeriod, hub: metrics.Enable(mgr), recorded: &recordedEvents{}, lease: lease.Of(mgr)}
	if config.noSyncPeriod = syncPeriod <= 0; config.noSyncPeriod {
		config.syncPeriod = defaultSyncPeriod
	}
	return config.WithCluster(mgr).WithTracker()
}

// Hub returns the hub that receives what the reconcilers do: the hub of the manager, or if the config was not created
// for one, the hub of what belongs to no manager.
func (c Config) Hub() *observe.Hub { return hubOr(c.hub) }

// hubOr returns the hub of a manager, or that of what belongs to no manager.
func hubOr(hub *observe.Hub) *observe.Hub {
	if hub == nil {
		return metrics.Enable(nil)
	}
	return hub
}

// IsEmpty reports whether c is the zero Config.
func (c Config) IsEmpty() bool {
	return c == Config{}
}

// WithCluster returns a config with the clients and recorders of another cluster. It keeps the tracker, because the
// resources that depend on tracked objects are in the original cluster. It panics if the REST config of the cluster is
// invalid.
func (c Config) WithCluster(cluster cluster.Cluster) Config {
	cached := readsFromCache(cluster.GetClient())
	reads := served.NewClient(ownedClient{cluster.GetClient(), cached}, cluster.GetCache())
	guarded := guard.NewCluster(reads, cluster.GetAPIReader(), served.NewCache(cluster.GetCache(), reads), journalFrom)
	guarded.Fence(func() error { return c.lease.Check(time.Now()) })
	duckClient := duck.NewDuckAwareClientWrapper(&formClient{
		Client: guarded.Client(), cluster: guarded, cache: cluster.GetCache(), cached: cached,
	})
	duckReader := duck.NewDuckAwareAPIReaderWrapper(cluster.GetAPIReader(), cluster.GetClient())
	return Config{
		Client:    observe.NewClient(duckClient, cluster.GetCache(), c.hub),
		APIReader: observe.NewReader(duckReader, duckClient, c.hub),
		Discovery: discovery.NewDiscoveryClientForConfigOrDie(cluster.GetConfig()),
		//nolint:staticcheck // users' tests expect events of the older API
		Recorder:      cluster.GetEventRecorderFor(recorderName),
		EventRecorder: validEvents{cluster.GetEventRecorder(recorderName)},
		Tracker:       c.Tracker,
		Events:        c.Events,

		AllowStaleReads:   c.AllowStaleReads,
		StaleReadsTimeout: c.StaleReadsTimeout,
		AllowHotLoops:     c.AllowHotLoops,
		LoopCondition:     c.LoopCondition,
		FairNamespaces:    c.FairNamespaces,
		FieldOwner:        c.FieldOwner,

		formerOwners: c.formerOwners,
		recorded:     c.recorded,
		syncPeriod:   c.syncPeriod,
		noSyncPeriod: c.noSyncPeriod,
		hub:          c.hub,
		lease:        c.lease,
		guard:        guarded,
		owners:       newOwnerIndexes(cluster, c.hub),
		cache:        cluster.GetCache(),
	}
}

// CacheTransform returns a transformation for the DefaultTransform of a manager's cache.Options. It removes from each
// object in the cache what takes memory and what reconcilers rarely need: the managed fields, and the value of the
// annotation kubectl.kubernetes.io/last-applied-configuration. The reconcilers of this package read both from the API
// server when they matter, see docs/scale.md. An update with the Client of a Config keeps the annotation. An update
// with another client that reads from this cache empties it.
//
// The functions of then are called with the rest. They must not remove what a controller compares or updates: an update
// sends the whole object as it was in the cache, and removes from the API server what was removed from the cache.
func CacheTransform(then ...toolscache.TransformFunc) toolscache.TransformFunc {
	removeManagedFields := cache.TransformStripManagedFields()
	return func(obj any) (any, error) {
		obj, err := removeManagedFields(obj)
		if err != nil {
			return nil, err
		}
		if accessor, err := meta.Accessor(obj); err == nil {
			if annotations := accessor.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != guard.Removed {
				annotations[corev1.LastAppliedConfigAnnotation] = guard.Removed
				accessor.SetAnnotations(annotations)
			}
		}
		for _, transform := range then {
			if obj, err = transform(obj); err != nil {
				return nil, err
			}
		}
		return obj, nil
	}
}

// WithTracker returns a copy of the config with a new, empty tracker.
func (c Config) WithTracker() Config {
	c.Tracker = tracker.New(c.Scheme(), 2*cmp.Or(c.syncPeriod, defaultSyncPeriod))
	return c
}

// WithDangerousDuckClientOperations returns a copy of the config with a client that also creates and updates duck-typed
// objects. This is dangerous because fields that the duck type does not have are lost.
func (c Config) WithDangerousDuckClientOperations() Config {
	c.Client = duck.NewDangerousDuckAwareClientWrapper(c.Client)
	return c
}

// TrackAndGet is like [client.Client.Get] and also tracks the object for the reconciled resource. The resource is
// reconciled again when the object is created, changed or deleted, provided that the controller watches its kind with
// [EnqueueTracked]. The object need not exist. If the controller does not watch the kind, which is detected in most
// cases, TrackAndGet logs a message with the line to add once, and the metric trueup_tracked_unwatched_total counts
// each call.
func (c Config) TrackAndGet(
	ctx context.Context, key types.NamespacedName, obj client.Object, opts ...client.GetOption,
) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		logUntracked(ctx, err, obj)
		return c.Get(ctx, key, obj, opts...)
	}
	ref := tracker.Reference{APIGroup: gvk.Group, Kind: gvk.Kind, Namespace: key.Namespace, Name: key.Name}
	by := c.track(ctx, ref, obj)
	err = c.Get(ctx, key, obj, opts...)
	waitsFrom(ctx).track(ctx, ref, by, apierrs.IsNotFound(err))
	return err
}

// TrackAndList is like [client.Client.List] and also tracks all current and future objects that the options select, for
// the reconciled resource. Field selectors and limits do not restrict what is tracked.
func (c Config) TrackAndList(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	listOptions := (&client.ListOptions{}).ApplyOptions(opts)
	selector := listOptions.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	if gvk, err := c.GroupVersionKindFor(list); err != nil {
		logUntracked(ctx, err, list)
	} else {
		kind := strings.TrimSuffix(gvk.Kind, "List")
		ref := tracker.Reference{APIGroup: gvk.Group, Kind: kind, Namespace: listOptions.Namespace, Selector: selector}
		waitsFrom(ctx).track(ctx, ref, c.track(ctx, ref, list), false)
	}
	return c.List(ctx, list, opts...)
}

// track registers the reconciled resource, with the type that its root reconciler loads, as an observer of ref. It
// returns which changes of the tracked object certainly enqueue a request. Some objects can be read but not tracked,
// for example RBAC objects with a colon in the name, so an error is logged and not returned.
func (c Config) track(ctx context.Context, ref tracker.Reference, tracked runtime.Object) delivered {
	s := scopeFrom(ctx)
	root := s.originalConfig
	if root == nil {
		root = &c
	}
	observer := root.observer(s.originalResourceType, s.request)
	if err := c.Tracker.TrackReference(ref, observer); err != nil {
		logUntracked(ctx, err, tracked)
		return delivered{}
	}
	c.holdFor(s, observer)
	reportTracked(ctx, ref)
	if _, discarded := c.Tracker.(discardTracker); discarded {
		return delivered{}
	}
	kind := schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
	if s.watched.lacks(kind) {
		c.warnUnwatched(ctx, s.watched, kind, tracked)
	}
	if c.Shard != nil && c.Shard.Divides(kind, c.Scheme()) {
		c.warnDivided(ctx, s.watched, kind)
	}
	return s.watched.deliveries(c.cache, kind)
}

func reportTracked(ctx context.Context, ref tracker.Reference) {
	if observe.RunFrom(ctx) == nil {
		return
	}
	tracked := observe.Tracked{
		Kind: schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, Namespace: ref.Namespace, Name: ref.Name,
	}
	if ref.Selector != nil {
		tracked.Selector = ref.Selector.String()
	}
	observe.ReportTracked(ctx, tracked)
}

// divides reports whether objects like this one are divided among replicas.
func (c *Config) divides(obj client.Object) bool {
	if c.Shard == nil || c.Client == nil {
		return false
	}
	gvk, err := c.GroupVersionKindFor(obj)
	return err == nil && c.Shard.Divides(gvk.GroupKind(), c.Scheme())
}

// forget removes the references that a deleted resource of the root reconciler has tracked, if the tracker supports
// this.
func (c *Config) forget(resourceType client.Object, req Request) {
	if f, ok := c.Tracker.(tracker.Forgetter); ok {
		f.Forget(c.observer(resourceType, req))
	}
}

// hold makes the references of a resource of the root reconciler last until a later reconcile does not renew them, if
// the tracker supports this. Otherwise an idle resource would lose its references. See [tracker.Holder] for the time.
// kind is the kind of the resource, or empty if it is unknown.
func (c *Config) hold(kind schema.GroupVersionKind, resourceType client.Object, req Request, renewedSince time.Time) {
	switch h := c.Tracker.(type) {
	case namedHolder:
		if !kind.Empty() {
			h.HoldNamed(kind.GroupKind(), req.NamespacedName, renewedSince)
			return
		}
		h.Hold(c.observer(resourceType, req), renewedSince)
	case tracker.Holder:
		h.Hold(c.observer(resourceType, req), renewedSince)
	}
}

// namedHolder is implemented by the trackers that [tracker.New] returns. Every request calls it.
type namedHolder interface {
	tracker.Holder
	HoldNamed(kind schema.GroupKind, name types.NamespacedName, renewedSince time.Time)
}

// holdFor is called when the request of a scope has tracked an object: the request may take longer than the lease. The
// observer identifies the resource of the request. It may be nil.
func (c *Config) holdFor(s scope, observer client.Object) {
	if !s.of.holdsReferences() {
		return
	}
	if h, ok := c.Tracker.(tracker.Holder); ok {
		if observer == nil {
			observer = s.originalConfig.observer(s.originalResourceType, s.request)
		}
		h.Hold(observer, time.Time{})
	}
}

// adviseOnSyncPeriod logs that the config was created without a sync period although references are tracked.
func (c *Config) adviseOnSyncPeriod(ctx context.Context, tracks bool) {
	if c.noSyncPeriod && tracks {
		logr.FromContextOrDiscard(ctx).Info("the third argument of NewConfig, the sync period, must be greater than 0 to "+
			"track objects, using the default", "syncPeriod", c.syncPeriod.String())
	}
}

// observer returns an object that identifies a resource of the root reconciler. It carries only kind, namespace and
// name, which the tracker needs. The kind is empty if the config does not know it.
func (c *Config) observer(resourceType client.Object, req Request) *metav1.PartialObjectMetadata {
	observer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if c.Client != nil && !nilcheck.IsNilPointer(resourceType) {
		if gvk, err := c.GroupVersionKindFor(resourceType); err == nil {
			observer.SetGroupVersionKind(gvk)
		}
	}
	return observer
}

func logUntracked(ctx context.Context, err error, tracked runtime.Object) {
	logr.FromContextOrDiscard(ctx).Error(
		err, "unable to track, changes will not trigger the resource", "type", fmt.Sprintf("%T", tracked),
	)
}
