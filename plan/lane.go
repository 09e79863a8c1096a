// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/planning"
	"trueup.dev/internal/offline"
	"trueup.dev/internal/text/panics"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

// shared is what a planner knows about the cluster. It is safe for concurrent use.
type shared struct {
	cluster    client.Client
	options    Options
	kinds      *kindSet
	dependents *dependents
	names      *indexedNames
	dryRun     *dryRun
}

// forget drops what earlier plans have learned about the objects of the cluster.
func (s *shared) forget() {
	s.names.forget()
	s.kinds.forget()
	s.dependents.forget()
}

// lane makes plans, one at a time, with controllers of its own.
type lane struct {
	*shared

	client    *overlayClient
	manager   *manager
	informers *informers

	stop    context.CancelFunc
	running sync.WaitGroup

	// broken is why no further plan can be made. For example, a reconcile has not returned: what it still writes belongs
	// to no plan.
	broken error

	announcing sync.Mutex
	announced  []string
}

// newLane calls a set-up function, and starts the watches of the controllers that it adds.
func newLane(ctx context.Context, s *shared, setUp SetUp) (*lane, error) {
	l := &lane{shared: s}
	index := &indexes{extracts: map[indexID]client.IndexerFunc{}, names: s.names}
	l.client = newOverlayClient(s.cluster, index)
	l.informers = &informers{Reader: l.client, cluster: s.cluster, indexes: index}
	l.begin()
	l.manager = &manager{events: &events{scheme: s.cluster.Scheme()}}
	l.manager.Leader = true
	l.manager.Cluster = offline.Cluster{
		Scheme: s.cluster.Scheme(), Mapper: s.kinds.mapper, Client: l.client, APIReader: l.client, Cache: l.informers,
	}
	observe.Of(l.manager).Remove(metrics.Default())
	if err := setUp(l.context(ctx), l.manager); err != nil {
		return nil, fmt.Errorf("plan: set-up failed: %w", err)
	}
	if len(l.manager.queues) == 0 {
		return nil, errors.New("plan: set-up adds no controller to the manager")
	}
	if err := l.start(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// another returns a further lane.
func (l *lane) another(ctx context.Context, setUp SetUp) (more *lane, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("plan: set-up failed: panic: " + panics.Text(p))
		}
		if err != nil {
			err = fmt.Errorf("%w: it was called again for parallel plans, --parallel=1 or Options.Parallel disables them", err)
		}
	}()
	if more, err = newLane(ctx, l.shared, setUp); err != nil {
		return nil, err
	}
	for _, q := range more.manager.queues {
		if slices.ContainsFunc(l.manager.queues, func(other *queue) bool { return isSame(q.reconciler, other.reconciler) }) {
			more.close()
			l.broken = fmt.Errorf("set-up adds the reconciler of %s to several managers, it must make a new one", q.name)
			return nil, fmt.Errorf("plan: %w", l.broken)
		}
	}
	return more, nil
}

// isSame reports whether two reconcilers are one object with a state.
func isSame(a, b reconcile.Reconciler) bool {
	t := reflect.TypeOf(a)
	return t.Kind() == reflect.Pointer && t.Elem().Size() > 0 && a == b
}

// start starts the watches of the controllers.
func (l *lane) start(ctx context.Context) error {
	ctx, l.stop = context.WithCancel(l.context(ctx))
	for _, q := range l.manager.queues {
		failed := make(chan error, 1)
		l.running.Go(func() { failed <- q.runnable.Start(ctx) })
		select {
		case <-q.started:
		case err := <-failed:
			return fmt.Errorf("plan: controller %s did not start: %w", q.name, cmp.Or(err, ctx.Err()))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// close stops the watches of the controllers.
func (l *lane) close() {
	l.stop()
	l.running.Wait()
}

// controllers returns the names of the controllers.
func (l *lane) controllers() []string {
	var names []string
	for _, q := range l.manager.queues {
		names = append(names, q.name)
	}
	return names
}

func (l *lane) context(ctx context.Context) context.Context {
	return planning.With(ctx, func(text string) {
		l.announcing.Lock()
		defer l.announcing.Unlock()
		if !slices.Contains(l.announced, text) { // a later reconcile does not see that it is done
			l.announced = append(l.announced, text)
		}
	})
}

// begin replaces the overlay by an empty one.
func (l *lane) begin() *overlay {
	o := newOverlay(l.cluster, l.kinds, l.options.FieldManager, l.dryRun)
	o.notify = l.informers.deliver
	l.client.current.Store(o)
	return o
}

// add adds requests to empty queues.
func (l *lane) add(requests ...Request) error {
	for _, q := range l.manager.queues {
		q.clear()
	}
	for _, r := range requests {
		q, err := l.queueOf(r)
		if err != nil {
			return err
		}
		q.Add(r.reconcile())
	}
	return nil
}

// queueOf returns the queue of a request.
func (l *lane) queueOf(r Request) (*queue, error) {
	if r.Controller == "" && len(l.manager.queues) == 1 {
		return l.manager.queues[0], nil
	}
	at := slices.IndexFunc(l.manager.queues, func(q *queue) bool { return q.name == r.Controller })
	if at < 0 {
		return nil, fmt.Errorf(
			"plan: unknown controller %q, must be one of %s", r.Controller, strings.Join(l.controllers(), ", "),
		)
	}
	return l.manager.queues[at], nil
}
