// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

type (
	aggregateReconciler = reconcilers.AggregateReconciler[*corev1.ConfigMap]
	configMapSync       = reconcilers.SyncReconciler[*corev1.ConfigMap]
)

// newAggregate returns a reconciler for the ConfigMap "test" that should hold key=value.
func newAggregate(w *world, changes ...func(*aggregateReconciler)) *aggregateReconciler {
	r := &aggregateReconciler{
		Request: testRequest,
		DesiredResource: func(_ context.Context, resource *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			resource.Data = map[string]string{"key": "value"}
			return resource, nil
		},
		AggregateObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
		Config:                 w.Config,
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

// collecting is a part of an aggregate that returns what it is given.
func collecting(result reconcilers.Result, err error) *configMapSync {
	return &configMapSync{SyncWithResult: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) { return result, err }}
}

func noneDesired(r *aggregateReconciler) {
	r.DesiredResource = func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil }
}

// backOff is a retry with back-off and a priority.
func backOff(priority int) reconcilers.Result {
	result := requeue
	result.Priority = new(priority)
	return result
}

func TestAggregateReconciler(t *testing.T) {
	type result = reconcilers.Result
	const (
		fetched = "get ConfigMap default/test"
		created = `event default/test Normal Created: Created ConfigMap "test"`
		updated = `event default/test Normal Updated: Updated ConfigMap "test"`
		deleted = `event default/test Normal Deleted: Deleted ConfigMap "test"`
	)
	minute := result{RequeueAfter: time.Minute, Priority: new(4)}
	inSync := newConfigMap("test", orphan)
	drifted := newConfigMap("test", orphan, func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" })
	reconciler := func(res result, err error) func(*aggregateReconciler) {
		return func(r *aggregateReconciler) { r.Reconciler = collecting(res, err) }
	}
	for name, tc := range map[string]struct {
		reason  string
		given   *corev1.ConfigMap
		request *reconcilers.Request
		change  func(*aggregateReconciler)
		fail    map[string]error
		want    result
		err     error
		trace   []string
	}{
		"create":  {reason: "a missing resource is created", trace: []string{fetched, "create ConfigMap default/test", created}},
		"in sync": {reason: "nothing is written for a resource that is as desired", given: inSync, trace: []string{fetched}},
		"update":  {reason: "drift is repaired", given: drifted, trace: []string{fetched, "update ConfigMap default/test", updated}},
		"delete": {
			reason: "a resource that is not desired is deleted", given: inSync, change: noneDesired,
			trace: []string{fetched, "delete ConfigMap default/test", deleted},
		},
		"none desired": {reason: "none is as desired", change: noneDesired, trace: []string{fetched}},
		"another request": {
			reason: "other resources of the kind are none of its business", given: drifted,
			request: &reconcilers.Request{NamespacedName: client.ObjectKey{Namespace: "elsewhere", Name: "test"}},
		},
		"terminating": {
			reason: "a resource that is being deleted is left alone", given: newConfigMap("test", orphan, leaving),
			change: reconciler(minute, errTest), trace: []string{fetched},
		},
		"fetch fails": {
			reason: "nothing can be done without knowing what is there", given: drifted, fail: map[string]error{fetched: errTest},
			change: reconciler(minute, errTest), err: errTest, trace: []string{fetched},
		},
		"result": {
			reason: "the result of the reconciler is the result", given: inSync, change: reconciler(minute, nil),
			want: minute, trace: []string{fetched},
		},
		"reconciler fails": {
			reason: "without what it collects nothing is managed", given: drifted, change: reconciler(minute, errTest),
			want: minute, err: errTest, trace: []string{fetched},
		},
		"reconciler fails quietly": {
			reason: "it is tried again with back-off, and keeps its priority", given: drifted, change: reconciler(minute, errQuiet),
			want: backOff(4), trace: []string{fetched},
		},
		"reconciler halts": {
			reason: "the resource is managed, the error forgotten and the result kept", given: drifted,
			change: reconciler(requeue, reconcilers.ErrHaltSubReconcilers), want: requeue,
			trace: []string{fetched, "update ConfigMap default/test", updated},
		},
		"reconciler halts, asking for later": {
			reason: "the result is kept as it is", given: inSync,
			change: reconciler(minute, reconcilers.ErrHaltSubReconcilers), want: minute, trace: []string{fetched},
		},
		"desired fails": {
			reason: "the error is returned with the result of the reconciler", given: drifted, want: minute, err: errTest, trace: []string{fetched},
			change: func(r *aggregateReconciler) {
				r.Reconciler = collecting(minute, nil)
				r.DesiredResource = func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, errTest }
			},
		},
		"create fails": {
			reason: "the error is returned with the result of the reconciler",
			change: reconciler(minute, nil), fail: map[string]error{"create ": errTest}, want: minute, err: errTest,
			trace: []string{
				fetched, "create ConfigMap default/test",
				`event default/test Warning CreationFailed: Failed to create ConfigMap "test": failure of the test`,
			},
		},
		"create fails after a halt": {
			reason: "a halt hides no failure",
			change: reconciler(minute, reconcilers.ErrHaltSubReconcilers), fail: map[string]error{"create ": errTest}, want: minute, err: errTest,
			trace: []string{
				fetched, "create ConfigMap default/test",
				`event default/test Warning CreationFailed: Failed to create ConfigMap "test": failure of the test`,
			},
		},
		"shorthand": {
			reason: "MergeBeforeUpdate stands for an object manager", given: drifted,
			change: func(r *aggregateReconciler) { r.AggregateObjectManager, r.MergeBeforeUpdate = nil, mergeData },
			trace:  []string{fetched, "update ConfigMap default/test", updated},
		},
		"as the reconciler leaves it": {
			reason: "without DesiredResource the reconciler changes the resource itself", given: drifted,
			change: func(r *aggregateReconciler) {
				r.DesiredResource = nil
				r.Reconciler = &configMapSync{Sync: func(_ context.Context, cm *corev1.ConfigMap) error {
					cm.Data = map[string]string{"key": "value"}
					return nil
				}}
			},
			trace: []string{fetched, "update ConfigMap default/test", updated},
		},
		"as it is": {
			reason: "without DesiredResource and Reconciler nothing changes", given: drifted,
			change: func(r *aggregateReconciler) { r.DesiredResource = nil }, trace: []string{fetched},
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
			r := newAggregate(w)
			if tc.change != nil {
				tc.change(r)
			}
			request := testRequest
			if tc.request != nil {
				request = *tc.request
			}
			got, err := r.Reconcile(context.Background(), request)
			wantErr(t, tc.err, err)
			equal(t, "result, for "+tc.reason, tc.want, got)
			equal(t, "trace, for "+tc.reason, tc.trace, w.Trace())
			after := stored(w, wanted("test"))
			if len(tc.trace) > 2 && tc.err == nil && tc.trace[2] != deleted {
				equal(t, "data", map[string]string{"key": "value"}, after.Data)
			}
		})
	}
}

func TestDefect10_AggregateHalts(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want reconcilers.Result
	}{
		"halt":                 {reconcilers.ErrHaltSubReconcilers, reconcilers.Result{RequeueAfter: time.Minute, Priority: new(7)}},
		"quiet":                {errQuiet, backOff(7)},
		"durable":              {errors.Join(errTest, reconcilers.ErrDurable), backOff(7)},
		"halt with a context":  {fmt.Errorf("waiting: %w", reconcilers.ErrHaltSubReconcilers), reconcilers.Result{RequeueAfter: time.Minute, Priority: new(7)}},
		"quiet with a context": {fmt.Errorf("waiting: %w", reconcilers.ErrQuiet), backOff(7)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			got, err := newAggregate(w, func(r *aggregateReconciler) {
				r.Reconciler = collecting(reconcilers.Result{RequeueAfter: time.Minute}, tc.err)
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return nil, reconcilers.Result{RequeueAfter: time.Hour, Priority: new(7)}, nil
				}
			}).Reconcile(context.Background(), testRequest)
			wantErr(t, nil, err)
			equal(t, "result", tc.want, got)
			equal(t, "managed", tc.want.RequeueAfter > 0, w.Count("create ConfigMap") == 1)
		})
	}
}

func TestAggregateReconciler_Hooks(t *testing.T) {
	type (
		result = reconcilers.Result
		key    struct{}
	)
	minute, second := result{RequeueAfter: time.Minute}, result{RequeueAfter: time.Second, Priority: new(9)}
	before := func(res result, err error) func(*aggregateReconciler) {
		return func(r *aggregateReconciler) {
			r.BeforeReconcile = func(ctx context.Context, req reconcilers.Request) (context.Context, result, error) {
				equal(t, "request on the context", req, reconcilers.RetrieveRequest(ctx))
				return nil, res, err
			}
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(*aggregateReconciler)
		want    result
		err     error
		managed bool
	}{
		"before":               {"results are combined", before(second, nil), second, nil, true},
		"before fails":         {"an error ends the request", before(second, errTest), second, errTest, false},
		"before fails quietly": {"a quiet error is retried like any other", before(second, errQuiet), backOff(9), nil, false},
		"after": {"After has the last word", func(r *aggregateReconciler) {
			r.AfterReconcile = func(_ context.Context, req reconcilers.Request, res result, err error) (result, error) {
				equal(t, "request", testRequest, req)
				equal(t, "result so far", minute, res)
				wantErr(t, nil, err)
				return second, errTest
			}
		}, second, errTest, true},
		"after clears an error": {"After has the last word", func(r *aggregateReconciler) {
			r.Reconciler = collecting(minute, errTest)
			r.AfterReconcile = func(_ context.Context, _ reconcilers.Request, _ result, err error) (result, error) {
				wantErr(t, errTest, err)
				return second, nil
			}
		}, second, nil, false},
		"after makes a quiet error": {"a quiet error is retried like any other", func(r *aggregateReconciler) {
			r.AfterReconcile = func(context.Context, reconcilers.Request, result, error) (result, error) { return second, errQuiet }
		}, backOff(9), nil, true},
		"no after when before fails": {"nothing else is called", func(r *aggregateReconciler) {
			before(result{}, errTest)(r)
			r.AfterReconcile = func(context.Context, reconcilers.Request, result, error) (result, error) { return second, nil }
		}, result{}, errTest, false},
		"context": {"a context that Before returns reaches everything below", func(r *aggregateReconciler) {
			r.BeforeReconcile = func(ctx context.Context, _ reconcilers.Request) (context.Context, result, error) {
				return context.WithValue(ctx, key{}, "here"), result{}, nil
			}
			desired := r.DesiredResource
			r.DesiredResource = func(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				equal(t, "value in DesiredResource", any("here"), ctx.Value(key{}))
				return desired(ctx, cm)
			}
			r.AfterReconcile = func(ctx context.Context, _ reconcilers.Request, res result, err error) (result, error) {
				equal(t, "value in AfterReconcile", any("here"), ctx.Value(key{}))
				return res, err
			}
		}, minute, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := newAggregate(w, func(r *aggregateReconciler) { r.Reconciler = collecting(minute, nil) }, tc.change)
			got, err := r.Reconcile(context.Background(), testRequest)
			wantErr(t, tc.err, err)
			equal(t, "result, for "+tc.reason, tc.want, got)
			equal(t, "managed", tc.managed, w.Count("create ConfigMap") == 1)
		})
	}
}
