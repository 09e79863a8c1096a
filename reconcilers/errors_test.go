// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
)

// failingManager is a custom object manager that records no events.
type failingManager struct{ err error }

func (failingManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (m failingManager) Manage(
	context.Context, client.Object, *corev1.ConfigMap, *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	return nil, m.err
}

func failingSync(err error) *syncReconciler {
	return &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return err }}
}

// errNoKey is an error type that cannot be compared with ==.
type errNoKey []string

func (e errNoKey) Error() string { return "no key " + strings.Join(e, ", ") }

func TestResourceReconciler_ErrorsNameStepAndChild(t *testing.T) {
	errOther := errors.New("another failure")
	conflict := apierrs.NewConflict(schema.GroupResource{Resource: "configmaps"}, "child", errTest)
	unauthorized := apierrs.NewUnauthorized("no")
	child := func(edit func(r *childReconciler)) *childReconciler {
		r := newChild(func(*fixture.Resource, string) {})
		edit(r)
		return r
	}
	elsewhere := wanted("child")
	elsewhere.Namespace = "other"
	// keep is a step before and after the failing step.
	keep := failingSync(nil)

	for name, tc := range map[string]struct {
		reconciler subReconciler
		given      *fixture.Resource
		fail       string
		failWith   error
		is         error
		want       string
		events     []string // "" means ReconcileFailed with the text of the error
	}{
		"DesiredChild": {
			reconciler: sequence{keep, child(func(r *childReconciler) { r.DesiredChild = desire(nil, errTest) })},
			is:         errTest, want: "ResourceResourceReconciler.1.ConfigMapChildReconciler: ConfigMap: failure of the test",
			events: []string{""},
		},
		"owner reference": {
			reconciler: child(func(r *childReconciler) {
				r.DesiredChild = desire(elsewhere, nil)
			}),
			want: "ResourceResourceReconciler.ConfigMapChildReconciler: ConfigMap other/child: " +
				"cross-namespace owner references are disallowed, owner's namespace default, obj's namespace other" +
				": manage the child without one, with a Finalizer, ListOptions and OurChild",
			events: []string{""},
		},
		"object manager": {
			reconciler: child(func(*childReconciler) {}), fail: "create ConfigMap", failWith: unauthorized,
			is: unauthorized, want: "ResourceResourceReconciler.ConfigMapChildReconciler: ConfigMap default/child: no",
			events: []string{`Warning CreationFailed: Failed to create ConfigMap "child": no`},
		},
		"custom object manager": {
			reconciler: child(func(r *childReconciler) { r.ChildObjectManager = failingManager{errTest} }),
			is:         errTest,
			want:       "ResourceResourceReconciler.ConfigMapChildReconciler: ConfigMap default/child: failure of the test",
			events:     []string{""},
		},
		"child of a set": {
			reconciler: &childSetReconciler{
				DesiredChildren:    desireAll(nil, member("a"), member("b")),
				IdentifyChild:      func(child *corev1.ConfigMap) string { return child.Labels["id"] },
				ChildObjectManager: failingManager{errTest},
				ReflectChildrenStatusOnParent: func(
					context.Context, *fixture.Resource, reconcilers.ChildSetResult[*corev1.ConfigMap],
				) {
				},
			},
			is: errTest,
			want: "ResourceResourceReconciler.ConfigMapChildSetReconciler.Children.a: ConfigMap default/child-a: failure of " +
				"the test; ResourceResourceReconciler.ConfigMapChildSetReconciler.Children.b: ConfigMap default/child-b: " +
				"failure of the test",
			events: []string{""},
		},
		"DesiredChildren": {
			reconciler: &childSetReconciler{
				DesiredChildren:    desireAll(errTest),
				IdentifyChild:      func(child *corev1.ConfigMap) string { return child.Labels["id"] },
				ChildObjectManager: failingManager{},
				ReflectChildrenStatusOnParent: func(
					context.Context, *fixture.Resource, reconcilers.ChildSetResult[*corev1.ConfigMap],
				) {
				},
			},
			is: errTest, want: "ResourceResourceReconciler.ConfigMapChildSetReconciler.Children: ConfigMap: failure of the test",
			events: []string{""},
		},
		"list of children": {
			reconciler: child(func(*childReconciler) {}), fail: "list ConfigMap", failWith: errTest,
			is: errTest, want: "ResourceResourceReconciler.ConfigMapChildReconciler: ConfigMap: failure of the test",
			events: []string{""},
		},
		"Sync": {
			reconciler: sequence{keep, keep, failingSync(errTest)},
			is:         errTest, want: "ResourceResourceReconciler.2.SyncReconciler: failure of the test", events: []string{""},
		},
		"Finalize": {
			given: newResource(settled, terminating, finalizer("test-finalizer")),
			reconciler: &withFinalizer{
				Finalizer: "test-finalizer",
				Reconciler: &syncReconciler{
					Name: "Backup", Finalize: func(context.Context, *fixture.Resource) error { return errTest },
				},
			},
			is: errTest, want: "ResourceResourceReconciler.WithFinalizer.Backup: failure of the test", events: []string{""},
		},
		"patch of a finalizer": {
			reconciler: &withFinalizer{Finalizer: "test-finalizer", Reconciler: keep},
			fail:       "patch Resource", failWith: errTest,
			is: errTest, want: "ResourceResourceReconciler.WithFinalizer: failure of the test",
			events: []string{`Warning FinalizerPatchFailed: Failed to patch finalizer "test-finalizer": failure of the test`},
		},
		"status": {
			reconciler: &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error {
				r.Status.Fields = map[string]string{"new": "status"}
				return nil
			}},
			fail: "update Resource/status", failWith: errTest,
			is: errTest, want: "ResourceResourceReconciler: failure of the test",
			events: []string{"Warning StatusUpdateFailed: Failed to update status: failure of the test"},
		},
		"wrapped": {
			reconciler: &advice{
				Reconciler: failingSync(errTest),
				After: func(
					_ context.Context, _ *fixture.Resource, result reconcilers.Result, err error,
				) (reconcilers.Result, error) {
					return result, fmt.Errorf("wrapped: %w", err)
				},
			},
			is: errTest, want: "ResourceResourceReconciler.Advice.SyncReconciler: wrapped: failure of the test",
			events: []string{""},
		},
		"replaced": {
			reconciler: &tryCatch{
				Try: failingSync(errTest),
				Catch: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
					return reconcilers.Result{}, errOther
				},
			},
			is: errOther, want: "ResourceResourceReconciler.TryCatch: another failure", events: []string{""},
		},
		"caught, and the same error elsewhere": {
			reconciler: sequence{
				&tryCatch{
					Try: failingSync(errTest),
					Catch: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
						return reconcilers.Result{}, nil
					},
				},
				failingSync(errTest),
			},
			is: errTest, want: "ResourceResourceReconciler.1.SyncReconciler: failure of the test", events: []string{""},
		},
		"several": {
			reconciler: always{
				failingSync(errTest), failingSync(errQuiet),
				child(func(r *childReconciler) { r.ChildObjectManager = failingManager{errOther} }),
			},
			is: errOther,
			want: "ResourceResourceReconciler.0.SyncReconciler: failure of the test; " +
				"ResourceResourceReconciler.2.ConfigMapChildReconciler: ConfigMap default/child: another failure",
			events: []string{""},
		},
		"several, the same error": {
			reconciler: always{failingSync(errTest), failingSync(errTest)},
			is:         errTest,
			want: "ResourceResourceReconciler.0.SyncReconciler: failure of the test; " +
				"ResourceResourceReconciler.1.SyncReconciler: failure of the test",
			events: []string{""},
		},
		"several, wrapped": {
			reconciler: &advice{
				Reconciler: always{failingSync(errTest), failingSync(errOther)},
				After: func(
					_ context.Context, _ *fixture.Resource, result reconcilers.Result, err error,
				) (reconcilers.Result, error) {
					return result, fmt.Errorf("wrapped: %w", err)
				},
			},
			is: errOther,
			want: "ResourceResourceReconciler.Advice.0.SyncReconciler, ResourceResourceReconciler.Advice.1.SyncReconciler: " +
				"wrapped: failure of the test\nanother failure",
			events: []string{""},
		},
		"several, one with an event": {
			reconciler: always{
				child(func(*childReconciler) {}), failingSync(errTest),
			}, fail: "create ConfigMap", failWith: unauthorized,
			is: unauthorized,
			want: "ResourceResourceReconciler.0.ConfigMapChildReconciler: ConfigMap default/child: no; " +
				"ResourceResourceReconciler.1.SyncReconciler: failure of the test",
			events: []string{
				`Warning CreationFailed: Failed to create ConfigMap "child": no`,
				"Warning ReconcileFailed: ResourceResourceReconciler.1.SyncReconciler: failure of the test",
			},
		},
		"not comparable": {
			reconciler: sequence{keep, failingSync(errNoKey{"a", "b"})},
			want:       "ResourceResourceReconciler.1.SyncReconciler: no key a, b", events: []string{""},
		},
		"a conflict": {
			reconciler: failingSync(conflict), is: conflict,
			want: "ResourceResourceReconciler.SyncReconciler: " + conflict.Error(),
		},
		"resource was not read": {
			reconciler: keep, fail: "get Resource", failWith: errTest, is: errTest,
			want: "ResourceResourceReconciler: failure of the test",
		},
		"quiet": {reconciler: failingSync(errQuiet)},
		"suppressed": {
			reconciler: &reconcilers.SuppressTransientErrors[*fixture.Resource, *fixture.ResourceList]{
				Reconciler: failingSync(errTest), Threshold: 2,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.given == nil {
				tc.given = newResource(settled)
			}
			w := newWorld(t, tc.given)
			if tc.fail != "" {
				w.Fail(tc.fail, tc.failWith)
			}
			r := &resourceReconciler{Config: w.Config, Reconciler: tc.reconciler}
			_, err := r.ReconcileManaged(context.Background(), testRequest)
			wantText(t, tc.want, err)
			if tc.is != nil {
				wantErr(t, tc.is, err)
			}
			for i, event := range tc.events {
				if event == "" {
					tc.events[i] = "Warning ReconcileFailed: " + tc.want
				}
			}
			equal(t, "events", tc.events, recordedEvents(w))
		})
	}
}

// recordedEvents returns the events about the test resource in the trace.
func recordedEvents(w *world) (recorded []string) {
	for _, line := range w.Trace() {
		if event, ok := strings.CutPrefix(line, "event default/test "); ok {
			recorded = append(recorded, event)
		}
	}
	return recorded
}

// Users' tests compare the errors and events of a reconciler that they call directly.
func TestResourceReconciler_DirectCallsReturnErrorsUnchanged(t *testing.T) {
	for name, err := range map[string]error{"comparable": errTest, "not comparable": errNoKey{"a"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			r := &resourceReconciler{Config: w.Config, Reconciler: sequence{failingSync(err)}}
			_, got := r.Reconcile(context.Background(), testRequest)
			equal(t, "error", fmt.Sprintf("%T %v", err, err), fmt.Sprintf("%T %v", got, got))
			equal(t, "events", nil, recordedEvents(w))
		})
	}
}

func TestResourceReconciler_ShutdownIsNotAFailure(t *testing.T) {
	w := newWorld(t, newResource(settled))
	ctx, cancel := context.WithCancel(context.Background())
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: func(
		ctx context.Context, _ *fixture.Resource,
	) error {
		cancel()
		return fmt.Errorf("call: %w", ctx.Err())
	}}}
	_, err := r.ReconcileManaged(ctx, testRequest)
	wantText(t, "call: context canceled", err)
	equal(t, "events", nil, recordedEvents(w))
}

func TestResourceReconciler_LongErrorsFitIntoAnEvent(t *testing.T) {
	w := newWorld(t, newResource(settled))
	long := errors.New(strings.Repeat("é", 1000))
	r := &resourceReconciler{Config: w.Config, Reconciler: failingSync(long)}
	_, err := r.ReconcileManaged(context.Background(), testRequest)
	wantErr(t, long, err)
	recorded := recordedEvents(w)
	if len(recorded) != 1 {
		t.Fatalf("events: %v", recorded)
	}
	text := strings.TrimPrefix(recorded[0], "Warning ReconcileFailed: ")
	if len(text) > 1024 || len(text) < 1020 || !strings.HasSuffix(text, "é…") {
		t.Errorf("event with a text of %d bytes: %s", len(text), text)
	}
}

func TestAggregateReconciler_ErrorsNameTheStep(t *testing.T) {
	unauthorized := apierrs.NewUnauthorized("no")
	blank := newConfigMap("test", func(cm *corev1.ConfigMap) { cm.Data = nil })
	for name, tc := range map[string]struct {
		given  []client.Object
		edit   func(r *aggregateReconciler)
		fail   string
		want   string
		events []string
	}{
		"part": {
			given: []client.Object{blank}, edit: func(r *aggregateReconciler) {
				r.Reconciler = collecting(reconcilers.Result{}, errTest)
			},
			want:   "ConfigMapAggregateReconciler.SyncReconciler: failure of the test",
			events: []string{"Warning ReconcileFailed: ConfigMapAggregateReconciler.SyncReconciler: failure of the test"},
		},
		"part of a resource that does not exist": {
			edit: func(r *aggregateReconciler) { r.Reconciler = collecting(reconcilers.Result{}, errTest) },
			want: "ConfigMapAggregateReconciler.SyncReconciler: failure of the test",
		},
		"object manager": {
			given: []client.Object{blank}, edit: func(*aggregateReconciler) {}, fail: "update ConfigMap",
			want:   "ConfigMapAggregateReconciler: ConfigMap default/test: no",
			events: []string{`Warning UpdateFailed: Failed to update ConfigMap "test": no`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...)
			if tc.fail != "" {
				w.Fail(tc.fail, unauthorized)
			}
			_, err := newAggregate(w, tc.edit).Reconcile(calledby.Controller(), testRequest)
			wantText(t, tc.want, err)
			equal(t, "events", tc.events, recordedEvents(w))
		})
	}
}

// fate returns how an error is handled.
func fate(err error) string {
	quiet, skips := errors.Is(err, reconcilers.ErrQuiet), errors.Is(err, reconcilers.ErrSkipStatusUpdate)
	switch {
	case err == nil:
		return "none"
	case quiet && skips:
		return "suppressed"
	case !quiet && !skips:
		return "returned"
	default:
		return "quiet"
	}
}

// attempt returns a case in which failNow returns err. want is the expected handling.
func attempt(err error, want string, changes ...func(*fixture.Resource)) subReconcilerCase {
	return subReconcilerCase{
		Resource: newResource(changes...), GivenStashedValues: map[reconcilers.StashKey]any{"error": err},
		ShouldErr: err != nil, ExpectedResult: requeue,
		Verify: func(t *testing.T, result reconcilers.Result, got error) {
			equal(t, "result", requeue, result)
			wantErr(t, err, got)
			equal(t, "error", want, fate(got))
			// A suppressed error still wraps its cause. Any other error is returned unchanged.
			equal(t, "identical", want != "suppressed", got == err) //nolint:errorlint // this checks identity
		},
	}
}

// failNow returns a subreconciler that returns the error of the attempt.
func failNow() *syncReconciler {
	return &syncReconciler{SyncWithResult: func(ctx context.Context, _ *fixture.Resource) (reconcilers.Result, error) {
		err, _ := reconcilers.RetrieveValue(ctx, "error").(error)
		return requeue, err
	}}
}

// inARow returns a case with several attempts by one reconciler.
func inARow(r subReconciler, attempts ...subReconcilerCase) subReconcilerCase {
	first := attempts[0]
	first.Metadata, first.AdditionalReconciles = map[string]any{"reconciler": r}, attempts[1:]
	return first
}

func TestSuppressTransientErrors(t *testing.T) {
	none, suppressed, returned := attempt(nil, "none"), attempt(errTest, "suppressed"), attempt(errTest, "returned")
	durable, halt := attempt(errors.Join(errTest, reconcilers.ErrDurable), "quiet"),
		attempt(reconcilers.ErrHaltSubReconcilers, "quiet")
	times := func(n int, tc subReconcilerCase) []subReconcilerCase {
		return slices.Repeat([]subReconcilerCase{tc}, n)
	}
	of := func(threshold uint8, attempts ...subReconcilerCase) subReconcilerCase {
		return inARow(&suppress{Threshold: threshold, Reconciler: failNow()}, attempts...)
	}
	other := func(r *fixture.Resource) { r.UID = "other" }
	changed := func(r *fixture.Resource) { r.Generation = 2 }
	subReconcilerTests{
		// Without an error, nothing is suppressed.
		"success": of(0, times(4, none)...),
		// The third error in a row and all later errors are returned. The threshold can be set, and 1 suppresses
		// nothing.
		"default":          of(0, append(times(2, suppressed), times(3, returned)...)...),
		"threshold":        of(5, append(times(4, suppressed), times(2, returned)...)...),
		"threshold of one": of(1, times(2, returned)...),
		// The count does not overflow.
		"highest": of(255, append(times(254, suppressed), times(346, returned)...)...),
		// A success resets the count.
		"success between": of(0, suppressed, suppressed, none, suppressed, suppressed, returned),
		// A durable error is returned unchanged and resets the count.
		"durable": of(0, durable, suppressed, suppressed, durable, suppressed, suppressed, returned),
		// A halt is not a failure: it resets the count, and the status is written.
		"halt": of(0, suppressed, suppressed, halt, suppressed, suppressed, returned),
		// Each resource and each generation has its own count.
		"two resources": of(0,
			suppressed, attempt(errTest, "suppressed", other), suppressed, attempt(errTest, "suppressed", other),
			returned, attempt(errTest, "returned", other),
			attempt(errTest, "suppressed", changed), attempt(errTest, "suppressed", changed),
			attempt(errTest, "returned", changed), suppressed,
		),
	}.Run(t, scheme, fromCase)
}

func TestSuppressTransientErrors_DoesNotReportSuppressedErrors(t *testing.T) {
	log, lines := newLog(0)
	failing := &suppress{Reconciler: sequence{
		setField(reconcilers.Result{}, nil), returning(reconcilers.Result{RequeueAfter: time.Minute}, nil), &advice{
			Reconciler: nothing(),
			After: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
				return reconcilers.Result{}, errTest
			},
		},
	}}
	suppressed := rtesting.ReconcilerTestCase{
		Name: "suppressed", Metadata: reconciling(failing), Request: testRequest,
		GivenObjects: objects{newResource(settled)}, StatusSubResourceTypes: hasStatus, ExpectedResult: requeue,
		Prepare: func(_ *testing.T, ctx context.Context, _ *rtesting.ReconcilerTestCase) (context.Context, error) {
			return withLog(ctx, log), nil
		},
	}
	rtesting.ReconcilerTestSuite{suppressed, suppressed}.Run(t, scheme, resourceFactory)
	equal(t, "log", "", lines.all())

	returned := suppressed
	returned.Name, returned.ShouldErr, returned.Verify = "returned", true, failsWith(errTest)
	returned.ExpectStatusUpdates, returned.ExpectEvents = objects{newResource(settled, ran)}, statusUpdated
	rtesting.ReconcilerTestSuite{returned}.Run(t, scheme, resourceFactory)
}

func TestSuppressTransientErrors_DropsCountsOfDeletedResources(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const purging = "purging stale resource counters"
	// counting counts the lists and fails them unless err is nil.
	counting := func(lists *int, err error) []rtesting.ReactionFunc {
		return []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
			if !action.Matches("list", "ResourceList") {
				return false, nil, nil
			}
			*lists++
			return err != nil, nil, err
		}}
	}
	for name, tc := range map[string]struct {
		after    time.Duration
		exists   objects
		listFail error
		want     string
		lists    int
		log      []string
	}{
		// The reconciler lists at most once a day, counted from the last purge.
		"not yet":  {24*time.Hour - time.Second, nil, nil, "returned", 0, nil},
		"days ago": {72 * time.Hour, nil, nil, "suppressed", 1, []string{purging}},
		// The count of a deleted resource is dropped, and the count of an existing resource is kept.
		"deleted": {24 * time.Hour, nil, nil, "suppressed", 1, []string{purging}},
		"exists":  {24 * time.Hour, objects{newResource()}, nil, "returned", 1, []string{purging}},
		// If the list fails, no count is dropped, and the request does not fail.
		"list fails": {24 * time.Hour, nil, errTest, "returned", 1, []string{purging, "purge failed to list resources"}},
	} {
		t.Run(name, func(t *testing.T) {
			lists := 0
			at := func(now time.Time, test subReconcilerCase, log ...string) subReconcilerCase {
				test.Now, test.WithReactors = now, counting(&lists, tc.listFail)
				return logging(test, log...)
			}
			suppressed := at(start, attempt(errTest, "suppressed"), "unable to sync")
			healthy := at(
				start.Add(tc.after), attempt(nil, "none", func(r *fixture.Resource) { r.Name, r.UID = "healthy", "healthy" }),
				tc.log...,
			)
			healthy.GivenObjects = tc.exists
			last := at(start.Add(tc.after), attempt(errTest, tc.want), "unable to sync")
			test := inARow(&suppress{Reconciler: failNow()}, suppressed, suppressed, healthy, last)
			test.Run(t, scheme, fromCase)
			equal(t, "lists", tc.lists, lists)
		})
	}
	t.Run("without a config", func(t *testing.T) {
		log, lines := newLog(0)
		r := &suppress{Reconciler: returning(reconcilers.Result{}, errTest)}
		for _, day := range []int{0, 1} {
			_, err := r.Reconcile(withLog(rtime.StashNow(context.Background(), start.AddDate(0, 0, day)), log), newResource())
			equal(t, "error", "suppressed", fate(err))
		}
		equal(
			t, "log", []string{"unable to sync", "unable to sync", purging, "purge failed to list resources"}, lines.messages(),
		)
	})
	t.Run("unstructured", func(t *testing.T) {
		kinds := &unstructured.UnstructuredList{}
		kinds.SetGroupVersionKind(fixture.GroupVersion.WithKind("ResourceList"))
		u := &unstructured.Unstructured{}
		wantErr(t, nil, scheme.Convert(newResource(), u, nil))
		lists, cases := 0, []rtesting.SubReconcilerTestCase[*unstructured.Unstructured]{}
		for day, want := range []string{"suppressed", "suppressed", "returned"} {
			cases = append(cases, rtesting.SubReconcilerTestCase[*unstructured.Unstructured]{
				Resource: u, Now: start.AddDate(0, 0, day), WithReactors: counting(&lists, nil),
				ShouldErr: true, Verify: func(t *testing.T, _ reconcilers.Result, err error) { equal(t, "error", want, fate(err)) },
			})
		}
		cases[0].AdditionalReconciles = cases[1:]
		cases[0].Run(t, scheme, func(
			*testing.T, *rtesting.SubReconcilerTestCase[*unstructured.Unstructured], reconcilers.Config,
		) reconcilers.SubReconciler[*unstructured.Unstructured] {
			return &reconcilers.SuppressTransientErrors[*unstructured.Unstructured, *unstructured.UnstructuredList]{
				ListType: kinds, Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
					Sync: func(context.Context, *unstructured.Unstructured) error { return errTest },
				},
			}
		})
		equal(t, "lists", 2, lists)
		equal(t, "items left in the list type", 0, len(kinds.Items))
	})
}

func TestSuppressTransientErrors_ManyWorkers(t *testing.T) {
	const workers, passes = 64, 20
	w := newWorld(t)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &suppress{Reconciler: &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error {
		if r.Generation%5 == 0 {
			return nil
		}
		return errTest
	}}}
	var done sync.WaitGroup
	for worker := range workers {
		done.Go(func() {
			uid := types.UID(fmt.Sprintf("resource-%d", worker))
			for pass := range passes {
				// Each pass is one day later, so each pass purges.
				ctx := rtime.StashNow(w.Context(), start.AddDate(0, 0, pass))
				resource := newResource(func(r *fixture.Resource) { r.UID, r.Generation = uid, int64(pass) })
				_, err := r.Reconcile(ctx, resource)
				if failed := err != nil; failed == (pass%5 == 0) {
					t.Errorf("worker %d, pass %d: error = %v", worker, pass, err)
				}
				if err != nil && !errors.Is(err, reconcilers.ErrQuiet) {
					t.Errorf("worker %d, pass %d: the first error of a generation is not suppressed", worker, pass)
				}
			}
		})
	}
	done.Wait()
	equal(t, "purges", true, w.Count("list Resource") >= 1)
}
