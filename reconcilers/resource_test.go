// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
	"trueup.dev/tracker"
)

type (
	resourceReconciler = reconcilers.ResourceReconciler[*fixture.Resource]
	syncReconciler     = reconcilers.SyncReconciler[*fixture.Resource]
	sequence           = reconcilers.Sequence[*fixture.Resource]
)

// returning returns a subreconciler that only returns.
func returning(result reconcilers.Result, err error) *syncReconciler {
	return &syncReconciler{
		SyncWithResult:     func(context.Context, *fixture.Resource) (reconcilers.Result, error) { return result, err },
		FinalizeWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) { return result, err },
	}
}

// setField returns a subreconciler that changes the status and then returns.
func setField(result reconcilers.Result, err error) *syncReconciler {
	change := func(_ context.Context, r *fixture.Resource) (reconcilers.Result, error) {
		ran(r)
		return result, err
	}
	return &syncReconciler{SyncWithResult: change, FinalizeWithResult: change}
}

// ran makes the change of setField.
func ran(r *fixture.Resource) { r.Status.Fields = map[string]string{"Reconciler": "ran"} }

// never returns a subreconciler that must not be called.
func never(t testing.TB) *syncReconciler {
	call := func(context.Context, *fixture.Resource) error {
		t.Error("the subreconciler was called")
		return nil
	}
	return &syncReconciler{Sync: call, Finalize: call}
}

// resourceFactory returns a ResourceReconciler that may fetch its resource once.
func resourceFactory(_ *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
	atMostOnce(c, "get", "Resource")
	return changed(&resourceReconciler{Config: c}, tc.Metadata)
}

// reconciling returns the Metadata of a case for resourceFactory.
func reconciling(sub reconcilers.SubReconciler[*fixture.Resource]) map[string]any {
	return changes(func(r *resourceReconciler) { r.Reconciler = sub })
}

func TestResourceReconciler_Request(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	written := objects{newResource(settled, ran)}
	resource, settled := objects{newResource()}, objects{newResource(settled)}
	type key struct{}
	before := func(result reconcilers.Result, err error) func(*resourceReconciler) {
		return func(r *resourceReconciler) {
			r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
				return nil, result, err
			}
		}
	}
	failIfCalled := func(r *resourceReconciler) {
		r.Reconciler = never(t)
		r.AfterReconcile = func(
			_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error,
		) (reconcilers.Result, error) {
			t.Error("AfterReconcile was called")
			return result, err
		}
	}

	rtesting.ReconcilerTests{
		// A deleted resource needs no work.
		"not found": {
			Request: testRequest, Metadata: reconciling(never(t)),
			ExpectWiring: &rtesting.Wiring{For: []rtesting.Watch{{Object: &fixture.Resource{}}}},
		},
		// Without the resource, nothing is done.
		"fetch fails": {
			Request: testRequest, GivenObjects: resource, WithReactors: failing("get", "Resource", errTest),
			Metadata:  reconciling(never(t)),
			ShouldErr: true, Verify: failsWith(errTest),
		},
		// A quiet error requests a retry with back-off, without an error.
		"fetch fails quietly": {
			Request: testRequest, GivenObjects: resource, WithReactors: failing("get", "Resource", errQuiet),
			Metadata:       reconciling(never(t)),
			ExpectedResult: requeue,
		},
		// Neither hook is called for a request that is skipped.
		"skipped request": {
			Request: testRequest, GivenObjects: resource, WithReactors: failing("get", "Resource", errTest),
			Metadata: changes(failIfCalled, func(r *resourceReconciler) {
				r.SkipRequest = func(_ context.Context, req reconcilers.Request) bool { return req == testRequest }
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					t.Error("BeforeReconcile was called")
					return nil, reconcilers.Result{}, nil
				}
			}),
		},
		// SkipRequest is called for each request.
		"request not skipped": {
			Request: testRequest, GivenObjects: resource, StatusSubResourceTypes: hasStatus,
			Metadata: changes(func(r *resourceReconciler) {
				r.SkipRequest = func(_ context.Context, req reconcilers.Request) bool { return req.Name == "other" }
				r.Reconciler = setField(minute, nil)
			}),
			ExpectStatusUpdates: written, ExpectEvents: statusUpdated,
		},
		// The error and result of BeforeReconcile are returned, and AfterReconcile is not called.
		"before fails": {
			Request: testRequest, GivenObjects: resource, WithReactors: failing("get", "Resource", errQuiet),
			Metadata: changes(failIfCalled, before(minute, errTest)), ShouldErr: true, Verify: failsWith(errTest, minute),
		},
		// A quiet error has the same effect in each function.
		"before fails quietly": {
			Request: testRequest, GivenObjects: resource, WithReactors: failing("get", "Resource", errTest),
			Metadata: changes(failIfCalled, before(minute, errQuiet)), ExpectedResult: requeue,
		},
		// A nil context keeps the current context.
		"before keeps the context": {
			Request: testRequest, GivenObjects: settled,
			Metadata: changes(before(minute, nil), func(r *resourceReconciler) {
				r.Reconciler = &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
					if reconcilers.RetrieveRequest(ctx) != testRequest {
						t.Error("the context has no request")
					}
					return nil
				}}
			}),
			ExpectedResult: minute,
		},
		// Subreconcilers and AfterReconcile receive the context of BeforeReconcile.
		"before replaces the context": {
			Request: testRequest, GivenObjects: settled,
			Metadata: changes(func(r *resourceReconciler) {
				r.BeforeReconcile = func(
					ctx context.Context, req reconcilers.Request,
				) (context.Context, reconcilers.Result, error) {
					equal(t, "request", testRequest, req)
					return context.WithValue(ctx, key{}, "here"), reconcilers.Result{}, nil
				}
				r.Reconciler = &syncReconciler{SyncWithResult: func(
					ctx context.Context, _ *fixture.Resource,
				) (reconcilers.Result, error) {
					equal(t, "value in the subreconciler", "here", ctx.Value(key{}))
					return minute, nil
				}}
				r.AfterReconcile = func(
					ctx context.Context, _ reconcilers.Request, res reconcilers.Result, err error,
				) (reconcilers.Result, error) {
					equal(t, "value in AfterReconcile", "here", ctx.Value(key{}))
					return res, err
				}
			}),
			ExpectedResult: minute,
		},
		// BeforeReconcile runs before the resource is fetched.
		"before creates the resource": {
			Request: testRequest, StatusSubResourceTypes: hasStatus,
			Metadata: changes(func(r *resourceReconciler) {
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					r.Config.Client.(rtesting.TestClient).AddGiven(newResource())
					return nil, reconcilers.Result{}, nil
				}
				r.Reconciler = setField(reconcilers.Result{}, nil)
			}),
			ExpectStatusUpdates: written, ExpectEvents: statusUpdated,
		},
		// AfterReconcile receives the combined result, and its outcome is final.
		"after replaces the outcome": {
			Request: testRequest, GivenObjects: settled,
			Metadata: changes(before(reconcilers.Result{RequeueAfter: time.Second}, nil), func(r *resourceReconciler) {
				r.Reconciler = returning(minute, errTest)
				r.AfterReconcile = func(
					_ context.Context, req reconcilers.Request, res reconcilers.Result, err error,
				) (reconcilers.Result, error) {
					equal(t, "request", testRequest, req)
					equal(t, "result", reconcilers.Result{RequeueAfter: time.Second}, res)
					wantErr(t, errTest, err)
					return reconcilers.Result{RequeueAfter: time.Hour}, nil
				}
			}),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Hour},
		},
		// AfterReconcile may return an error after a success.
		"after fails": {
			Request: testRequest, GivenObjects: settled,
			Metadata: changes(func(r *resourceReconciler) {
				r.Reconciler = returning(minute, nil)
				r.AfterReconcile = func(
					_ context.Context, _ reconcilers.Request, res reconcilers.Result, _ error,
				) (reconcilers.Result, error) {
					return res, errTest
				}
			}),
			ShouldErr: true, Verify: failsWith(errTest, minute),
		},
		// The status of a skipped resource is not written, although conditions would have been initialized.
		"skipped resource": {
			Request: testRequest, GivenObjects: resource,
			Metadata: changes(func(r *resourceReconciler) {
				r.SkipResource = func(_ context.Context, r *fixture.Resource) bool {
					return r.Spec.Fields[fixture.DefaulterField] == "ran"
				}
				r.Reconciler = never(t)
			}),
		},
	}.Run(t, scheme, resourceFactory)
}

func TestResourceReconciler_Context(t *testing.T) {
	called := false
	tc := rtesting.ReconcilerTestCase{
		Request: testRequest, GivenObjects: objects{newResource(settled)}, Now: time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC),
		Prepare: func(_ *testing.T, ctx context.Context, _ *rtesting.ReconcilerTestCase) (context.Context, error) {
			ctx = reconcilers.WithStash(ctx)
			reconcilers.StashValue(ctx, "leftover", "of another request")
			return ctx, nil
		},
		Metadata: changes(func(reconciler *resourceReconciler) {
			reconciler.Reconciler = &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
				called = true
				equal(t, "request", testRequest, reconcilers.RetrieveRequest(ctx))
				if reconcilers.RetrieveConfigOrDie(ctx) != reconciler.Config ||
					reconcilers.RetrieveOriginalConfigOrDie(ctx) != reconciler.Config {
					t.Error("the configs on the context differ from the config of the reconciler")
				}
				for _, kind := range []runtime.Object{
					reconcilers.RetrieveResourceType(ctx), reconcilers.RetrieveOriginalResourceType(ctx),
				} {
					if _, ok := kind.(*fixture.Resource); !ok {
						t.Errorf("resource type is %T", kind)
					}
				}
				if reconcilers.HasValue(ctx, "leftover") {
					t.Error("the stash is not new")
				}
				equal(
					t, "time, which the first to set it decides", time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC), rtime.RetrieveNow(ctx),
				)
				equal(t, "name", "ResourceResourceReconciler", reconciler.Name)
				return nil
			}}
		}),
	}
	tc.Run(t, scheme, resourceFactory)
	equal(t, "called", true, called)
}

func TestResourceReconciler_Log(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"an error is logged":          {errTest, []string{"unable to fetch resource"}},
		"a quiet error is not logged": {errQuiet, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource()).Fail("get Resource", tc.err)
			log, lines := newLog(0)
			r := &resourceReconciler{Config: w.Config, Reconciler: never(t)}
			_, _ = r.Reconcile(withLog(context.Background(), log), testRequest)
			equal(t, "messages", tc.want, lines.messages())
		})
	}
}

func TestResourceReconciler_Deletion(t *testing.T) {
	given := objects{newResource(finalizer("hold.example.com/on"), terminating, settled)}
	rtesting.ReconcilerTests{
		// By default, the status of a resource that is being deleted is not written.
		"status is not written": {
			Request: testRequest, GivenObjects: given, StatusSubResourceTypes: hasStatus, Metadata: reconciling(
				setField(reconcilers.Result{}, nil),
			),
		},
		// SyncStatusDuringFinalization writes it.
		"status is written on request": {
			Request: testRequest, GivenObjects: given, StatusSubResourceTypes: hasStatus,
			Metadata: changes(func(r *resourceReconciler) {
				r.SyncStatusDuringFinalization, r.Reconciler = true, setField(reconcilers.Result{}, nil)
			}),
			ExpectStatusUpdates: objects{newResource(settled, ran)}, ExpectEvents: statusUpdated,
		},
		// The server has already deleted the resource, but the cache still has it.
		"without finalizers": {
			Request: testRequest, Metadata: reconciling(never(t)),
			WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
				return action.Matches("get", "Resource"), newResource(terminating, settled), nil
			}},
		},
	}.Run(t, scheme, resourceFactory)
}

// themed returns a reconciler whose resources track the theme with TrackAndGet, and "direct" with the tracker.
func themed[T client.Object](config reconcilers.Config, kind T, theme string) *reconcilers.ResourceReconciler[T] {
	return &reconcilers.ResourceReconciler[T]{
		Config: config, Type: kind, SkipStatusUpdate: true,
		Reconciler: &reconcilers.SyncReconciler[T]{Sync: func(ctx context.Context, resource T) error {
			config := reconcilers.RetrieveConfigOrDie(ctx)
			if err := config.Tracker.TrackObject(newConfigMap("direct"), resource); err != nil {
				return err
			}
			return client.IgnoreNotFound(
				config.TrackAndGet(ctx, types.NamespacedName{Namespace: "default", Name: theme}, &corev1.ConfigMap{}),
			)
		}},
	}
}

func TestResourceReconciler_ForgetsTracksOfADeletedResource(t *testing.T) {
	other := &fixture.ResourceNoStatus{ObjectMeta: newResource().ObjectMeta}
	for name, duckTyped := range map[string]bool{"typed": false, "duck": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(), other.DeepCopy())
			w.Config.Tracker = tracker.New(w.Scheme, time.Hour)
			ctx := context.Background()
			var deleted root = themed(w.Config, &fixture.Resource{}, "theme")
			if duckTyped {
				deleted = themed(w.Config, fixture.NewDuck("", ""), "theme")
			}
			stays := themed(w.Config, &fixture.ResourceNoStatus{}, "other")
			both := []types.NamespacedName{testRequest.NamespacedName}
			observers := func(when string, of string, want []types.NamespacedName) {
				t.Helper()
				got, err := w.Config.Tracker.GetObservers(newConfigMap(of))
				wantErr(t, nil, err)
				equal(t, when+": observers of "+of, want, got)
			}
			for _, r := range []root{deleted, stays} {
				_, err := r.Reconcile(ctx, testRequest)
				wantErr(t, nil, err)
			}
			for _, of := range []string{"theme", "other", "direct"} {
				observers("tracked", of, both)
			}

			wantErr(t, nil, w.Server.Delete(ctx, newResource()))
			_, err := deleted.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			observers("one resource is deleted", "theme", nil)
			observers("one resource is deleted", "other", both)
			observers("one resource is deleted", "direct", both)

			wantErr(t, nil, w.Server.Delete(ctx, other.DeepCopy()))
			_, err = stays.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			observers("both resources are deleted", "other", nil)
			observers("both resources are deleted", "direct", nil)
		})
	}
}

// A failed fetch does not show whether the resource exists.
func TestResourceReconciler_KeepsTracksWhenFetchFails(t *testing.T) {
	w := newWorld(t, newResource())
	w.Config.Tracker = tracker.New(w.Scheme, time.Hour)
	r := themed(w.Config, &fixture.Resource{}, "theme")
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	w.Fail("get Resource", errTest)
	_, err = r.Reconcile(context.Background(), testRequest)
	wantErr(t, errTest, err)
	observers, err := w.Config.Tracker.GetObservers(newConfigMap("theme"))
	wantErr(t, nil, err)
	equal(t, "observers", []types.NamespacedName{testRequest.NamespacedName}, observers)
}

// Is a resource that is deleted during its reconcile reported as a failure? Nothing is logged, recorded or returned.
func TestResourceReconciler_DeletedDuringTheReconcile(t *testing.T) {
	w := newWorld(t, newResource())
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{
		Sync: func(ctx context.Context, resource *fixture.Resource) error {
			resource.Status.Fields = map[string]string{"key": "value"}
			return w.Server.Delete(ctx, resource.DeepCopy())
		},
	}}
	logged := []string{}
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	_, err := r.ReconcileManaged(ctx, testRequest)
	wantErr(t, nil, err)
	equal(t, "requests and events", []string{
		"get Resource default/test", "update Resource/status default/test", "live get Resource default/test",
	}, w.Trace())
	for _, line := range logged {
		if strings.Contains(line, "error") {
			t.Errorf("unexpected log line %s", line)
		}
	}
}

func TestConcurrentRequests(t *testing.T) {
	const parents, passes = 10, 3
	given := []client.Object{}
	for i := range parents {
		given = append(given, newResource(func(r *fixture.Resource) {
			r.Name, r.UID = fmt.Sprintf("parent-%d", i), types.UID(fmt.Sprintf("parent-%d", i))
		}))
	}
	w := newWorld(t, given...)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	of := func(parent *fixture.Resource, id string) *corev1.ConfigMap {
		cm := member(id, "parent", parent.Name)
		cm.Name = parent.Name + "-" + id
		return cm
	}
	reflected := func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {}
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{
		&withFinalizer{Finalizer: "test-finalizer", Reconciler: sequence{}},
		&childReconciler{
			OurChild: func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] == "single" },
			DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
				return of(parent, "single"), nil
			},
			// All requests share these functions.
			MergeBeforeUpdate: mergeData, ReflectChildStatusOnParent: reflected,
		},
		newChildSetReconciler(w, func(r *childSetReconciler) {
			r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] != "single" }
			r.DesiredChildren = func(_ context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
				return []*corev1.ConfigMap{of(parent, "a"), of(parent, "b")}, nil
			}
		}),
		setField(reconcilers.Result{}, nil),
	}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))

	var done sync.WaitGroup
	for _, parent := range given {
		done.Go(func() {
			for range passes {
				_, err := r.Reconcile(context.Background(), requestFor(parent))
				wantErr(t, nil, err)
			}
		})
	}
	done.Wait()
	equal(t, "creates", 3*parents, w.Count("create ConfigMap"))
	equal(t, "updates", 0, w.Count("update ConfigMap"))
	equal(t, "deletes", 0, w.Count("delete"))
	equal(t, "status writes", parents, w.Count("update Resource/status"))
	for _, parent := range given {
		parent := stored(w, parent.(*fixture.Resource))
		for _, id := range []string{"single", "a", "b"} {
			child := stored(w, of(parent, id))
			equal(t, "owner of "+child.Name, parent.UID, child.OwnerReferences[0].UID)
			equal(t, "data of "+child.Name, parent.Name, child.Data["parent"])
		}
	}
}

func TestResourceReconciler_Panic(t *testing.T) {
	w := newWorld(t, newResource())
	log, lines := newLog(0)
	r := &resourceReconciler{Config: w.Config, Reconciler: sequence{
		sequence{},
		&syncReconciler{Name: "Careless", Sync: func(context.Context, *fixture.Resource) error { panic(errTest) }},
	}}
	func() {
		defer func() {
			if got, ok := recover().(error); !ok || !errors.Is(got, errTest) {
				t.Errorf("panic value %v", got)
			}
		}()
		_, _ = r.Reconcile(withLog(context.Background(), log), testRequest)
	}()
	equal(t, "messages", []string{"reconciler panicked"}, lines.messages())
	contains(t, lines.all(), `"step"="ResourceResourceReconciler.1.Careless"`)
}
