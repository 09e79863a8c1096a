// SPDX-License-Identifier: Apache-2.0

package converge

import (
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

	"trueup.dev/internal/guard"
)

// process is one life of the program that has the reconciler. It ends with a crash.
type process struct {
	run    *run
	number int
	ctx    context.Context
	cancel context.CancelFunc
	// dead has whatever still runs end at its next call.
	dead atomic.Bool

	// informers are those that have been asked for, in that order.
	informers []*informer
	indexes   []index
	env       Env

	// For New.
	reconciler reconcile.Reconciler
	queue      queue
	// For Setup.
	manager *processManager
	// guard notes what is written, with Gate.
	guard *guard.Cluster

	mu sync.Mutex
	// pending are the calls that wait to be served.
	pending []*call
	// active are the reconciles that go on, of which New's reconciler has one at most.
	active []*activity
	// delivering is true while a cache tells of a change, which may make requests of its own.
	delivering bool
	// deliveries are what caches tell next.
	deliveries []func()
	// stale are the caches that begin with an old list.
	stale []staleStart
	// delivered is true when a cache has told of a change.
	delivered bool
	// filled are the versions of objects when they were read or written.
	filled map[client.Object]string
	// written is the last version of each kind that the process has written.
	written map[schema.GroupVersionKind]int64
}

// call is a request of a process. It waits until it is served: by the goroutine that owns the run, one at a time.
type call struct {
	site
	// what is said of it in a timeline, if that differs from the site.
	cached bool
	// obj is what is written, nil for reads.
	obj client.Object
	// gvk is the kind of what is read or written.
	gvk schema.GroupVersionKind
	// conditional is true for a delete that only hits the object that was meant.
	conditional bool
	// out is what is read, and into the object that is filled by a read.
	out  runtime.Object
	into client.Object
	// do makes the call, with obj or a copy of it.
	do func(obj client.Object) error
	// outside is a call to another system. It is a write if it may have an effect.
	outside, effect bool
	who             string

	// behind is the reconcile that overtakes, if that has happened.
	behind string

	// begin is for calls that only tell that a reconcile begins.
	begin  func()
	served chan error
}

// make has a call served, and ends the goroutine if the process is dead.
func (p *process) make(ctx context.Context, c *call) error {
	if p.dead.Load() {
		goruntime.Goexit()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.served = make(chan error, 1)
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

// next returns a call that waits. If several do, because there are several goroutines, the order does not depend on
// which was quicker.
func (p *process) next() *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 {
		return nil
	}
	if len(p.pending) > 1 {
		slices.SortStableFunc(p.pending, func(a, b *call) int {
			if order := strings.Compare(a.who, b.who); order != 0 {
				return order
			}
			return strings.Compare(point{site: a.site}.String(), point{site: b.site}.String())
		})
	}
	at := max(slices.IndexFunc(p.pending, func(c *call) bool { return !p.isActive(c.behind) }), 0)
	c := p.pending[at]
	p.pending = slices.Delete(p.pending, at, at+1)
	return c
}

// activity returns the reconcile of a name that goes on, or nil.
func (p *process) activity(name string) *activity {
	if at := slices.IndexFunc(p.active, func(a *activity) bool { return a.name == name }); at >= 0 {
		return p.active[at]
	}
	return nil
}

// isActive is true for a reconcile that goes on.
func (p *process) isActive(name string) bool { return p.activity(name) != nil }

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

// changedVersion reports whether a call updates an object with another version than it was read with: a conflict is not
// detected then.
func (p *process) changedVersion(c *call) bool {
	version, read := p.filled[c.obj]
	return read && c.act == "update" && version != c.obj.GetResourceVersion()
}

// rival is a reconcile that goes on, and waits as another one does that makes a call.
func (p *process) rival(c *call) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isActive(c.who) {
		return ""
	}
	for _, other := range p.pending {
		if other.who != c.who && p.isActive(other.who) {
			return other.who
		}
	}
	return ""
}

// overtake has a call wait until a reconcile is over.
func (p *process) overtake(c *call, rival string) {
	c.behind = rival
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = append(p.pending, c)
}

// die ends the process. What waits for an answer does not get one.
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
	err := p.make(ctx, &call{site: site{act: "call", kind: name}, outside: true, effect: true, do: func(
		client.Object,
	) error {
		defer func() { panicked = recover() }()
		return effect()
	}})
	if panicked != nil {
		panic(panicked) // where the reconciler is, not where its calls are served
	}
	return err
}

// activity is a reconcile that goes on.
type activity struct {
	request

	number int
	name   string
	// changes is how many changes there were when it started, and at which version.
	changes int

	// What follows is set when it has ended.
	done     bool
	returned bool
	result   reconcile.Result
	err      error
	panicked any
	stack    string
	// refused is true if a request has failed that may not fail again.
	refused bool
	// failed are the faults that requests of it have met.
	failed []Fault
}

type activityKey struct{}

// whoIn tells on whose behalf a call is made.
func whoIn(ctx context.Context) string {
	if a, ok := ctx.Value(activityKey{}).(*activity); ok {
		return a.name
	}
	return "process"
}

// reconcile makes a reconcile. It is called in a goroutine of its own, or in one of a controller. Panics go on if again
// is true.
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

// ended returns the reconciles that have ended, and forgets them.
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
