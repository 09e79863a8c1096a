// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/duck"
	"trueup.dev/internal/guard"
	"trueup.dev/tracker"
)

// Config is everything a reconciler uses to reach a cluster. Every API call of this package goes through the clients of
// a Config, so that wrapping them once is enough to see or change all calls. Configs are comparable with ==.
type Config struct {
	// Client reads from the caches of the manager and writes to the API server. It accepts duck types.
	client.Client
	// APIReader reads from the API server, past the caches.
	APIReader client.Reader
	// Discovery tells what the API server serves.
	Discovery discovery.DiscoveryInterface
	// Recorder emits events about the reconciled resource. It is the one the reconcilers of this package use.
	Recorder record.EventRecorder
	// EventRecorder emits events of the newer events.k8s.io API, with a related object and an action.
	events.EventRecorder
	// Tracker remembers which resources depend on which objects they do not own.
	Tracker tracker.Tracker

	// AllowStaleReads lets reconciles run on caches that have not yet seen what this controller wrote itself. Defaults to
	// false: a request whose own last writes, to the resource or to any other object, have not reached the caches that it
	// reads from is put off for some milliseconds. That works for what is written with the context of a reconcile and
	// through the Client of a Config for a cluster, see [NewConfig].
	AllowStaleReads bool
	// StaleReadsTimeout is how long a request is put off at most. Then it reads from the API server once, which is logged
	// and counted by the metric trueup_stale_cache_timeouts_total. It is also when a request comes again, unless something
	// else asks for it earlier, that depends on an object which is not in the caches: should that go before they have it,
	// nothing would tell. Defaults to 10 seconds.
	StaleReadsTimeout time.Duration

	// AllowHotLoops lets a controller reconcile a resource at full speed although each reconcile is only a consequence of
	// the one before. Defaults to false: after 100 such reconciles in a row, faster than five a second, the controller
	// logs the hot loop, records the Warning event HotLoop, counts it in the metric trueup_hot_loops_total, and puts off
	// the next requests for that resource, for 1 second at first and a minute at most. A change by another client ends the
	// delay. Set this for a controller that works through a queue one reconcile at a time.
	AllowHotLoops bool

	syncPeriod time.Duration
	owners     *ownerIndex
	// guard knows what has been written. It is nil in a Config that was not made for a cluster.
	guard *guard.Cluster
	// cache is where Client reads from, and what tells of events. It is nil in a Config that was not made for a cluster.
	cache cache.Cache
}

func (c Config) staleReadsTimeout() time.Duration {
	return cmp.Or(c.StaleReadsTimeout, guard.DefaultTimeout)
}

// recorderName is the reporting component of events. It is the same for all controllers: users' alerts and tests rely
// on it.
const recorderName = "controller"

// NewConfig returns the config for the cluster of a manager, with a tracker of its own. The sync period is the time
// after which all resources are reconciled at the latest (the manager's cache.Options.SyncPeriod): tracked references
// live twice as long without being renewed.
//
// The second argument is ignored, and may be nil: users of earlier versions pass the kind of the resource.
func NewConfig(mgr ctrl.Manager, _ client.Object, syncPeriod time.Duration) Config {
	return Config{syncPeriod: syncPeriod}.WithCluster(mgr).WithTracker()
}

// IsEmpty is true for the zero Config.
func (c Config) IsEmpty() bool {
	return c == Config{}
}

// WithCluster returns a config whose clients and recorders work on another cluster. The tracker is kept: the resources
// that depend on what is tracked remain those of the original cluster. It panics when the cluster's REST config is not
// usable.
func (c Config) WithCluster(cluster cluster.Cluster) Config {
	guarded := guard.NewCluster(cluster.GetClient(), cluster.GetAPIReader(), cluster.GetCache(), journalFrom)
	return Config{
		Client:        duck.NewDuckAwareClientWrapper(guarded.Client()),
		APIReader:     duck.NewDuckAwareAPIReaderWrapper(cluster.GetAPIReader(), cluster.GetClient()),
		Discovery:     discovery.NewDiscoveryClientForConfigOrDie(cluster.GetConfig()),
		Recorder:      cluster.GetEventRecorderFor(recorderName), //nolint:staticcheck // the older API is the one users' tests expect events on
		EventRecorder: cluster.GetEventRecorder(recorderName),
		Tracker:       c.Tracker,

		AllowStaleReads:   c.AllowStaleReads,
		StaleReadsTimeout: c.StaleReadsTimeout,
		AllowHotLoops:     c.AllowHotLoops,

		syncPeriod: c.syncPeriod,
		guard:      guarded,
		owners:     newOwnerIndex(cluster.GetFieldIndexer()),
		cache:      cluster.GetCache(),
	}
}

// WithTracker returns the same config with a new, empty tracker.
func (c Config) WithTracker() Config {
	c.Tracker = tracker.New(c.Scheme(), 2*c.syncPeriod)
	return c
}

// WithDangerousDuckClientOperations returns the same config with a client that also creates and updates duck typed
// objects. It is dangerous because fields the duck type does not know are lost.
func (c Config) WithDangerousDuckClientOperations() Config {
	c.Client = duck.NewDangerousDuckAwareClientWrapper(c.Client)
	return c
}

// TrackAndGet is [client.Client.Get] that also tracks the object for the reconciled resource: the resource is
// reconciled again when the object is created, changed or deleted, provided that the controller watches its kind with
// [EnqueueTracked]. An object that does not exist yet is tracked too. For a kind that the controller does not watch,
// which set-up can tell in most cases, a message with the line to add is logged once, and each call is counted by the
// metric trueup_tracked_unwatched_total.
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

// TrackAndList is [client.Client.List] that also tracks, for the reconciled resource, the objects the options select:
// now and in future. Field selectors and limits do not narrow what is tracked.
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

// track registers the reconciled resource as an observer of ref, as what its root reconciler loads, and returns which
// changes of what is tracked make a request for certain. What cannot be tracked can often still be read (names of RBAC
// objects may hold colons, for example), so a failure is logged and does not stop the caller.
func (c Config) track(ctx context.Context, ref tracker.Reference, tracked runtime.Object) passes {
	s := scopeFrom(ctx)
	root := s.originalConfig
	if root == nil {
		root = &c
	}
	if err := c.Tracker.TrackReference(ref, root.observer(s.originalResourceType, s.request)); err != nil {
		logUntracked(ctx, err, tracked)
		return passes{}
	}
	if _, discarded := c.Tracker.(discardTracker); discarded {
		return passes{}
	}
	kind := schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
	if s.watched.lacks(kind) {
		c.warnUnwatched(ctx, s.watched, kind, tracked)
	}
	return s.watched.by(c.cache, kind)
}

// forget drops what a resource of the root reconciler with this config has tracked, if the tracker can. It is for
// resources that are gone.
func (c *Config) forget(resourceType client.Object, req Request) {
	if f, ok := c.Tracker.(tracker.Forgetter); ok {
		f.Forget(c.observer(resourceType, req))
	}
}

// observer stands for a resource of the root reconciler with this config: kind, namespace and name are all that a
// tracker asks for. It lacks the kind when the config does not know that.
func (c *Config) observer(resourceType client.Object, req Request) *metav1.PartialObjectMetadata {
	observer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if c.Client != nil && !isNil(resourceType) {
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
