// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

// Options configure a [Recorder].
type Options struct {
	// Bytes limits the memory for all objects together. The default is 16 MiB, which is enough for the state and the last
	// reconcile of about 10,000 objects, and the reconciles before of those that change or fail. When it is used up, the
	// recorder drops old reconciles, and then the objects that were not reconciled for the longest time.
	Bytes int
	// Mask decides which values are kept. The values of Secrets are never kept. The default keeps all others.
	Mask observe.Mask
	// Objects keeps the objects of the answers of calls, masked, so that [Recorder.Recording] has what a test needs to
	// repeat the reconciles. They use at most half of Bytes. By default, no objects are kept.
	Objects bool
}

const defaultBytes = 16 << 20

// Recorder is a listener that keeps the last reconciles of each object. It is safe for concurrent use.
type Recorder struct {
	options Options

	unused sync.Pool // of *runState
	// active are the runs that have not finished. Each is also attached to its [observe.Run].
	active   map[*runState]bool
	activeMu sync.Mutex
	// version counts what has changed.
	version atomic.Uint64

	mu          sync.Mutex // protects what follows
	objects     map[objectKey]*object
	recent      recentUse // the objects
	noOps       recentUse // the objects with a run without a write
	successful  list.List // of *keptRun, the newest first
	failed      list.List // of *keptRun, the newest first
	bytes       usage
	controllers map[string]*controller
	clusters    []Cluster // without counts, the last one that has changed at the end
	compare     budget
	// journals are what recordings consist of, and journalOrder has the last used one first. They are empty unless objects
	// are kept.
	journals     map[objectKey]*journal
	journalOrder list.List // of *journal
}

// usage is the estimated memory in bytes, by what it is used for.
type usage struct{ objects, noOps, successful, failed, journals int }

func (u usage) total() int { return u.objects + u.noOps + u.successful + u.failed + u.journals }

type objectKey struct {
	controller string
	object     types.NamespacedName
}

// New returns a recorder. Add it to a manager with [observe.Hub.Add].
func New(options Options) *Recorder {
	options.Bytes = cmp.Or(options.Bytes, defaultBytes)
	return &Recorder{
		options:     options,
		unused:      sync.Pool{New: func() any { return &runState{} }},
		active:      map[*runState]bool{},
		objects:     map[objectKey]*object{},
		controllers: map[string]*controller{},
		journals:    map[objectKey]*journal{},
	}
}

var _ observe.Listener = (*Recorder)(nil)

// Observe implements [observe.Listener].
func (r *Recorder) Observe(ctx context.Context, event observe.Event) context.Context {
	switch e := event.(type) {
	case *observe.ReconcileStarted:
		started := r.unused.Get().(*runState)
		j := r.journalOf(e.Run)
		if j != nil {
			j.start(e.Run, r.options.Mask)
		}
		started.start(e.Run, j)
		e.Run.Attach(r, started)
		r.activeMu.Lock()
		r.active[started] = true
		r.activeMu.Unlock()
	case *observe.StepStarted:
		r.record(e.Run, func(rec *runState) { rec.stepStarted(e) })
	case *observe.StepFinished:
		r.record(e.Run, func(rec *runState) { rec.stepFinished(e) })
	case *observe.Call:
		r.record(e.Run, func(rec *runState) { rec.call(e, r.options.Mask) })
	case *observe.LoopFound:
		r.record(e.Run, func(rec *runState) {
			rec.loop = &Loop{Reconciles: e.Reconciles, Within: e.Within, Repeats: e.Repeats}
		})
	case *observe.ProblemFound:
		r.problem(e)
	case *observe.StaleWait:
		r.record(e.Run, func(rec *runState) { rec.waited = true })
	case *observe.Deferred:
		switch e.Reason {
		case observe.DeferStaleTimeout:
			r.cacheTimeout(e.Run)
		case observe.DeferLease:
			r.record(e.Run, func(rec *runState) { rec.withoutLease = true })
		}
	case *observe.StuckFound: // the state follows from the time
		r.version.Add(1)
	case *observe.CacheWait:
		r.cacheWaits(e)
		r.version.Add(1)
	case *observe.ClusterChanged:
		r.clusterChanged(e)
	case *observe.ReconcileFinished:
		r.finished(e)
	}
	return ctx
}

// record calls f for the state of a run, unless the run has finished or started before the recorder was added.
func (r *Recorder) record(run *observe.Run, f func(*runState)) {
	if run == nil {
		return
	}
	rec, _ := run.Attached(r).(*runState)
	if rec == nil {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.run == run {
		f(rec)
	}
}

func (r *Recorder) finished(e *observe.ReconcileFinished) {
	rec, _ := e.Run.Attached(r).(*runState)
	if rec == nil {
		return
	}
	r.activeMu.Lock()
	delete(r.active, rec)
	r.activeMu.Unlock()
	rec.mu.Lock()
	rec.run = nil
	rec.duration = e.Duration
	rec.next = nextOf(e)
	rec.refuse(e.Refused)
	rec.mu.Unlock()

	outcome := outcomeOf(e, rec.writes)
	if rec.journal != nil {
		r.finishJournal(rec.journal, e, rec, outcome)
	}
	switch {
	case (rec.waited || rec.withoutLease) && outcome == NoOp:
		rec.takeCauses(e.Run, r.options.Mask, r.mayCompare(e.Run))
		r.keepWait(rec)
	case outcome != NoOp || rec.loop != nil:
		rec.takeCauses(e.Run, r.options.Mask, true)
		run := rec.result(outcome)
		failures := e.Failures
		switch {
		case e.Panicked && e.Panic != "":
			run.Error = limited("panic: " + e.Panic)
		case e.Err != nil:
			run.Error = textOf(e.Err)
		case outcome == Failed:
			failures = e.Refused
			run.Error = textOf(failures[0].Err)
		}
		for _, failure := range failures {
			run.Failures = append(run.Failures, failureOf(failure))
		}
		r.keep(rec, run)
	default:
		rec.takeCauses(e.Run, r.options.Mask, r.mayCompare(e.Run))
		r.keepNoOp(rec)
	}
	r.unused.Put(rec)
	r.version.Add(1)
}

func outcomeOf(e *observe.ReconcileFinished, writes int) Outcome {
	switch {
	case e.Panicked:
		return Panicked
	case e.Failed():
		return Failed
	case writes > 0:
		return Changed
	}
	return NoOp
}

func nextOf(e *observe.ReconcileFinished) *Next {
	switch {
	case e.Panicked || e.Err != nil && !errors.Is(e.Err, reconcile.TerminalError(nil)):
		return &Next{Retry: true}
	case e.Err != nil:
		return nil
	case e.Result.RequeueAfter > 0:
		return &Next{At: e.Run.Started.Add(e.Duration + e.Result.RequeueAfter)}
	case e.Result.Requeue: //nolint:staticcheck // reconcilers still return it
		return &Next{Retry: true}
	}
	return nil
}

// mayCompare reports whether the changes of the causes are computed though the run changed nothing. That costs more
// than such a run, so it is limited.
func (r *Recorder) mayCompare(run *observe.Run) bool {
	for i := range run.Causes {
		if run.Causes[i].Verb == observe.Updated {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.compare.take(run.Started.Unix())
		}
	}
	return false
}

// budget limits comparisons per second.
type budget struct {
	second int64
	used   int
}

func (b *budget) take(second int64) bool {
	const perSecond = 100
	if second != b.second {
		*b = budget{second: second}
	}
	b.used++
	return b.used <= perSecond
}

// Version returns a number that increases with each reconcile. It is cheap.
func (r *Recorder) Version() uint64 { return r.version.Load() }
