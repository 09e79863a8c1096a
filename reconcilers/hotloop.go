// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/empty"
	"trueup.dev/internal/guard"
	"trueup.dev/internal/hotloop"
	"trueup.dev/internal/step"
	"trueup.dev/observe"
)

var (
	hotLoops = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_hot_loops_total",
		Help: "Number of detected hot loops, by cause. self: the controller reconciled a resource repeatedly because of " +
			"its own previous reconcile. writer: the controller and another field manager change a field back and forth. " +
			"refused: the API server repeatedly stores another value than the controller sends.",
	}, []string{"controller", "cause"})

	hotLoopWaits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_hot_loop_waits_total",
		Help: "Number of requests that were delayed because the resource is in a hot loop.",
	}, []string{"controller"})
)

// Causes of hot loops.
const (
	causeSelf    = "self"
	causeWriter  = "writer"
	causeRefused = "refused"
)

func init() {
	metrics.Registry.MustRegister(hotLoops, hotLoopWaits)
}

// enterLoop returns what hot loops mean for a request: its delay, and whether it is inspected.
func (r root) enterLoop(ctx context.Context, requests *requests, req Request) hotloop.Entry {
	if requests.loops.Idle() {
		return hotloop.Entry{}
	}
	entry := requests.loops.Enter(req, func(look hotloop.Look) bool {
		return r.changedByOthers(ctx, req, requests.step.of(r).resource(req), look)
	})
	if entry.Wait > 0 {
		hotLoopWaits.WithLabelValues(r.name).Inc()
		requests.looping.delayed(r.config, req)
	}
	return entry
}

// changedByOthers reports whether another client has changed the resource or an object that its last reconciles read.
// Objects that the reconciles wrote do not count: two clients that revert each other's changes are also a hot loop.
func (r root) changedByOthers(ctx context.Context, req Request, resource guard.Object, look hotloop.Look) bool {
	current := empty.Like(r.resourceType)
	err := r.config.Get(ctx, req.NamespacedName, current)
	if client.IgnoreNotFound(err) != nil {
		return true // the request returns the error
	}
	if exists := err == nil; exists != look.Existed && !look.Ours(resource) {
		return true
	}
	return !look.AnyGeneration && current.GetGeneration() > look.Generation || look.Versions.Changed(ctx, look.Ours)
}

// leaveLoop detects a hot loop after a request of a controller and reports it. A failed request is not part of a hot
// loop, because failures have their own back-off.
func (r *request) leaveLoop(ctx context.Context, root root, result Result, err error) {
	if !r.findsLoops {
		return
	}
	r.compareWrites(ctx, root)
	if err != nil {
		return
	}
	loop := r.requests.loops.Leave(r.scope.request, r.reconciled(root, result))
	if loop == nil {
		return
	}
	hotLoops.WithLabelValues(root.name, causeSelf).Inc()
	repeats := r.repetitions()
	if path, after := r.requeues.shortest(); after > 0 {
		repeats = append(repeats, fmt.Sprintf("%s returns RequeueAfter %s", path, after))
	}
	observe.ReportLoop(ctx, observe.LoopFound{Reconciles: loop.Reconciles, Within: loop.Within, Repeats: repeats})
	within := loop.Within.Round(time.Millisecond).String()
	logr.FromContextOrDiscard(ctx).Info("hot loop: each reconcile triggers the next one, further reconciles are delayed",
		"reconciles", loop.Reconciles, "within", within, "repeats", repeats)
	r.announceLoop(root, reasonHotLoop, fmt.Sprintf("Reconciled %d times in %s, each reconcile triggered the next one; "+
		"further reconciles are delayed. %s", loop.Reconciles, within, strings.Join(repeats, "; ")))
}

// announceLoop records an event about a hot loop on the resource, and its condition if the user asks for one.
func (r *request) announceLoop(root root, reason, text string) {
	text = truncate(text)
	r.requests.looping.set(root.config, r.scope.request, reason, text)
	if r.resource != nil {
		root.config.recorder().Event(r.resource, corev1.EventTypeWarning, reason, text)
	}
}

// reconciled describes the request for the detection of hot loops.
func (r *request) reconciled(root root, result Result) hotloop.Reconcile {
	return hotloop.Reconcile{
		Started: r.started, Generation: r.generation, RequeueAfter: result.RequeueAfter, Journal: &r.journal,
		Resource: r.requests.step.of(root).resource(r.scope.request), Exists: r.resource != nil,
	}
}

// maxRepetitions limits the length of a log line.
const maxRepetitions = 8

// repetitions describes the writes of a request: the step, the object and the changed fields. It contains no values,
// because values may be secret.
func (r *request) repetitions() []string {
	repeats := []string{}
	for _, change := range r.journal.Changes() {
		text := fmt.Sprintf("%s %s %s %s", change.Step, change.Verb, change.Kind.Kind, change.Key)
		if change.Before != nil && change.After != nil {
			found := difference.Between(comparable(change.Before), comparable(change.After))
			changed := difference.Paths(found)
			for i := range min(len(found), difference.MaxPaths) {
				changed[i] += r.nature(change.Object, found[i])
			}
			if len(changed) == 0 {
				changed = []string{"no field"}
			}
			text += ": " + strings.Join(changed, ", ")
		}
		if !slices.Contains(repeats, text) && len(repeats) < maxRepetitions {
			repeats = append(repeats, text)
		}
	}
	return repeats
}

// minRenewed is the number of writes from which a value that is always new is called so. A counter that ends is usually
// shorter.
const minRenewed = 20

// nature describes values that are different in each write, in parentheses.
func (r *request) nature(object guard.Object, d difference.Difference) string {
	renewed := r.requests.loops.Renewed(r.scope.request, object, d.Field())
	switch {
	case renewed < minRenewed:
		return ""
	case isNow(d.After, r.started):
		return fmt.Sprintf(" (the current time in each of the last %d writes)", renewed)
	}
	return fmt.Sprintf(" (a new value in each of the last %d writes)", renewed)
}

// isNow reports whether a value is a time close to now, as text, as a time of apimachinery, or as a Unix time.
func isNow(value any, now time.Time) bool {
	var is time.Time
	switch value := value.(type) {
	case metav1.Time:
		is = value.Time
	case metav1.MicroTime:
		is = value.Time
	case string:
		if number, err := strconv.ParseInt(value, 10, 64); err == nil {
			is = unixTime(number)
		} else if is, err = time.Parse(time.RFC3339, value); err != nil {
			return false
		}
	case int64:
		is = unixTime(value)
	}
	return is.Sub(now).Abs() < time.Minute
}

// unixTime returns the time of a Unix time in seconds, milliseconds, microseconds or nanoseconds.
func unixTime(number int64) time.Time {
	switch {
	case number < 1e11:
		return time.Unix(number, 0)
	case number < 1e14:
		return time.UnixMilli(number)
	case number < 1e17:
		return time.UnixMicro(number)
	}
	return time.Unix(0, number)
}

// comparable clears the fields that every write changes.
func comparable(obj client.Object) client.Object {
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

// requeues is an observer that records the step with the shortest requeue.
type requeues struct {
	mu    sync.Mutex
	path  string
	after time.Duration
}

var _ step.Observer = (*requeues)(nil)

func (r *requeues) StepStarted(ctx context.Context, _ step.Started) context.Context { return ctx }

func (r *requeues) StepFinished(_ context.Context, finished step.Finished) {
	after := finished.Result.RequeueAfter
	if after <= 0 || after >= hotloop.Short {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Enclosing steps return the same result. Keep the innermost step, which finishes first.
	if r.after == 0 || after < r.after {
		r.path, r.after = strings.Join(finished.Path, "."), after
	}
}

func (r *requeues) shortest() (path string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.path, r.after
}
