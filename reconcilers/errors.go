// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/conditions"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	rtime "trueup.dev/time"
)

// Errors with a special meaning for the reconcilers in this package. Match and combine them with [errors.Is],
// [errors.Join] and %w.
var (
	// ErrQuiet marks an error that is neither logged nor recorded as an event. The request is retried with back-off.
	ErrQuiet = errors.New("quiet errors are returned as errors, but not logged or recorded")

	// ErrHaltSubReconcilers stops the reconcilers that follow and is not a failure: the status is written as usual. The
	// request is retried with back-off, with two exceptions: the result has a RequeueAfter, or the step waits for a
	// missing object. A step waits for an object that it tracks with [Config.TrackAndGet] if the controller watches the
	// kind with [EnqueueTracked].
	ErrHaltSubReconcilers = fmt.Errorf("stop processing SubReconcilers, without returning an error: %w", ErrQuiet)

	// ErrRetryAfter marks a handled failure. It stops the reconcilers that follow. The request is retried after the
	// RequeueAfter of the returned result, without back-off. Without a RequeueAfter, the request is not retried until
	// an event occurs. The error is quiet.
	ErrRetryAfter = fmt.Errorf("retry after the RequeueAfter of the result: %w", ErrQuiet)

	// ErrSkipStatusUpdate prevents the [ResourceReconciler] from writing the status in this request. Alone it is
	// reported like any other error. Join it with ErrQuiet or with the cause.
	ErrSkipStatusUpdate = errors.New("skip ResourceReconciler status update for this request")

	// ErrDurable marks an error that persists until the state changes. It is quiet and halts. The request is not
	// retried if the step has tracked objects and the controller watches their kinds with [EnqueueTracked]. Otherwise
	// the request is retried with back-off, because no event announces the change.
	ErrDurable = errors.Join(ErrQuiet, ErrHaltSubReconcilers)

	// OnlyReconcileChildStatus is returned by DesiredChild or DesiredChildren to leave the children unchanged and only
	// reflect their status on the parent.
	//
	//nolint:staticcheck // the name is part of the API that users move here with
	OnlyReconcileChildStatus = errors.New("leave children as they are and only reflect their status on the parent")

	// PatchGenerationMismatch is returned by [Patch.Apply] if the generation of the target differs from the generation
	// of the patch.
	//
	//nolint:staticcheck // the name is part of the API that users move here with
	PatchGenerationMismatch = errors.New("patch generation did not match target")
)

// causeOf returns the text of an error for a condition, without the texts of errors that only have a meaning for the
// reconcilers in this package, and without times. It is "" if nothing else is known.
func causeOf(err error) string {
	switch err := err.(type) { //nolint:errorlint // joined errors are taken apart
	case nil:
		return ""
	case *deferredStep:
		return err.why
	case *removalPending:
		return "" // the steps have said what they wait for
	case interface{ Unwrap() []error }:
		texts, causes := []string{}, []string{}
		for _, part := range err.Unwrap() {
			texts = append(texts, part.Error())
			if cause := causeOf(part); cause != "" {
				causes = append(causes, cause)
			}
		}
		if strings.Join(texts, "\n") == err.(error).Error() {
			return truncate(strings.Join(causes, "; "))
		}
	}
	text := err.Error()
	for _, meaning := range []error{ErrDurable, ErrHaltSubReconcilers, ErrRetryAfter, ErrQuiet, ErrSkipStatusUpdate} {
		text = strings.TrimSuffix(strings.TrimSuffix(text, meaning.Error()), ": ")
		text = strings.TrimPrefix(text, meaning.Error()+": ")
	}
	return truncate(text)
}

func isQuiet(err error) bool {
	return errors.Is(err, ErrQuiet)
}

// isSilent reports whether an error is neither logged nor recorded: it is quiet, or the controller was stopped during
// the request.
func isSilent(ctx context.Context, err error) bool {
	return isQuiet(err) || isShutdown(ctx)
}

// joinErrors joins independent errors. A joined quiet error makes the whole error quiet, because users mark errors in
// this way. joinErrors therefore leaves out quiet errors if other errors exist.
func joinErrors(errs ...error) error {
	var loud, quiet []error
	for _, err := range errs {
		switch {
		case err == nil:
		case isQuiet(err):
			quiet = append(quiet, err)
		default:
			loud = append(loud, err)
		}
	}
	if len(loud) == 0 {
		loud = quiet
	}
	if len(loud) == 1 {
		return loud[0]
	}
	return errors.Join(loud...)
}

// reconcileFailed is the reason of the event about a failed request.
const reconcileFailed = "ReconcileFailed"

// locatedError is an error of a request. Its text starts with the origin: the step and the object. It is returned only
// to the controller, which logs it.
type locatedError struct {
	text string
	err  error
}

func (e *locatedError) Error() string { return e.text }
func (e *locatedError) Unwrap() error { return e.err }

// report returns the error of a request for the controller, which logs it. The text contains the path of the step and
// the object. report records an event on the reconciled resource unless an event for the error exists. It does not
// change the errors of requests that a test makes.
func (r *request) report(ctx context.Context, config Config, err error) error {
	if err == nil || !r.byController || isSilent(ctx, err) {
		return err
	}
	failures := r.trace.Failures(err)
	observe.ReportFailures(ctx, failures)
	if text := eventText(failures, err); text != "" && r.resource != nil {
		config.recorder().Eventf(r.resource, corev1.EventTypeWarning, reconcileFailed, "%s", text)
	}
	return &locatedError{text: locate(failures, err), err: err}
}

// eventText returns the text of an event about the failures that have no event yet, or "" if all have one. A conflict
// needs no event: another client wrote first, and the request is retried.
func eventText(failures []step.Failure, err error) string {
	silent := func(f step.Failure) bool { return f.Recorded || apierrs.IsConflict(f.Err) }
	loud := slices.DeleteFunc(slices.Clone(failures), silent)
	switch len(loud) {
	case 0:
		return ""
	case len(failures):
		return truncate(locate(failures, err))
	}
	texts := make([]string, len(loud))
	for i, f := range loud {
		texts[i] = f.Origin() + ": " + f.Err.Error()
	}
	return truncate(strings.Join(texts, "; "))
}

// locate returns the text of an error with the origins of its failures.
func locate(failures []step.Failure, err error) string {
	origins, located, plain := []string{}, []string{}, []string{}
	for _, f := range failures {
		from, text := f.Origin(), f.Err.Error()
		origins, located, plain = append(origins, from), append(located, from+": "+text), append(plain, text)
	}
	if len(failures) > 1 && strings.Join(plain, "\n") == err.Error() { // this is the text of errors.Join
		return strings.Join(located, "; ")
	}
	return strings.Join(origins, ", ") + ": " + err.Error()
}

// originOf returns the origins of an error as a key and a value for a log line.
func originOf(trace *step.Trace, err error) []any {
	origins := []string{}
	for _, f := range trace.Failures(err) {
		origins = append(origins, f.Origin())
	}
	return []any{"step", strings.Join(origins, ", ")}
}

// maxEventText is the maximum length of an event text that the API server accepts.
const maxEventText = 1024

func truncate(text string) string { return conditions.Cut(text, maxEventText) }

var _ subReconciler = (*SuppressTransientErrors[client.Object, client.ObjectList])(nil)

// SuppressTransientErrors suppresses the first consecutive errors of a resource. Suppressed errors are retried with
// back-off, but the controller does not log or count them, and the status is not written. Messages that the failed
// reconciler logs itself are kept. From the Threshold-th consecutive error on, errors are returned. An [ErrDurable] is
// returned immediately. A halt is not an error.
//
// Errors are counted per resource, and per item of a [ForEach]. A success, a halt, an [ErrDurable] or a new generation
// of the resource resets the count. Once a day, the reconciler lists all resources and drops the counts of resources
// that no longer exist.
//
// RBAC, with the group and the plural of the kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch
type SuppressTransientErrors[Type client.Object, ListType client.ObjectList] struct {
	// Name identifies this reconciler in logs. Defaults to `SuppressTransientErrors`.
	Name string

	// ListType is the list kind of the resource. Defaults to the type parameter; required for unstructured objects and
	// duck types.
	ListType ListType

	// Setup registers watches and indexes. It is called after Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Threshold is the number of consecutive errors from which errors are returned. Defaults to 3.
	Threshold uint8

	// Reconciler runs as usual. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once

	mu        sync.Mutex
	counters  map[counted]errorCounter
	lastPurge time.Time
}

// counted is a resource or, in a loop, an item of it.
type counted struct {
	uid  types.UID
	item string
}

// errorCounter counts consecutive errors of one generation of a resource.
type errorCounter struct {
	generation int64
	count      uint8
}

const (
	defaultErrorThreshold = 3
	purgeInterval         = 24 * time.Hour
)

func (r *SuppressTransientErrors[T, LT]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "SuppressTransientErrors"
		}
		if nilcheck.IsNilPointer(r.ListType) {
			r.ListType = newEmpty[LT]()
		}
		if r.Threshold == 0 {
			r.Threshold = defaultErrorThreshold
		}
		r.counters = map[counted]errorCounter{}
	})
}

// SetupWithManager validates the reconciler, sets up Reconciler and calls Setup.
func (r *SuppressTransientErrors[T, LT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required field. If ctx requests recursion, it also validates Reconciler.
func (r *SuppressTransientErrors[T, LT]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *SuppressTransientErrors[T, LT]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *SuppressTransientErrors[T, LT]) describe(d *description) {
	r.init()
	d.is("SuppressTransientErrors", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.check(func(ctx context.Context, problems *problems) {
		problems.kind(d.label, "ListType", r.ListType)
		_, metadata := any(r.ListType).(*metav1.PartialObjectMetadataList)
		if !metadata && !nilcheck.IsNilPointer(newEmpty[T]()) {
			problems.listOf(d.label, "ListType", r.ListType, newEmpty[T]())
		}
		problems.requests(ctx, d.label, false)
	})
	d.accesses((*graph.Node).ReadsResource)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
	d.setsUp(r.Setup)
}

// Reconcile runs Reconciler and suppresses transient errors.
func (r *SuppressTransientErrors[T, LT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *SuppressTransientErrors[T, LT]) reconcile(ctx context.Context, resource T) (Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if r.suppresses(ctx, resource, err) {
		err = errors.Join(err, ErrSkipStatusUpdate, ErrQuiet)
	}
	r.purge(ctx)
	return result, err
}

// suppresses counts the error and reports whether to suppress it.
func (r *SuppressTransientErrors[T, LT]) suppresses(ctx context.Context, resource T, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	key := counted{uid: resource.GetUID(), item: itemOf(ctx)}
	if err == nil || errors.Is(err, ErrHaltSubReconcilers) {
		delete(r.counters, key)
		return false
	}
	counter := r.counters[key]
	if counter.generation != resource.GetGeneration() {
		counter = errorCounter{generation: resource.GetGeneration()}
	}
	if counter.count < math.MaxUint8 {
		counter.count++
	}
	r.counters[key] = counter
	return counter.count < r.Threshold
}

// purge drops the counters of resources that no longer exist, once a day. One worker does this. The other workers do
// not wait.
func (r *SuppressTransientErrors[T, LT]) purge(ctx context.Context) {
	if !r.purgeIsDue(rtime.RetrieveNow(ctx)) {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("purging stale resource counters")
	config, err := RetrieveConfig(ctx)
	if err != nil {
		log.Error(err, "purge failed to list resources")
		return
	}
	list := empty.Like(r.ListType)
	if err := config.List(ctx, list); err != nil {
		log.Error(err, "purge failed to list resources")
		return
	}
	present := sets.New[types.UID]()
	if err := meta.EachListItem(list, func(item runtime.Object) error {
		present.Insert(item.(client.Object).GetUID())
		return nil
	}); err != nil {
		log.Error(err, "purge failed to list resources")
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.counters {
		if !present.Has(key.uid) {
			delete(r.counters, key)
		}
	}
}

func (r *SuppressTransientErrors[T, LT]) purgeIsDue(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastPurge.IsZero() {
		r.lastPurge = now
		return false
	}
	if now.Sub(r.lastPurge) < purgeInterval {
		return false
	}
	r.lastPurge = now
	return true
}

// compareWrites detects fields that this controller and another writer change back and forth, and objects that are
// created and deleted in turns. It reports them.
func (r *request) compareWrites(ctx context.Context, root root) {
	this := r.reconciled(root, Result{})
	writes := hotloop.ObjectWrites(&r.journal)
	for _, w := range writes {
		this.Changes = append(this.Changes, w.Hashed())
	}
	conflicts, remade := r.requests.loops.Compare(r.scope.request, this)
	for _, conflict := range conflicts {
		r.reportConflict(ctx, root, conflict, &writes[conflict.Write])
	}
	for _, object := range remade {
		r.reportRemade(ctx, root, object)
	}
}

// reportRemade logs and counts an object that is created and deleted in turns, and records an event.
func (r *request) reportRemade(ctx context.Context, root root, object hotloop.Remade) {
	cause, text := observe.LoopSelf, object.Describe()
	if object.CreatedBy == "" || object.DeletedBy == "" {
		cause = observe.LoopWriter
	}
	root.reportLoop(ctx, observe.LoopFound{
		Cause: cause, Reconciles: object.Times, Within: object.Within, Repeats: []string{text},
	})
	logr.FromContextOrDiscard(ctx).Info("hot loop: an object is created and deleted in turns, reconciles are delayed",
		"object", object.Object(), "times", object.Times, "within", object.Within.Round(time.Second).String(),
		"repeats", text)
	r.announceLoop(root, reasonHotLoop, text+"; further reconciles are delayed")
}

// reportConflict logs and counts a conflict, and records an event.
func (r *request) reportConflict(
	ctx context.Context, root root, conflict hotloop.Conflict, w *hotloop.ObjectWrite,
) {
	cause, text := observe.LoopWriter, w.Describe(conflict)
	if conflict.Refused {
		cause = observe.LoopRefused
	}
	root.reportLoop(ctx, observe.LoopFound{
		Cause: cause, Reconciles: conflict.Times, Within: conflict.Within, Repeats: []string{text},
	})
	logr.FromContextOrDiscard(ctx).Info("hot loop: two writers change a field back and forth, reconciles are delayed",
		"object", fmt.Sprintf("%s %s", w.Kind.Kind, w.Key), "field", w.Field(conflict), "times", conflict.Times,
		"within", conflict.Within.Round(time.Second).String(), "conflict", text)
	r.announceLoop(root, reasonFieldConflict, text+"; further reconciles are delayed")
}

const (
	// firstReflectedRetry and lastReflectedRetry are the minimum and maximum delay before the retry of a reflected
	// error. Quotas and permissions change rarely, and each attempt costs a write.
	firstReflectedRetry = 10 * time.Second
	lastReflectedRetry  = 5 * time.Minute
)

// ReasonFieldConflict is the reason of a [FieldConflictError] among [ChildReconciler].ReflectedChildErrorReasons.
const ReasonFieldConflict metav1.StatusReason = "FieldConflict"

// defaultReflectedReasons are the reasons of errors that concern the child and not the state of the cluster.
var defaultReflectedReasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
	metav1.StatusReasonRequestEntityTooLarge, ReasonFieldConflict, ReasonFieldsKept,
}

// reasonOf returns the reason of an error of the API server. An object above the limit of etcd, which is below the
// limit of the API server, is an internal error there.
func reasonOf(err error) metav1.StatusReason {
	reason := apierrs.ReasonForError(err)
	if isTooLarge(err) {
		return metav1.StatusReasonRequestEntityTooLarge
	}
	return reason
}

// isTooLarge reports whether the API server, its database, or the connection between them refuses an object because of
// its size.
func isTooLarge(err error) bool {
	return apierrs.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max")
}

// reflectedErrorsOf decides which errors of children are reflected on the status of their parents.
type reflectedErrorsOf struct {
	// reasons are the reasons of errors that are reflected at once.
	reasons []metav1.StatusReason
	// attempts is the number of failed attempts in a row after which any error is reflected. 0 means never.
	attempts int
	// failed has the number of failed attempts by the id of the child.
	failed perItem[map[string]int]
}

// persists counts a failed attempt, and reports whether the error is reflected because there were enough. The error is
// then retried like other reflected errors. A conflict only says that the caches are not up to date, and is retried at
// once.
func (r *reflectedErrorsOf) persists(ctx context.Context, parent client.Object, id string, err error) bool {
	if r.attempts <= 0 || isQuiet(err) || ctx.Err() != nil || apierrs.IsConflict(err) {
		return false
	}
	before, _ := r.failed.get(ctx, parent)
	after := maps.Clone(before)
	if after == nil {
		after = map[string]int{}
	}
	after[id]++
	now := time.Now()
	r.failed.put(ctx, parent, after, now, now.Add(stateTTL))
	if after[id] < r.attempts {
		return false
	}
	noteReflected(ctx, cmp.Or(reasonOf(err), "Unknown"), false)
	return true
}

// succeeded forgets the failed attempts of a child.
func (r *reflectedErrorsOf) succeeded(ctx context.Context, parent client.Object, id string) {
	if r.attempts <= 0 {
		return
	}
	before, _ := r.failed.get(ctx, parent)
	if _, failed := before[id]; !failed {
		return
	}
	after := maps.Clone(before)
	delete(after, id)
	now := time.Now()
	r.failed.put(ctx, parent, after, now, now.Add(stateTTL))
}

// reflected records that a request has reflected errors of children. It is safe for concurrent use.
type reflected struct {
	// retry reports whether at least one error must be retried, because no event announces a change.
	retry atomic.Bool
	// failed reports whether at least one error was reflected.
	failed atomic.Bool
}

// noteReflected records an error for the request of a context, if there is one. watched reports whether an event
// announces a change.
func noteReflected(ctx context.Context, reason metav1.StatusReason, watched bool) {
	r := requestFrom(ctx)
	if r == nil {
		return
	}
	event := &observe.ErrorReflected{Reconciler: r.scope.controller, Reason: string(reason)}
	r.scope.originalConfig.Hub().Report(r.Context, event) // it belongs to the run of the request
	r.reflected.failed.Store(true)
	if !watched {
		r.reflected.retry.Store(true)
	}
}

// reflectedRetries schedules the retries of resources with reflected errors. The zero value is ready to use. It is safe
// for concurrent use.
type reflectedRetries struct {
	mu       sync.Mutex
	byObject map[Request]reflectedRetry
}

type reflectedRetry struct {
	delay time.Duration
	due   time.Time
}

// next returns the delay until the resource must be reconciled again, or 0 if no retry is needed. The delay doubles
// with each retry that was due. Earlier reconciles, caused by events, do not postpone the retry.
func (r *reflectedRetries) next(req Request, failing bool, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	retry, known := r.byObject[req]
	if !failing {
		if known {
			delete(r.byObject, req)
		}
		return 0
	}
	if !known {
		retry.delay = firstReflectedRetry / 2
	}
	if !now.Before(retry.due) {
		retry.delay = min(2*retry.delay, lastReflectedRetry)
		retry.due = now.Add(retry.delay)
	}
	if r.byObject == nil {
		r.byObject = map[Request]reflectedRetry{}
	}
	r.byObject[req] = retry
	return retry.due.Sub(now)
}

// retryReflected returns the result of a request that did not fail. In a controller it adds the retry of reflected
// errors.
func (r *request) retryReflected(result Result) Result {
	if !r.byController {
		return result
	}
	after := r.requests.retries.next(r.scope.request, r.reflected.retry.Load(), time.Now())
	return AggregateResults(result, Result{RequeueAfter: after})
}
