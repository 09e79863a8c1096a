// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
)

type (
	resourceReconciler = reconcilers.ResourceReconciler[*fixture.Resource]
	syncReconciler     = reconcilers.SyncReconciler[*fixture.Resource]
	sequence           = reconcilers.Sequence[*fixture.Resource]
)

// returning is a sub reconciler that does nothing but return.
func returning(result reconcilers.Result, err error) *syncReconciler {
	return &syncReconciler{
		SyncWithResult:     func(context.Context, *fixture.Resource) (reconcilers.Result, error) { return result, err },
		FinalizeWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) { return result, err },
	}
}

// setField is a sub reconciler that changes the status and then returns.
func setField(result reconcilers.Result, err error) *syncReconciler {
	change := func(_ context.Context, r *fixture.Resource) (reconcilers.Result, error) {
		r.Status.Fields = map[string]string{"Reconciler": "ran"}
		return result, err
	}
	return &syncReconciler{SyncWithResult: change, FinalizeWithResult: change}
}

// never is a sub reconciler that must not be called.
func never(t testing.TB) *syncReconciler {
	call := func(context.Context, *fixture.Resource) error {
		t.Error("the sub reconciler was called")
		return nil
	}
	return &syncReconciler{Sync: call, Finalize: call}
}

func TestResourceReconciler_Request(t *testing.T) {
	const fetched = "get Resource default/test"
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	ran := []string{fetched, "update Resource/status default/test", "event default/test Normal StatusUpdated: Updated status"}
	type key struct{}
	failIfCalled := func(t *testing.T) *resourceReconciler {
		return &resourceReconciler{
			Reconciler: never(t),
			AfterReconcile: func(_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
				t.Error("AfterReconcile was called")
				return result, err
			},
		}
	}

	for name, tc := range map[string]struct {
		reason    string
		given     *fixture.Resource
		fail      map[string]error
		make      func(t *testing.T, w *world) *resourceReconciler
		want      reconcilers.Result
		wantErr   error
		wantTrace []string
	}{
		"not found": {
			reason: "a resource that is gone needs nothing",
			make: func(t *testing.T, _ *world) *resourceReconciler {
				return &resourceReconciler{Reconciler: never(t)}
			},
			wantTrace: []string{fetched},
		},
		"fetch fails": {
			reason: "nothing can be done without the resource",
			given:  newResource(),
			fail:   map[string]error{fetched: errTest},
			make: func(t *testing.T, _ *world) *resourceReconciler {
				return &resourceReconciler{Reconciler: never(t)}
			},
			wantErr:   errTest,
			wantTrace: []string{fetched},
		},
		"fetch fails quietly": {
			reason: "a quiet error is a retry with back-off, and no error",
			given:  newResource(),
			fail:   map[string]error{fetched: errQuiet},
			make: func(t *testing.T, _ *world) *resourceReconciler {
				return &resourceReconciler{Reconciler: never(t)}
			},
			want:      reconcilers.Result{Requeue: true}, //nolint:staticcheck // what is pinned
			wantTrace: []string{fetched},
		},
		"skipped request": {
			reason: "neither hook is called for a request that is skipped",
			given:  newResource(),
			make: func(t *testing.T, _ *world) *resourceReconciler {
				r := failIfCalled(t)
				r.SkipRequest = func(_ context.Context, req reconcilers.Request) bool { return req == testRequest }
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					t.Error("BeforeReconcile was called")
					return nil, reconcilers.Result{}, nil
				}
				return r
			},
		},
		"request not skipped": {
			reason: "SkipRequest decides per request",
			given:  newResource(),
			make: func(*testing.T, *world) *resourceReconciler {
				return &resourceReconciler{
					SkipRequest: func(_ context.Context, req reconcilers.Request) bool { return req.Name == "other" },
					Reconciler:  setField(minute, nil),
				}
			},
			wantTrace: ran,
		},
		"before fails": {
			reason: "the error and the result of BeforeReconcile are the outcome, and AfterReconcile is not asked",
			given:  newResource(),
			make: func(t *testing.T, _ *world) *resourceReconciler {
				r := failIfCalled(t)
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return nil, minute, errTest
				}
				return r
			},
			want:    minute,
			wantErr: errTest,
		},
		"before fails quietly": {
			reason: "a quiet error is treated the same wherever it comes from",
			given:  newResource(),
			make: func(t *testing.T, _ *world) *resourceReconciler {
				r := failIfCalled(t)
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return nil, minute, errQuiet
				}
				return r
			},
			want: reconcilers.Result{Requeue: true}, //nolint:staticcheck // what is pinned
		},
		"before keeps the context": {
			reason: "a nil context means the current one",
			given:  newResource(settled),
			make: func(t *testing.T, _ *world) *resourceReconciler {
				return &resourceReconciler{
					BeforeReconcile: func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
						return nil, minute, nil
					},
					Reconciler: &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
						if reconcilers.RetrieveRequest(ctx) != testRequest {
							t.Error("the context has lost the request")
						}
						return nil
					}},
				}
			},
			want:      minute,
			wantTrace: []string{fetched},
		},
		"before replaces the context": {
			reason: "what BeforeReconcile puts on the context reaches sub reconcilers and AfterReconcile",
			given:  newResource(settled),
			make: func(t *testing.T, _ *world) *resourceReconciler {
				return &resourceReconciler{
					BeforeReconcile: func(ctx context.Context, req reconcilers.Request) (context.Context, reconcilers.Result, error) {
						equal(t, "request", testRequest, req)
						return context.WithValue(ctx, key{}, "here"), reconcilers.Result{}, nil
					},
					Reconciler: &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
						equal(t, "value below", "here", ctx.Value(key{}))
						return nil
					}},
					AfterReconcile: func(ctx context.Context, _ reconcilers.Request, res reconcilers.Result, err error) (reconcilers.Result, error) {
						equal(t, "value after", "here", ctx.Value(key{}))
						return res, err
					},
				}
			},
			wantTrace: []string{fetched},
		},
		"before creates the resource": {
			reason: "BeforeReconcile runs before the resource is fetched",
			make: func(_ *testing.T, w *world) *resourceReconciler {
				return &resourceReconciler{
					BeforeReconcile: func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
						r := newResource()
						r.ResourceVersion = ""
						return nil, reconcilers.Result{}, w.Server.Create(ctx, r)
					},
					Reconciler: setField(reconcilers.Result{}, nil),
				}
			},
			wantTrace: ran,
		},
		"after replaces the outcome": {
			reason: "AfterReconcile sees the earlier of both results and has the last word",
			given:  newResource(settled),
			make: func(t *testing.T, _ *world) *resourceReconciler {
				return &resourceReconciler{
					BeforeReconcile: func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
						return nil, reconcilers.Result{RequeueAfter: time.Second}, nil
					},
					Reconciler: returning(minute, errTest),
					AfterReconcile: func(_ context.Context, req reconcilers.Request, res reconcilers.Result, err error) (reconcilers.Result, error) {
						equal(t, "request", testRequest, req)
						equal(t, "result", reconcilers.Result{RequeueAfter: time.Second}, res)
						wantErr(t, errTest, err)
						return reconcilers.Result{RequeueAfter: time.Hour}, nil
					},
				}
			},
			want:      reconcilers.Result{RequeueAfter: time.Hour},
			wantTrace: []string{fetched},
		},
		"after fails": {
			reason: "AfterReconcile may also turn success into failure",
			given:  newResource(settled),
			make: func(*testing.T, *world) *resourceReconciler {
				return &resourceReconciler{
					Reconciler: returning(minute, nil),
					AfterReconcile: func(_ context.Context, _ reconcilers.Request, res reconcilers.Result, _ error) (reconcilers.Result, error) {
						return res, errTest
					},
				}
			},
			want:      minute,
			wantErr:   errTest,
			wantTrace: []string{fetched},
		},
		"skipped resource": {
			reason: "a resource that is skipped keeps its status, though conditions would have been initialized",
			given:  newResource(),
			make: func(t *testing.T, _ *world) *resourceReconciler {
				return &resourceReconciler{
					SkipResource: func(_ context.Context, r *fixture.Resource) bool {
						return r.Spec.Fields[fixture.DefaulterField] == "ran"
					},
					Reconciler: never(t),
				}
			},
			wantTrace: []string{fetched},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.given != nil {
				w = newWorld(t, tc.given)
			}
			for line, err := range tc.fail {
				w.Fail(line, err)
			}
			r := tc.make(t, w)
			r.Config = w.Config
			got, err := r.Reconcile(context.Background(), testRequest)
			wantErr(t, tc.wantErr, err)
			equal(t, "result", tc.want, got)
			equal(t, "trace", tc.wantTrace, w.Trace())
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestResourceReconciler_Context(t *testing.T) {
	w := newWorld(t, newResource(settled))
	now := time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)
	outer := reconcilers.WithStash(rtime.StashNow(context.Background(), now))
	reconcilers.StashValue(outer, "leftover", "of another request")
	called := false
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
		called = true
		equal(t, "request", testRequest, reconcilers.RetrieveRequest(ctx))
		if reconcilers.RetrieveConfigOrDie(ctx) != w.Config || reconcilers.RetrieveOriginalConfigOrDie(ctx) != w.Config {
			t.Error("the configs on the context are not that of the reconciler")
		}
		if _, ok := reconcilers.RetrieveResourceType(ctx).(*fixture.Resource); !ok {
			t.Errorf("resource type is %T", reconcilers.RetrieveResourceType(ctx))
		}
		if _, ok := reconcilers.RetrieveOriginalResourceType(ctx).(*fixture.Resource); !ok {
			t.Errorf("original resource type is %T", reconcilers.RetrieveOriginalResourceType(ctx))
		}
		if reconcilers.HasValue(ctx, "leftover") {
			t.Error("the stash is not fresh")
		}
		equal(t, "time, which the first to set it decides", now, rtime.RetrieveNow(ctx))
		return nil
	}}}
	if _, err := r.Reconcile(outer, testRequest); err != nil || !called {
		t.Fatalf("reconcile: called %v, error %v", called, err)
	}
	equal(t, "name", "ResourceResourceReconciler", r.Name)
}

func TestResourceReconciler_Log(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"an error is logged":           {errTest, []string{"unable to fetch resource"}},
		"a quiet error leaves no line": {errQuiet, nil},
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
