// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
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
