// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"context"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/internal/engine/guard"
)

// process is one life of the program with the reconciler. It ends with a crash.
type process struct {
	run     *run
	program *program
	// number counts the processes of the program.
	number int
	ctx    context.Context
	cancel context.CancelFunc
	// dead ends each goroutine of the process at its next call.
	dead atomic.Bool

	// informers are the caches, in the order of their creation.
	informers []*informer
	indexes   []index
	env       Env

	// reconciler is set for scenarios with New.
	reconciler reconcile.Reconciler
	// queue has the requests of reconciler, or of all controllers.
	queue queue
	// direct is the queue of reconciler.
	direct *controllerQueue
	// manager is set for scenarios with Setup.
	manager *processManager
	// webhooks are called for writes of all clients, and restarting is set until other programs can reach them again.
	webhooks   []webhook
	restarting bool
	// admitting is set while a write waits for a webhook. Only calls of the webhook, and calls that belong to no
	// reconcile, are served meanwhile.
	admitting bool
	// guard records what is written, with [Gate].
	guard *guard.Cluster

	mu sync.Mutex
	// pending are the calls that wait to be served.
	pending []*call
	// active are the running reconciles. The reconciler of New has one at most.
	active []*activity
	// handlers is the goroutine of handlers, once there is one.
	handlers worker
	// delivering is set while a cache calls handlers, which may make calls.
	delivering bool
	// deliveries are the next calls of handlers.
	deliveries []func()
	// arriving is the version of the event that a cache is receiving, or 0.
	arriving atomic.Int64
	// stale are the caches that start with an old list, and nextStale those of the next process.
	stale, nextStale []staleStart
	// restartWhenIdle ends the process as soon as everything is idle.
	restartWhenIdle bool
	// delivered is set when the handlers have returned.
	delivered bool
	// handedVersions are the resource versions with which Get and writes filled objects of the reconciler.
	handedVersions map[client.Object]string
	// written is the last version of each kind that the process has written.
	written map[schema.GroupVersionKind]int64
}

// worker calls functions, one after the other, until the process ends. The stack of its goroutine has to grow only
// once.
type worker chan<- func()

func (p *process) newWorker() worker {
	next := make(chan func(), 1)
	go func() {
		for {
			select {
			case do := <-next:
				do()
			case <-p.ctx.Done():
				return
			}
		}
	}()
	return next
}

// call is a request of a process. It waits until the goroutine that owns the run serves it, one call at a time.
type call struct {
	inject.Site

	process *process
	// cached is set for reads from a cache.
	cached bool
	// obj is the object that is written, or nil for reads.
	obj client.Object
	// gvk is the kind of the object.
	gvk schema.GroupVersionKind
	writeOptions
	// out is the list that is read, and into the object that is read.
	out  runtime.Object
	into client.Object
	// do performs the call, with obj or a copy of it.
	do func(obj client.Object) error
	// outside is set for a call to an external system, and effect if that may change something.
	outside, effect bool
	who             string

	// behind is the reconcile that overtakes this one, if any.
	behind string

	// begin is set for calls that are not requests, for example the start of a reconcile.
	begin  func()
	served chan error
}

// submit waits until a call is served, and ends the goroutine if the process is dead.
func (p *process) submit(ctx context.Context, c *call) error {
	if p.dead.Load() {
		goruntime.Goexit()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.served, c.process = make(chan error, 1), p
	c.who = whoIn(ctx)
	p.mu.Lock()
	p.pending = append(p.pending, c)
	p.mu.Unlock()
	p.run.wake()
	err := <-c.served
	if p.dead.Load() {
		goruntime.Goexit()
	}
	return err
}

// next returns a waiting call. If several goroutines have made one, the order does not depend on which was first. A
// call that another reconcile overtakes is returned only if overtaken is set.
func (p *process) next(overtaken bool) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 {
		return nil
	}
	if len(p.pending) > 1 {
		slices.SortStableFunc(p.pending, func(a, b *call) int {
			return cmp.Or(strings.Compare(a.who, b.who), a.Compare(b.Site))
		})
	}
	at := slices.IndexFunc(p.pending, func(c *call) bool { return overtaken || !p.run.processes.isActive(c.behind) })
	if p.admitting {
		at = slices.IndexFunc(p.pending, func(c *call) bool { return c.who == webhookCaller || c.who == whoElse })
	}
	if at < 0 {
		return nil
	}
	c := p.pending[at]
	p.pending = slices.Delete(p.pending, at, at+1)
	return c
}

// activity returns the running reconcile of a name, or nil.
func (p *process) activity(name string) *activity {
	if at := slices.IndexFunc(p.active, func(a *activity) bool { return a.name == name }); at >= 0 {
		return p.active[at]
	}
	return nil
}

// busy reports whether a reconcile or a handler is running.
func (p *process) busy() bool { return len(p.active) > 0 || p.delivering }

// existing returns the cache of a kind, or nil.
func (p *process) existing(kind schema.GroupVersionKind) *informer {
	for _, i := range p.informers {
		if i.kind == kind {
			return i
		}
	}
	return nil
}

// changedVersion reports whether a call updates an object with another resource version than it was read with. The API
// server then does not detect a conflict.
func (p *process) changedVersion(c *call) bool {
	version, read := p.handedVersions[c.obj]
	return read && c.Act == "update" && version != c.obj.GetResourceVersion()
}

// waiting returns the name of a running reconcile other than one that waits for a response, or "".
func (p *process) waiting(other string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pending {
		if c.who != other && p.activity(c.who) != nil {
			return c.who
		}
	}
	return ""
}

// overtake makes a call wait until another reconcile has ended.
func (c *call) overtake(rival string) {
	c.behind = rival
	p := c.process
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = append(p.pending, c)
}

// die ends the process. Waiting calls receive no response.
func (p *process) die() {
	p.dead.Store(true)
	p.cancel()
	p.mu.Lock()
	pending := p.pending
	p.pending = nil
	p.mu.Unlock()
	for _, c := range pending {
		c.served <- nil
	}
}

func (p *process) callOutside(ctx context.Context, name string, effect func() error) error {
	var panicked any
	err := p.submit(ctx, &call{Site: inject.Site{Act: "call", Kind: name}, outside: true, effect: true, do: func(
		client.Object,
	) error {
		defer func() { panicked = recover() }()
		return p.run.changesOutside(name, effect)
	}})
	if panicked != nil {
		panic(panicked) // in the goroutine of the reconciler, not in that of the run
	}
	return err
}

// activity is a running reconcile.
type activity struct {
	request

	process *process
	number  int
	name    string
	// changes is the number of changes before its start.
	changes int
	// author is what findings about its changes need.
	author judge.Author

	// The following fields are set at its end.
	done     bool
	returned bool
	result   reconcile.Result
	err      error
	panicked any
	stack    string
	// refused is set if a request has failed with a temporary error.
	refused bool
	// failed are the faults that its requests received.
	failed []Fault
}

type activityKey struct{}

// whoElse is the name of calls that belong to no reconcile.
const whoElse = "process"

// whoIn returns the name of the reconcile that makes a call.
func whoIn(ctx context.Context) string {
	if a, ok := ctx.Value(activityKey{}).(*activity); ok {
		return a.name
	}
	return whoElse
}

// reconcile performs a reconcile, in a goroutine of its own or in one of a controller. It panics again after a panic if
// again is set.
func (p *process) reconcile(ctx context.Context, a *activity, do reconcile.Reconciler, again bool) {
	defer func() {
		r := recover()
		if r != nil {
			stack := make([]byte, 8<<10)
			a.panicked, a.stack = r, string(stack[:goruntime.Stack(stack, false)])
		}
		p.mu.Lock()
		a.done = true
		p.mu.Unlock()
		p.run.wake()
		if r != nil && again {
			panic(r)
		}
	}()
	a.result, a.err = do.Reconcile(context.WithValue(ctx, activityKey{}, a), a.Request)
	a.returned = true
}

// noticed records an event that leads to a request whose reconcile is running: it may see the change.
func (p *process) noticed(item queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.active {
		if a.request == item.request {
			a.author.Cause = cmp.Or(item.cause, a.author.Cause)
		}
	}
}

// requeue handles the result of a reconcile, unless a controller does.
func (p *process) requeue(a *activity) {
	if p.manager == nil {
		p.direct.finish(a)
	} else if queue := p.manager.queues[a.controller]; queue.shadow {
		queue.finish(a)
	}
}

// ended removes and returns the reconciles that have ended.
func (p *process) ended() []*activity {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ended []*activity
	p.active = slices.DeleteFunc(p.active, func(a *activity) bool {
		if a.done {
			ended = append(ended, a)
		}
		return a.done
	})
	slices.SortFunc(ended, func(a, b *activity) int { return a.number - b.number })
	return ended
}

// writer returns a reconcile as a writer.
func (a *activity) writer() judge.Writer {
	return a.author.Writer(a.process.program.client)
}
