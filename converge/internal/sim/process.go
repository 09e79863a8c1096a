// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/engine/guard"
)

// Process is one life of the program with the reconciler. It ends with a crash.
type Process struct {
	*scene

	program *Program
	// version is the version of the controller.
	version *Version
	gateway *gateway
	// processes are the present processes of all programs.
	processes *processes
	// listOrder is the order of lists from caches, or 0 if they are sorted.
	listOrder int
	// number counts the processes of the program.
	number int
	ctx    context.Context
	cancel context.CancelFunc
	// dead ends each goroutine of the process at its next call.
	dead atomic.Bool

	// informers are the caches, in the order of their creation.
	informers []*informer
	indexes   []index

	// Client is the client of the manager, and APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	// Cache is where Client reads from.
	Cache ctrlcache.Cache
	// Recorder drops all events. The trace has about which objects there were warnings.
	Recorder record.EventRecorder
	Manager  ctrlmanager.Manager

	// reconciler is set for scenarios with New.
	reconciler reconcile.Reconciler
	// queue has the requests of reconciler, or of all controllers.
	queue queue
	// direct is the queue of reconciler.
	direct *controllerQueue
	// manager is set for scenarios with Setup.
	manager *processManager
	// webhooks are called for writes of all clients, and restarting is set until other programs can reach them again.
	webhooks   []Webhook
	restarting bool
	// admitting is set while a write waits for a webhook. Only calls of the webhook, and calls that belong to no
	// reconcile, are served meanwhile.
	admitting bool
	// guard records what is written, with [Gate].
	guard *guard.Cluster
	// selectors limit the caches of kinds, in place of the selectors of the machine.
	selectors map[schema.GroupVersionKind]labels.Selector
	// election is the leader election, or nil if the process has none.
	election *election
	// starting is set while the process is set up, and paused while it is stopped.
	starting, paused bool

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
	// stale are the caches that start with an old list, and nextStale are the stale caches of the next process.
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

func (p *Process) mapper() meta.RESTMapper { return &processMapper{p.version.Registry.Mapper(), p} }

// worker calls functions, one after the other, until the process ends. The stack of its goroutine has to grow only
// once.
type worker chan<- func()

func (p *Process) newWorker() worker {
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
	world.Call

	process *Process
	// do performs the call, with obj or a copy of it.
	do func(obj client.Object) error
	// behind is the reconcile that overtakes this one, if any.
	behind string
	// begin is set for calls that are not requests, for example the start of a reconcile.
	begin func()
	// late is set for a call during which the process was paused. It is answered if it was performed before.
	late, answered bool
	// answer is the result of a call that is answered.
	answer error
	served chan error
}

// submit waits until a call is served, and ends the goroutine if the process is dead.
func (p *Process) submit(ctx context.Context, c *call) error {
	if p.dead.Load() {
		goruntime.Goexit()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.served, c.process = make(chan error, 1), p
	c.Who = whoIn(ctx)
	p.mu.Lock()
	p.pending = append(p.pending, c)
	p.mu.Unlock()
	p.scheduler.wake()
	err := <-c.served
	if p.dead.Load() {
		goruntime.Goexit()
	}
	return err
}

// next returns a waiting call. If several goroutines have made one, the order does not depend on which was first. A
// call that another reconcile overtakes is returned only if overtaken is set.
func (p *Process) next(overtaken bool) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 || p.paused {
		return nil
	}
	if len(p.pending) > 1 {
		slices.SortStableFunc(p.pending, func(a, b *call) int {
			return cmp.Or(strings.Compare(a.Who, b.Who), a.Compare(b.Site))
		})
	}
	at := slices.IndexFunc(p.pending, func(c *call) bool {
		return (overtaken || !p.processes.isActive(c.behind)) && c.Who != whoElection
	})
	if at < 0 {
		// The lease is renewed last: a process that continues after a pause does as much as it can before.
		at = slices.IndexFunc(p.pending, func(c *call) bool { return c.Who == whoElection })
	}
	if p.admitting {
		at = slices.IndexFunc(p.pending, func(c *call) bool { return c.Who == webhookCaller || c.Who == whoElse })
	}
	if at < 0 {
		return nil
	}
	c := p.pending[at]
	p.pending = slices.Delete(p.pending, at, at+1)
	return c
}

// activity returns the running reconcile of a name, or nil.
func (p *Process) activity(name string) *activity {
	if at := slices.IndexFunc(p.active, func(a *activity) bool { return a.Name == name }); at >= 0 {
		return p.active[at]
	}
	return nil
}

// busy reports whether a reconcile or a handler is running.
func (p *Process) busy() bool { return len(p.active) > 0 || p.delivering }

// existing returns the cache of a kind, or nil.
func (p *Process) existing(kind schema.GroupVersionKind) *informer {
	for _, i := range p.informers {
		if i.kind == kind {
			return i
		}
	}
	return nil
}

// changedVersion reports whether a call updates an object with another resource version than it was read with. The API
// server then does not detect a conflict.
func (p *Process) changedVersion(c *call) bool {
	version, read := p.handedVersions[c.Obj]
	return read && c.Act == "update" && version != c.Obj.GetResourceVersion()
}

// waiting returns the name of a running reconcile other than one that waits for a response, or "".
func (p *Process) waiting(other string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pending {
		if c.Who != other && p.activity(c.Who) != nil {
			return c.Who
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
func (p *Process) die() {
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

// CallOutside makes a call to a system outside of the cluster that effect stands for.
func (p *Process) CallOutside(ctx context.Context, name string, effect func() error) error {
	var panicked any
	err := p.submit(ctx, &call{
		Call: world.Call{Site: inject.Site{Act: "call", Kind: name}, Outside: true, Effect: true},
		do: func(client.Object) error {
			defer func() { panicked = recover() }()
			return p.gateway.changesOutside(name, effect)
		},
	})
	if panicked != nil {
		panic(panicked) // in the goroutine of the reconciler, not in the one of the run
	}
	return err
}

// CallCloud makes a call to the external system. A read has no effect.
func (p *Process) CallCloud(ctx context.Context, verb, key string, effect bool, do func(*world.Cloud) error) error {
	c := &call{Call: world.Call{
		Site: inject.Site{Act: "call", Kind: "cloud " + verb + " " + key}, Outside: true, Effect: effect,
	}}
	c.do = func(client.Object) error {
		cloud := &p.world.Cloud
		before := cloud.Version
		_, existed := cloud.Values[key]
		err := do(cloud)
		if cloud.Version != before {
			p.gateway.cloudChanged(verb, key, existed)
		}
		return err
	}
	return p.submit(ctx, c)
}

// LearnName records that a name was generated from a prefix.
func (p *Process) LearnName(name, prefix string) { p.world.Generated.Learn(name, prefix) }

// activity is a running reconcile.
type activity struct {
	world.Reconcile

	process *Process
	// done is set at its end.
	done bool
}

// record returns the reconcile as others see it, or nil.
func (a *activity) record() *world.Reconcile {
	if a == nil {
		return nil
	}
	return &a.Reconcile
}

type activityKey struct{}

// whoElse is the name of calls that belong to no reconcile.
const whoElse = "process"

// whoIn returns the name of the reconcile that makes a call.
func whoIn(ctx context.Context) string {
	if a, ok := ctx.Value(activityKey{}).(*activity); ok {
		return a.Name
	}
	if elects(ctx) {
		return whoElection
	}
	return whoElse
}

// reconcile performs a reconcile, in a goroutine of its own or in one of a controller. It panics again after a panic if
// again is set.
func (p *Process) reconcile(ctx context.Context, a *activity, do reconcile.Reconciler, again bool) {
	defer func() {
		r := recover()
		if r != nil {
			stack := make([]byte, 8<<10)
			a.Panicked, a.Stack = r, string(stack[:goruntime.Stack(stack, false)])
		}
		p.mu.Lock()
		a.done = true
		p.mu.Unlock()
		p.scheduler.wake()
		if r != nil && again {
			panic(r)
		}
	}()
	a.Result, a.Err = do.Reconcile(context.WithValue(ctx, activityKey{}, a), a.Request)
	a.Returned = true
}

// noticed records an event that leads to a request whose reconcile is running: it may see the change.
func (p *Process) noticed(item queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.active {
		if a.RequestOf == item.RequestOf {
			a.Author.Cause = cmp.Or(item.cause, a.Author.Cause)
		}
	}
}

// requeue handles the result of a reconcile, unless a controller does.
func (p *Process) requeue(a *activity) {
	if p.manager == nil {
		p.direct.finish(a)
	} else if queue := p.manager.queues[a.Controller]; queue.shadow {
		queue.finish(a)
	}
}

// ended removes and returns the reconciles that have ended.
func (p *Process) ended() []*activity {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ended []*activity
	p.active = slices.DeleteFunc(p.active, func(a *activity) bool {
		if a.done {
			ended = append(ended, a)
		}
		return a.done
	})
	slices.SortFunc(ended, func(a, b *activity) int { return a.Number - b.Number })
	return ended
}
