// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/fairqueue"
	"trueup.dev/observe"
)

// Request is a request of a controller of several clusters.
type Request struct {
	ClusterName string
	reconcile.Request
}

// String returns the name of the cluster and of the object.
func (r Request) String() string { return r.ClusterName + "/" + r.Request.String() }

// queue is the queue of a controller of several clusters. The clusters take turns, and within each cluster its
// namespaces do if the controller says so. A worker gets no request of a
// cluster whose caches are not filled, that occupies as many workers as it may, or that does not answer: the request
// waits in the line of the cluster.
type queue struct {
	*fairqueue.Queue[Request]
	turnOf fairqueue.TurnOf[Request]

	// adding is read-locked while requests are added: none is added after its cluster was dropped. It is locked first.
	adding sync.RWMutex

	mu    sync.Mutex // not held while the inner queue is called, which calls the limiters
	lines map[string]*line
	// taken has the requests that workers have taken.
	taken map[Request]*line
}

var _ priorityqueue.PriorityQueue[Request] = (*queue)(nil)

// line is what a queue knows of one cluster. It is protected by the mutex of the queue.
type line struct {
	member  *member
	built   *built
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	// most is how many workers the cluster may occupy, and busy how many it occupies.
	most, busy int
	// open is set when the caches are filled, and gone when the cluster is: both locks are held then.
	open, gone bool
	// idle is closed when the cluster is gone and occupies no worker.
	idle chan struct{}
	// waiting are the requests that wait.
	waiting *fairqueue.Line[Request]

	// late is how often in a row a reconcile has not ended in time. paused is set until another one is tried.
	late   int
	paused bool
	timer  *time.Timer
}

func newQueue(name string, fairNamespaces bool) *queue {
	q := &queue{lines: map[string]*line{}, taken: map[Request]*line{}}
	q.turnOf = func(req Request) (turn, within string) {
		if fairNamespaces {
			within = req.Namespace
		}
		return req.ClusterName, within
	}
	q.Queue = fairqueue.By(name, limiters{q}, q.turnOf)
	return q
}

// join adds a cluster.
func (q *queue) join(m *member, c *built) *line {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &line{
		member: m, built: c, most: c.shared.workersOfCluster, idle: make(chan struct{}),
		waiting: fairqueue.NewLine(q.turnOf),
	}
	q.lines[m.name] = l
	return l
}

// limit sets the rate limiter of a cluster.
func (q *queue) limit(l *line, limiter workqueue.TypedRateLimiter[reconcile.Request]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.limiter = limiter
}

// open lets workers take the requests of a cluster.
func (q *queue) open(l *line) {
	q.mu.Lock()
	l.open = true
	q.mu.Unlock()
	q.release(l, true)
}

// leave drops all requests of a cluster. The channel is closed when no worker reconciles one.
func (q *queue) leave(l *line) <-chan struct{} {
	q.forget(l)
	q.Drop(func(req Request) bool { return req.ClusterName == l.member.name })
	return l.idle
}

func (q *queue) forget(l *line) {
	q.adding.Lock()
	defer q.adding.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	l.gone, l.waiting = true, fairqueue.NewLine(q.turnOf)
	if l.timer != nil {
		l.timer.Stop()
	}
	if q.lines[l.member.name] == l {
		delete(q.lines, l.member.name)
	}
	if l.busy == 0 {
		close(l.idle)
	}
}

// add adds requests of a cluster.
func (q *queue) add(l *line, o priorityqueue.AddOpts, requests ...reconcile.Request) {
	q.adding.RLock()
	defer q.adding.RUnlock()
	if l.gone {
		return
	}
	named := make([]Request, len(requests))
	for i, req := range requests {
		named[i] = Request{l.member.name, req}
	}
	q.Queue.AddWithOpts(o, named...)
}

// AddWithOpts adds requests, unless their cluster is gone.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...Request) {
	q.adding.RLock()
	defer q.adding.RUnlock()
	for _, req := range requests {
		q.mu.Lock()
		known := q.lines[req.ClusterName] != nil
		q.mu.Unlock()
		if known {
			q.Queue.AddWithOpts(o, req)
		}
	}
}

// Add adds a request that is due.
func (q *queue) Add(req Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddAfter adds a request that is due later.
func (q *queue) AddAfter(req Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, req)
}

// AddRateLimited adds a request that is due when the rate limiter allows it.
func (q *queue) AddRateLimited(req Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// Get returns the next request.
func (q *queue) Get() (req Request, shutdown bool) {
	req, _, shutdown = q.GetWithPriority()
	return req, shutdown
}

// GetWithPriority returns the next request of a cluster that may occupy a worker, with its priority.
func (q *queue) GetWithPriority() (req Request, priority int, shutdown bool) {
	for {
		if req, priority, shutdown = q.Queue.GetWithPriority(); shutdown || q.take(req, priority) {
			return req, priority, shutdown
		}
		q.Queue.Done(req)
	}
}

// take notes that a worker reconciles a request. Otherwise, the request waits, or is dropped with its cluster.
func (q *queue) take(req Request, priority int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[req.ClusterName]
	if l == nil {
		return false
	}
	if !l.mayTake() {
		l.waiting.Add(req, priority)
		return false
	}
	l.busy++
	q.taken[req] = l
	return true
}

// mayTake reports whether a worker may take a request. A cluster that was late may occupy one.
func (l *line) mayTake() bool {
	if l.late > 0 {
		return l.open && !l.paused && l.busy == 0
	}
	return l.open && l.busy < l.most
}

// release moves the next request that waits, or all, back to the queue.
func (q *queue) release(l *line, all bool) {
	for {
		q.mu.Lock()
		if l.waiting.Len() == 0 {
			q.mu.Unlock()
			return
		}
		req, priority := l.waiting.Take()
		q.mu.Unlock()
		q.add(l, priorityqueue.AddOpts{Priority: &priority}, req.Request)
		if !all {
			return
		}
	}
}

// Done is called when a worker has reconciled a request.
func (q *queue) Done(req Request) {
	q.Queue.Done(req)
	q.mu.Lock()
	l := q.taken[req]
	delete(q.taken, req)
	if l == nil {
		q.mu.Unlock()
		return
	}
	if l.busy--; l.busy == 0 && l.gone {
		close(l.idle)
	}
	mayTake := l.mayTake()
	q.mu.Unlock()
	if mayTake {
		q.release(l, false)
	}
}

// of returns the line of a request that a worker reconciles.
func (q *queue) of(req Request) *line {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken[req]
}

const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// ended notes whether a reconcile of a cluster has ended in time.
func (q *queue) ended(l *line, late bool) {
	q.mu.Lock()
	before := l.late
	switch {
	case !late:
		l.late, l.paused = 0, false
	case !l.paused && !l.gone:
		l.late++
		l.paused = true
		pause := min(firstPause<<min(l.late-1, 10), lastPause)
		l.timer = time.AfterFunc(pause, func() {
			q.mu.Lock()
			l.paused = false
			q.mu.Unlock()
			q.release(l, false)
		})
	}
	changed := (before == 0) != (l.late == 0)
	q.mu.Unlock()
	if !changed {
		return
	}
	l.member.update()
	if !late {
		q.release(l, true)
	}
}

func (q *queue) stateOf(name string) observe.ClusterState {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch l := q.lines[name]; {
	case l == nil || !l.open:
		return observe.ClusterStarting
	case l.late > 0:
		return observe.ClusterPaused
	}
	return observe.ClusterReady
}

// limiters is the rate limiter of the queue. Each cluster has its own.
type limiters struct{ queue *queue }

func (l limiters) of(req Request) workqueue.TypedRateLimiter[reconcile.Request] {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if line := l.queue.lines[req.ClusterName]; line != nil && line.limiter != nil {
		return line.limiter
	}
	return nil
}

func (l limiters) When(req Request) time.Duration {
	if limiter := l.of(req); limiter != nil {
		return limiter.When(req.Request)
	}
	return 0
}

func (l limiters) Forget(req Request) {
	if limiter := l.of(req); limiter != nil {
		limiter.Forget(req.Request)
	}
}

func (l limiters) NumRequeues(req Request) int {
	if limiter := l.of(req); limiter != nil {
		return limiter.NumRequeues(req.Request)
	}
	return 0
}
