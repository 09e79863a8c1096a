// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"errors"
	"testing"
	"time"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// request is the argument of request reconcilers.
type request = operator.TypedReconcileRequest[*fixture.Resource]

// byAction creates, changes or deletes the thing of an object as the object was.
func byAction(env converge.Env) func(context.Context, request) (operator.ReconcileResult, error) {
	return func(ctx context.Context, req request) (operator.ReconcileResult, error) {
		key := "thing " + req.Object.Name
		switch req.Action {
		case operator.ReconcileActionDeleted:
			return operator.ReconcileResult{}, drop(ctx, env, key)
		case operator.ReconcileActionCreated, operator.ReconcileActionUpdated, operator.ReconcileActionResynced:
			return operator.ReconcileResult{}, put(ctx, env, key, req.Object.Spec.Fields["value"])
		}
		return operator.ReconcileResult{}, errors.New("nothing has happened")
	}
}

// inTwoAttempts starts an operation in the first attempt and completes it in the next.
func inTwoAttempts(env converge.Env) func(context.Context, request) (operator.ReconcileResult, error) {
	do := byAction(env)
	return func(ctx context.Context, req request) (operator.ReconcileResult, error) {
		if req.Action == operator.ReconcileActionDeleted {
			return do(ctx, req)
		}
		if begun, _ := req.State["begun"].(string); begun != req.Object.Spec.Fields["value"] {
			return operator.ReconcileResult{
				RequeueAfter: time.Second, State: map[string]any{"begun": req.Object.Spec.Fields["value"]},
			}, nil
		}
		return do(ctx, req)
	}
}

func TestOpinionatedReconciler(t *testing.T) {
	policy := operator.BackoffPolicy{Initial: time.Second, MaxAttempts: 10, Jitter: -1}.Policy()
	for _, c := range []struct {
		name   string
		do     func(converge.Env) func(context.Context, request) (operator.ReconcileResult, error)
		policy operator.RetryPolicy
	}{
		{"rate limited", byAction, nil},
		{"back-off", byAction, policy},
		{"exponential back-off", byAction, operator.ExponentialBackoffRetryPolicy(time.Second, 10)},
		{"two attempts", inTwoAttempts, nil},
		{"two attempts, back-off", inTwoAttempts, policy},
	} {
		t.Run(c.name, func(t *testing.T) {
			prove(t, handled(t, func(env converge.Env) []sub {
				o := operator.NewOpinionated[*fixture.Resource](finalizer, &operator.TypedReconciler[*fixture.Resource]{
					ReconcileFunc: c.do(env),
				})
				o.Handler.RetryPolicy = c.policy
				return []sub{o}
			}))
		})
	}
}

// A tree of reconcilers is called for every event, and writes its status.
func TestAsReconciler(t *testing.T) {
	prove(t, handled(t, func(env converge.Env) []sub {
		tree := operator.AsReconciler[*fixture.Resource](reconcilers.Sequence[*fixture.Resource]{
			newChild(generatedName), publishes(env, "thing"),
		})
		return []sub{operator.NewOpinionated[*fixture.Resource](finalizer, tree)}
	}))
}

// When the policy gives up, the status reports it. The next change starts again.
func TestRetriesExhausted(t *testing.T) {
	s := handled(t, func(env converge.Env) []sub {
		do := byAction(env)
		o := operator.NewOpinionated[*fixture.Resource](finalizer, &operator.TypedReconciler[*fixture.Resource]{
			ReconcileFunc: func(ctx context.Context, req request) (operator.ReconcileResult, error) {
				if req.Object.Spec.Fields["value"] == "broken" && req.Action != operator.ReconcileActionDeleted {
					return operator.ReconcileResult{}, errors.New("this value cannot be")
				}
				return do(ctx, req)
			},
		})
		o.Handler.RetryPolicy = operator.BackoffPolicy{Initial: 100 * time.Millisecond, MaxAttempts: 6, Jitter: -1}.Policy()
		return []sub{o}
	})
	s.Steps = converge.Lifecycle(newResource("one"), setField("value", "broken"), setField("value", "two"))
	// The reason of a failure differs after a restart.
	s.Masks = []converge.Mask{{Object: &fixture.Resource{}, Field: "status.conditions.reason"}}
	s.Off = map[converge.Oracle]string{
		converge.OracleStatus: "a generation that was given up is not handled: observedGeneration stays behind, so that " +
			"the next process tries it again",
	}
	prove(t, s)
}
