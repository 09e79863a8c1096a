// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*Retry[client.Object])(nil)

// Retry gives a subreconciler its own exponential back-off. If the subreconciler fails, the request runs again after
// the delay, with a RequeueAfter that occupies no worker. Until then, Reconciler is not called, whatever else triggers
// a reconcile, and the reconcilers that follow do not run, see Continue.
//
// The delay doubles with each consecutive failure of a resource, and of an item of a [ForEach]. A success, a new
// generation of the resource, the start of its deletion and a change of [AnnotationReconcileAt] reset it. Kinds without
// a generation, such as ConfigMap, are not reset by a change of their content. Each failure is logged once, and the
// controller does not count it as an error. The state is kept in memory: after a restart, Reconciler runs at once. It
// is dropped a day after the last reconcile of the resource.
//
// While the resource is being deleted, a failure always stops the reconcilers that follow, and keeps the finalizer of
// an enclosing [WithFinalizer].
type Retry[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Retry`.
	Name string

	// InitialDelay is the delay after the first failure. Defaults to 1 second.
	InitialDelay time.Duration

	// MaxDelay limits the delay. Defaults to 5 minutes, or InitialDelay if that is longer.
	MaxDelay time.Duration

	// MaxAttempts is the number of consecutive failures after which the resource is not retried before one of the
	// changes that reset the delay. It is then returned as [ErrRetriesExhausted], and a Warning event RetriesExhausted is
	// recorded. Defaults to 0, which means no limit.
	MaxAttempts int

	// Retryable reports whether to handle an error. Other errors are returned unchanged, and do not count. Defaults to
	// all errors except quiet errors, which include halts, and conflicts, for which the back-off of the controller is
	// better.
	Retryable func(err error) bool

	// Continue lets the reconcilers that follow run after a failure, and while Reconciler is deferred. Defaults to false.
	Continue bool

	// Reconciler is the subreconciler to retry. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
	failures perItem[failureState]
}

// ErrRetriesExhausted is the error of a [Retry] after MaxAttempts consecutive failures. It is quiet.
type ErrRetriesExhausted struct {
	// Attempts is the number of consecutive failures.
	Attempts int
	// Err is the last error.
	Err error
}

func (err *ErrRetriesExhausted) Error() string {
	return fmt.Sprintf("gave up after %d failures: %v", err.Attempts, err.Err)
}

// Unwrap returns the last error, and [ErrRetryAfter], because the request must not be retried.
func (err *ErrRetriesExhausted) Unwrap() []error { return []error{ErrRetryAfter, err.Err} }

// failureState counts the consecutive failures of a resource.
type failureState struct {
	occasion
	attempts int
	due      time.Time
	err      error
}

const (
	defaultInitialDelay = time.Second
	defaultMaxDelay     = 5 * time.Minute
)

func (r *Retry[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Retry"
		}
		if r.InitialDelay == 0 {
			r.InitialDelay = defaultInitialDelay
		}
		if r.MaxDelay == 0 {
			r.MaxDelay = max(defaultMaxDelay, r.InitialDelay)
		}
		if r.Retryable == nil {
			r.Retryable = func(err error) bool { return !isQuiet(err) && !apierrs.IsConflict(err) }
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler.
func (r *Retry[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the fields. If ctx requests recursion, it also validates Reconciler.
func (r *Retry[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Retry[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Retry[T]) describe(d *description) {
	r.init()
	d.is("Retry", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.require(r.InitialDelay >= 0, "must define a positive InitialDelay, got %s", r.InitialDelay)
	d.require(r.MaxDelay >= r.InitialDelay, "must define a MaxDelay of at least %s, got %s", r.InitialDelay, r.MaxDelay)
	d.require(r.MaxAttempts >= 0, "must not define a negative MaxAttempts, got %d", r.MaxAttempts)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Reconciler unless it is deferred.
func (r *Retry[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Retry[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	now := rtime.RetrieveNow(ctx)
	state, failed := r.failures.get(ctx, resource)
	if current := occasionOf(ctx, resource); state.occasion != current {
		state, failed = failureState{occasion: current}, false
	}
	if failed && (r.exhausted(state) || now.Before(state.due)) {
		r.keep(ctx, resource, state, now)
		return r.deferred(ctx, resource, state, now)
	}
	result, err := r.Reconciler.Reconcile(ctx, resource)
	switch {
	case err == nil:
		r.failures.forget(ctx, resource)
		return result, nil
	case isShutdown(ctx) || !r.Retryable(err):
		return result, err
	}
	state.attempts, state.err = state.attempts+1, err
	delay := r.delay(state.attempts)
	state.due = now.Add(delay)
	r.keep(ctx, resource, state, now)
	log := logr.FromContextOrDiscard(ctx)
	if r.exhausted(state) {
		log.Error(err, "gave up, not retrying before the resource changes", "failures", state.attempts)
		if config, configErr := RetrieveConfig(ctx); configErr == nil {
			config.recorder().Eventf(resource, corev1.EventTypeWarning, "RetriesExhausted",
				"%s: %s", r.Name, truncate((&ErrRetriesExhausted{state.attempts, err}).Error()))
		}
	} else {
		log.Error(err, "failed, retrying with back-off", "failures", state.attempts, "after", delay.String())
	}
	next, err := r.deferred(ctx, resource, state, now)
	return AggregateResults(Result{Priority: result.Priority}, next), err
}

// keep stores the state as long as it may be needed.
func (r *Retry[T]) keep(ctx context.Context, resource T, state failureState, now time.Time) {
	r.failures.put(ctx, resource, state, now, now.Add(stateTTL+r.MaxDelay))
}

func (r *Retry[T]) exhausted(state failureState) bool {
	return r.MaxAttempts > 0 && state.attempts >= r.MaxAttempts
}

// delay returns the delay after a number of consecutive failures.
func (r *Retry[T]) delay(failures int) time.Duration {
	delay := r.InitialDelay
	for i := 1; i < failures && delay < r.MaxDelay; i++ {
		delay *= 2
	}
	return min(delay, r.MaxDelay)
}

// deferred returns the outcome of a step that has failed and does not run now.
func (r *Retry[T]) deferred(
	ctx context.Context, resource T, state failureState, now time.Time,
) (Result, error) {
	result, err := Result{}, error(nil)
	if r.exhausted(state) {
		err = &ErrRetriesExhausted{Attempts: state.attempts, Err: state.err}
	} else {
		result.RequeueAfter = state.due.Sub(now)
		text := fmt.Sprintf("retried after %s: %v", result.RequeueAfter.Round(time.Millisecond), state.err)
		err = &deferredStep{text: text, why: causeOf(state.err), cause: state.err}
	}
	if r.Continue && !MustRemove(ctx, resource) {
		unfinished(ctx, r.Name+" has failed: "+causeOf(state.err))
		return result, nil
	}
	return result, err
}

// perObject keeps a value for each resource until a time, in memory. A resource that is deleted and created again is
// another resource, because it has another UID. The zero value is ready to use. It is safe for concurrent use.
type perObject[V any] struct {
	mu     sync.Mutex
	values map[objectID]kept[V]
	// sweepAt is the number of values at which expired values are dropped.
	sweepAt int
}

type kept[V any] struct {
	value V
	until time.Time
}

// objectID identifies a resource by its UID. A resource that was never stored has none, and is identified by its name.
type objectID struct {
	uid types.UID
	types.NamespacedName
	// item is the item of the loops around a reconciler, or "".
	item string
}

func idOf(resource client.Object) objectID {
	if uid := resource.GetUID(); uid != "" {
		return objectID{uid: uid}
	}
	return objectID{NamespacedName: client.ObjectKeyFromObject(resource)}
}

// minSweep is the smallest number of values that is worth a sweep.
const minSweep = 64

// get returns the value of a resource, or the zero value and false.
func (p *perObject[V]) get(resource client.Object) (V, bool) { return p.getOf(idOf(resource)) }

func (p *perObject[V]) getOf(id objectID) (V, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.values[id]
	return found.value, ok
}

// put keeps a value at least until the given time. Each value is visited about once for each value that is put, so
// that resources that no longer exist are forgotten.
func (p *perObject[V]) put(resource client.Object, value V, now, until time.Time) {
	p.putOf(idOf(resource), value, now, until)
}

func (p *perObject[V]) putOf(id objectID, value V, now, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values, p.sweepAt = map[objectID]kept[V]{}, minSweep
	}
	if len(p.values) >= p.sweepAt {
		for id, old := range p.values {
			if now.After(old.until) {
				delete(p.values, id)
			}
		}
		p.sweepAt = max(minSweep, 2*len(p.values))
	}
	p.values[id] = kept[V]{value, until}
}

func (p *perObject[V]) forget(resource client.Object) { p.forgetOf(idOf(resource)) }

func (p *perObject[V]) forgetOf(id objectID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.values, id)
}

// itemIDOf identifies a resource and, within a [ForEach] or [While], the item or the iteration. A reconciler that keeps
// state between requests runs once for each of them.
func itemIDOf(ctx context.Context, resource client.Object) objectID {
	id := idOf(resource)
	id.item = itemOf(ctx)
	return id
}

// perItem is a [perObject] for reconcilers that may be in a loop: it keeps a value for each item.
type perItem[V any] struct{ values perObject[V] }

func (p *perItem[V]) get(ctx context.Context, resource client.Object) (V, bool) {
	return p.values.getOf(itemIDOf(ctx, resource))
}

func (p *perItem[V]) put(ctx context.Context, resource client.Object, value V, now, until time.Time) {
	p.values.putOf(itemIDOf(ctx, resource), value, now, until)
}

func (p *perItem[V]) forget(ctx context.Context, resource client.Object) {
	p.values.forgetOf(itemIDOf(ctx, resource))
}
