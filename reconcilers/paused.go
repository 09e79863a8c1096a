// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*Paused[client.Object])(nil)

// AnnotationPaused is the annotation that pauses a resource, see [Paused]. The value is "true" or the reason in words.
// The values "false" and "" do not pause.
//
//	kubectl annotate website blog trueup.dev/paused="migration until Friday"
const AnnotationPaused = "trueup.dev/paused"

// Paused does not run a sub reconciler while the resource has the annotation [AnnotationPaused], or while PausedBy
// returns a reason. The reconcilers that follow do not run either, so it is usually the outermost reconciler, directly
// below the root. A paused resource is not written, unless Condition is set, and not requeued. It resumes when the
// annotation is removed. A controller with a predicate on generations does not receive that change: combine the
// predicate with controller-runtime's AnnotationChangedPredicate.
//
// Paused also stops the deletion, as in Cluster API: the finalizers of reconcilers below and of an enclosing
// [WithFinalizer] are kept, and nothing is cleaned up, until the resource resumes. A resource without finalizers is
// deleted by the API server nevertheless.
type Paused[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Paused`.
	Name string

	// Setup registers watches that PausedBy needs. It is called before Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// PausedBy returns a reason to pause the resource, or "", for example because the cluster that it belongs to is
	// paused. It is not called if the annotation pauses the resource. Optional.
	PausedBy func(ctx context.Context, resource Type) (reason string, err error)

	// Condition is the type of a condition that is True while the resource is paused, and removed afterwards. It needs a
	// status with a field Conditions of type []metav1.Condition. Defaults to "", which means no condition and no write.
	Condition string

	// Reconciler runs while the resource is not paused. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
	// logged has the last reason that was logged.
	logged perItem[string]
	status statusTypes
}

// pausedResource is the error of a paused resource. It is retried when the resource changes.
type pausedResource struct{ reason string }

func (e *pausedResource) Error() string   { return "paused: " + e.reason }
func (e *pausedResource) Unwrap() []error { return []error{ErrRetryAfter} }

func (r *Paused[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Paused"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Reconciler.
func (r *Paused[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the fields. If ctx requests recursion, it also validates Reconciler.
func (r *Paused[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Paused[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Paused[T]) describe(d *description) {
	r.init()
	d.is("Paused", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	if resource := newEmpty[T](); r.Condition != "" && given(resource) {
		d.require(r.status.hasConditions(resource),
			"may not define Condition: %s has no field Conditions of type []metav1.Condition in its status", typeName(resource))
	}
	d.check(func(ctx context.Context, problems *problems) {
		declareCondition(ctx, problems, r, d.label, r.Condition)
	})
	d.setsUp(r.Setup)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Reconciler unless the resource is paused.
func (r *Paused[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Paused[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	reason, err := r.reason(ctx, resource)
	if err != nil {
		return Result{}, fmt.Errorf("PausedBy: %w", err)
	}
	r.setCondition(resource, reason)
	if reason == "" {
		r.logged.forget(ctx, resource)
		return r.Reconciler.Reconcile(ctx, resource)
	}
	if last, _ := r.logged.get(ctx, resource); last != reason {
		logr.FromContextOrDiscard(ctx).Info("paused", "reason", reason)
	}
	now := rtime.RetrieveNow(ctx)
	r.logged.put(ctx, resource, reason, now, now.Add(stateTTL))
	paused := error(&pausedResource{reason: reason})
	if r.Condition == "" {
		paused = errors.Join(paused, ErrSkipStatusUpdate)
	}
	return Result{}, paused
}

// reason returns why the resource is paused, or "".
func (r *Paused[T]) reason(ctx context.Context, resource T) (string, error) {
	switch value := resource.GetAnnotations()[AnnotationPaused]; {
	case value == "true":
		return "annotation " + AnnotationPaused, nil
	case value != "" && value != "false":
		return value, nil
	case r.PausedBy != nil:
		return r.PausedBy(ctx, resource)
	}
	return "", nil
}

// setCondition sets the condition if there is a reason, and otherwise removes it.
func (r *Paused[T]) setCondition(resource T, reason string) {
	if r.Condition == "" {
		return
	}
	r.status.of(resource).changeConditions(resource, func(conditions *[]metav1.Condition) {
		switch {
		case reason != "":
			meta.SetStatusCondition(conditions, metav1.Condition{
				Type: r.Condition, Status: metav1.ConditionTrue, Reason: "Paused", Message: reason,
			})
		case meta.FindStatusCondition(*conditions, r.Condition) != nil:
			meta.RemoveStatusCondition(conditions, r.Condition)
		}
	})
}
