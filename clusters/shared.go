// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

// shared is a controller of several clusters, with one queue and one set of workers. It calls the reconciler that SetUp
// has made for the cluster of a request.
type shared struct {
	name    string
	timeout time.Duration
	// workersOfCluster is how many workers one cluster may occupy.
	workersOfCluster int
	// fair reports whether the namespaces of a cluster take turns.
	fair bool
	log  logr.Logger
	// started is closed when made is set: the controller has started.
	started chan struct{}
	made    *queue
}

// shared returns the controller of several clusters for a controller of one. The first one sets its options.
func (f *Fleet) shared(c *built) (*shared, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.controllers[c.Name()]; known != nil {
		return known, nil
	}
	options := c.Options()
	workers := max(1, options.MaxConcurrentReconciles)
	s := &shared{
		name: c.Name(), timeout: f.options.Timeout, workersOfCluster: f.options.WorkersOfCluster,
		fair: c.HasFairQueue(), log: f.mgr.GetLogger().WithValues("controller", c.Name()), started: make(chan struct{}),
	}
	if s.workersOfCluster == 0 {
		s.workersOfCluster = (workers + 1) / 2
	}
	_, err := ctrlcontroller.NewTyped(s.name, f.mgr, ctrlcontroller.TypedOptions[Request]{
		Reconciler: s, MaxConcurrentReconciles: workers, LogConstructor: s.logOf, NewQueue: s.newQueue,
		NeedLeaderElection: options.NeedLeaderElection, RecoverPanic: options.RecoverPanic,
	})
	if err != nil {
		return nil, fmt.Errorf("controller %q for several clusters: %w", s.name, err)
	}
	f.controllers[s.name] = s
	return s, nil
}

// newQueue is called when the controller starts.
func (s *shared) newQueue(
	name string, _ workqueue.TypedRateLimiter[Request],
) workqueue.TypedRateLimitingInterface[Request] {
	s.made = newQueue(name, s.fair)
	close(s.started)
	return s.made
}

// queue returns the queue when the controller has started, or nil after the context has ended.
func (s *shared) queue(ctx context.Context) *queue {
	select {
	case <-s.started:
		return s.made
	case <-ctx.Done():
		return nil
	}
}

func (s *shared) stateOf(m *member) observe.ClusterState {
	if !isClosed(s.started) {
		return observe.ClusterStarting
	}
	return s.made.stateOf(m.name)
}

// logOf returns the logger of a request, as SetUp has made it for the controller of the cluster.
func (s *shared) logOf(req *Request) logr.Logger {
	if req == nil {
		return s.log
	}
	if l := s.made.of(*req); l != nil {
		if of := l.built.LogConstructor(); of != nil {
			return of(&req.Request)
		}
	}
	return s.log.WithValues("cluster", req.ClusterName, "namespace", req.Namespace, "name", req.Name)
}

// errTimeout is the cause of the end of a context.
var errTimeout = errors.New("the reconcile has not ended in time")

// Reconcile calls the reconciler of the cluster. The context ends with the cluster, and after the timeout.
func (s *shared) Reconcile(ctx context.Context, req Request) (reconcile.Result, error) {
	l := s.made.of(req)
	if l == nil || l.member.ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	ctx = context.WithValue(ctx, nameKey{}, req.ClusterName)
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	defer context.AfterFunc(l.member.ctx, cancel)()
	result, err := l.built.Reconcile(ctx, req.Request)
	if l.member.ctx.Err() != nil {
		return reconcile.Result{}, nil // nothing is retried
	}
	late := errors.Is(context.Cause(ctx), errTimeout) && (err != nil || !result.IsZero())
	s.made.ended(l, late)
	if late && err != nil {
		err = fmt.Errorf("cluster %q: %w after %s: %w", req.ClusterName, errTimeout, s.timeout, err)
	}
	return result, err
}

// entrance is the queue of the controller of one cluster. It adds the requests of its sources to the queue of all.
type entrance struct {
	queue *queue
	line  *line
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*entrance)(nil)

func (e *entrance) Add(req reconcile.Request) { e.AddWithOpts(priorityqueue.AddOpts{}, req) }

func (e *entrance) AddAfter(req reconcile.Request, after time.Duration) {
	e.AddWithOpts(priorityqueue.AddOpts{After: after}, req)
}

func (e *entrance) AddRateLimited(req reconcile.Request) {
	e.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

func (e *entrance) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	e.queue.add(e.line, o, requests...)
}

func (e *entrance) Forget(req reconcile.Request) { e.queue.Forget(Request{e.line.member.name, req}) }

func (e *entrance) NumRequeues(req reconcile.Request) int {
	return e.queue.NumRequeues(Request{e.line.member.name, req})
}

// The methods of workers are never called: the controller of one cluster has none.

func (e *entrance) Len() int                               { return e.queue.Len() }
func (e *entrance) Get() (req reconcile.Request, end bool) { return req, true }
func (e *entrance) GetWithPriority() (req reconcile.Request, priority int, end bool) {
	return req, 0, true
}
func (e *entrance) Done(reconcile.Request) {}
func (e *entrance) ShutDown()              {}
func (e *entrance) ShutDownWithDrain()     {}
func (e *entrance) ShuttingDown() bool     { return e.line.member.ctx.Err() != nil }
