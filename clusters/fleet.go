// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/text/panics"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

// Aware is what a provider tells about clusters. [Fleet] implements it. It has the shape of the interface of the same
// name of multicluster-runtime.
type Aware interface {
	// Engage starts operations for a cluster. They end with the context. It does not wait for the cluster.
	Engage(ctx context.Context, name string, cl cluster.Cluster) error
}

var _ Aware = (*Fleet)(nil)

// Options are the options of a [Fleet].
type Options struct {
	// SetUp sets up the controllers of one cluster, as main does for a single one. It is called for each cluster that is
	// engaged, with a manager that has the clients, cache, scheme and event recorders of the cluster, and a logger with
	// its name. Each controller needs the same name and options in all clusters. [Name] returns the name of the
	// cluster from the context, which ends with the cluster. SetUp must not register webhooks. Required.
	SetUp func(ctx context.Context, mgr ctrl.Manager) error

	// Workers is the number of workers of a controller, for all clusters together, unless SetUp or the options of the
	// manager set MaxConcurrentReconciles. Defaults to 10.
	Workers int

	// WorkersOfCluster is how many workers of a controller one cluster may occupy at a time. Defaults to half of the
	// workers, rounded up.
	WorkersOfCluster int

	// Timeout limits a reconcile. A cluster that does not answer occupies workers for this time, see the documentation of
	// the package. Defaults to 30 seconds.
	Timeout time.Duration
}

const (
	defaultWorkers = 10
	defaultTimeout = 30 * time.Second
)

// Fleet runs the controllers of several clusters in one manager. Clusters are engaged, and leave, at any time.
type Fleet struct {
	mgr     ctrl.Manager
	options Options
	hub     *observe.Hub
	// started is closed when the manager has started the fleet. stopped is done when the manager stops.
	started chan struct{}
	stopped context.Context //nolint:containedctx // it is the context of the manager
	stop    context.CancelFunc

	mu          sync.Mutex
	members     map[string]*member
	controllers map[string]*shared
	indexes     []*index
}

// New returns a fleet without clusters. The manager starts it. The error lists all problems of the options.
//
// The metrics of package observe/metrics are enabled for the manager, unless observe.Of(mgr).Remove(metrics.Default())
// is called, before or afterwards.
func New(mgr ctrl.Manager, options Options) (*Fleet, error) {
	var problems []error
	problem := func(found bool, text string, args ...any) {
		if found {
			problems = append(problems, fmt.Errorf("clusters.Options: "+text, args...))
		}
	}
	problem(options.SetUp == nil, "SetUp is required")
	problem(options.Workers < 0, "Workers must not be negative, got %d", options.Workers)
	problem(options.WorkersOfCluster < 0, "WorkersOfCluster must not be negative, got %d", options.WorkersOfCluster)
	problem(options.Timeout < 0, "Timeout must not be negative, got %s", options.Timeout)
	if nilcheck.IsNil(mgr) {
		problems = append(problems, errors.New("clusters.New: the manager is required"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if options.Workers == 0 {
		options.Workers = defaultWorkers
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	f := &Fleet{
		mgr: mgr, options: options, hub: metrics.Enable(mgr), started: make(chan struct{}),
		members: map[string]*member{}, controllers: map[string]*shared{},
	}
	f.stopped, f.stop = context.WithCancel(context.Background())
	if err := mgr.Add(fleetRunnable{f}); err != nil {
		return nil, fmt.Errorf("add the fleet to the manager: %w", err)
	}
	return f, nil
}

// fleetRunnable ends the clusters of a fleet with its manager.
type fleetRunnable struct{ *Fleet }

// NeedLeaderElection returns false: each controller waits for the election itself.
func (fleetRunnable) NeedLeaderElection() bool { return false }

func (f fleetRunnable) Start(ctx context.Context) error {
	close(f.started)
	<-ctx.Done()
	f.stop()
	f.mu.Lock()
	members := slices.Collect(maps.Values(f.members))
	f.mu.Unlock()
	for _, m := range members {
		<-m.ended
	}
	return nil
}

// ErrNotEngaged is the error of [Fleet.Get] and of [Fleet.Ready] for a cluster that is not engaged.
var ErrNotEngaged = errors.New("the cluster is not engaged")

// maxName is the length of two names of Kubernetes with a character between them.
const maxName = 507

// names are what providers use: names of objects, with and without a namespace, and of contexts.
var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/:#@+-]*[A-Za-z0-9])?$`)

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of a cluster must not be empty")
	case len(name) > maxName:
		return fmt.Errorf("the name of a cluster must have at most %d bytes, got %d", maxName, len(name))
	case !names.MatchString(name):
		return fmt.Errorf("the name of a cluster must consist of letters, digits and . _ - / : # @ +, and begin and end "+
			"with a letter or a digit, got %q", name)
	}
	return nil
}

// Engage sets up the controllers for a cluster and starts them. They stop when the context ends, or the manager. The
// caller starts the cluster, before or afterwards. Engage does not wait for the cluster: its objects are reconciled as
// soon as its caches are filled.
//
// A name can be engaged again after the context with which it was engaged before has ended. Otherwise, Engage returns
// an error. It also returns the errors of SetUp. If the earlier cluster of the name still ends, SetUp is called
// afterwards, and its errors are logged and returned by [Fleet.Ready]. It is then called again, with back-off.
func (f *Fleet) Engage(ctx context.Context, name string, cl cluster.Cluster) error {
	problems := []error{checkName(name), ctx.Err()}
	if nilcheck.IsNil(cl) {
		problems = append(problems, errors.New("the cluster is required"))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("engage cluster %q: %w", name, err)
	}
	m := f.newMember(ctx, name, cl)
	f.mu.Lock()
	before := f.members[name]
	if before != nil && before.ctx.Err() == nil {
		f.mu.Unlock()
		m.cancel()
		return fmt.Errorf("engage cluster %q: it is engaged, and the context of that has not ended", name)
	}
	f.members[name] = m
	f.mu.Unlock()
	m.become(observe.ClusterStarting)
	if before != nil && !isClosed(before.ended) {
		go m.run(nil, before)
		return nil
	}
	v, err := m.setUp()
	if err != nil {
		m.cancel()
		m.leave()
		return fmt.Errorf("engage cluster %q: %w", name, err)
	}
	go m.run(v, nil)
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Get returns an engaged cluster. The cluster of the manager has the empty name.
func (f *Fleet) Get(_ context.Context, name string) (cluster.Cluster, error) {
	if name == "" {
		return f.mgr, nil
	}
	m, err := f.member(name)
	if err != nil {
		return nil, err
	}
	return m.cluster, nil
}

func (f *Fleet) member(name string) (*member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[name]; m != nil && m.ctx.Err() == nil {
		return m, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrNotEngaged, name)
}

// Names returns the names of the engaged clusters, sorted.
func (f *Fleet) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := []string{}
	for name, m := range f.members {
		if m.ctx.Err() == nil {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// Ready returns nil if the objects of a cluster are reconciled, or an error that says what the cluster waits for. The
// readiness of the manager does not depend on it.
func (f *Fleet) Ready(name string) error {
	m, err := f.member(name)
	if err != nil {
		return err
	}
	return m.ready()
}

// index is a field index of all clusters.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func (i *index) is(other *index) bool {
	return reflect.TypeOf(i.object) == reflect.TypeOf(other.object) && i.field == other.field &&
		i.object.GetObjectKind().GroupVersionKind() == other.object.GetObjectKind().GroupVersionKind()
}

// IndexField adds an index to the caches of all engaged clusters, and of those that are engaged later, before their
// controllers start. The error names the clusters that it could not be added to. IndexField may be called again: a
// cluster gets an index once.
func (f *Fleet) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	if nilcheck.IsNil(obj) || field == "" || extract == nil {
		return errors.New("index a field of all clusters: the object, the field and the function are required")
	}
	added := &index{obj, field, extract}
	f.mu.Lock()
	if !slices.ContainsFunc(f.indexes, added.is) {
		f.indexes = append(f.indexes, added)
	}
	members := slices.Collect(maps.Values(f.members))
	f.mu.Unlock()
	errs := make([]error, len(members))
	wg := sync.WaitGroup{}
	for i, m := range members {
		wg.Go(func() {
			if err := untilDone(ctx, func() error { return m.index(ctx) }); err != nil && m.ctx.Err() == nil {
				errs[i] = fmt.Errorf("cluster %q: %w", m.name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// call calls SetUp. A panic is returned as an error: a provider may engage clusters while others are reconciled.
func (f *Fleet) call(ctx context.Context, mgr manager.Manager) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("SetUp panicked: %s", panics.Text(panicked))
		}
	}()
	return f.options.SetUp(ctx, mgr)
}

type nameKey struct{}

// Name returns the name of the cluster from the context of SetUp or of a reconcile, or "" if it has none.
func Name(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
