// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/reconcilers"
)

// unkept are the resources whose finalizer could not be added.
type unkept struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*unkeptRecord
}

type unkeptRecord struct {
	uid        types.UID
	generation int64
	failures   int
	due        time.Time
	err        error
}

func (u *unkept) record(object client.Object) *unkeptRecord {
	rec := u.records[client.ObjectKeyFromObject(object)]
	if rec == nil || rec.uid != object.GetUID() || rec.generation != object.GetGeneration() {
		return nil
	}
	return rec
}

// wait returns the time until the next attempt is due, and the error of the last one. A new generation does not wait.
func (u *unkept) wait(object client.Object) (time.Duration, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if rec := u.record(object); rec != nil {
		return time.Until(rec.due), rec.err
	}
	return 0, nil
}

// failed counts a failure, and returns the number of failures before.
func (u *unkept) failed(object client.Object, err error) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	rec := u.record(object)
	if rec == nil {
		if u.records == nil {
			u.records = map[types.NamespacedName]*unkeptRecord{}
		}
		rec = &unkeptRecord{uid: object.GetUID(), generation: object.GetGeneration()}
		u.records[client.ObjectKeyFromObject(object)] = rec
	}
	rec.failures++
	rec.err = err
	return rec.failures - 1
}

// retryAfter records when the next attempt is due.
func (u *unkept) retryAfter(object client.Object, after time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if rec := u.record(object); rec != nil {
		rec.due = time.Now().Add(after)
	}
}

func (u *unkept) forget(object client.Object) { u.delete(client.ObjectKeyFromObject(object)) }

func (u *unkept) delete(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.records, key)
}

// unableToKeep decides what follows after the finalizer could not be added. It is a failure of the handler, which is
// not called without the finalizer.
func (r *Opinionated[T]) unableToKeep(ctx context.Context, object T, err error) (reconcilers.Result, error) {
	if errors.Is(err, reconcilers.ErrQuiet) || errors.Is(ctx.Err(), context.Canceled) {
		return reconcilers.Result{}, stopping(err)
	}
	h, attempt := r.Handler, r.unkept.failed(object, err)
	if h.OnError != nil {
		h.OnError(ctx, object, err)
	}
	retry, after := true, time.Duration(0)
	if h.RetryPolicy != nil {
		retry, after = h.RetryPolicy(err, attempt)
	}
	action, result := ReconcileActionCreated, "failed"
	if h.Handled(object) {
		action = ReconcileActionResynced
	}
	if !retry {
		result = "exhausted"
	}
	h.events().Report(ctx, &observe.HandlerCalled{
		Handler: h.Name, Action: action.String(), Result: result, Exhausted: !retry,
	})
	switch {
	case !retry:
		if config, missing := reconcilers.RetrieveOriginalConfig(ctx); missing == nil {
			config.RecordEvent(
				object, corev1.EventTypeWarning, "RetriesExhausted",
				"Giving up on adding the finalizer after %d attempts, until the resource changes: %v", attempt+1, err,
			)
		}
		if h.OnExhausted != nil {
			h.OnExhausted(ctx, object, err)
		}
		return reconcilers.Result{}, reconcile.TerminalError(err)
	case after <= 0:
		return reconcilers.Result{}, err // the rate limiter decides when
	}
	r.unkept.retryAfter(object, after)
	return reconcilers.Result{RequeueAfter: after}, waiting{err}
}
