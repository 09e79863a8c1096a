// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

const writingControllers = "Kubernetes community, Writing Controllers: percolate errors to the top level for " +
	"consistent requeuing. " +
	"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/controllers.md"

// C14: a failure or a delay that is not followed by another attempt.
var c14 = []Entry{
	{
		Name: "c14-error-logged", Class: "C14", Faults: 1,
		About:  "The error of the second write is logged but not returned.",
		Source: writingControllers,
		Buggy: with(frontendWorld, func(env converge.Env) reconcile.Reconciler {
			return &loggingReconciler{env.Client, 1}
		}),
		Correct: with(frontendWorld, func(env converge.Env) reconcile.Reconciler {
			return &frontendReconciler{env.Client, true}
		}),
	},
	{
		Name: "c14-retried-on-the-spot-only", Class: "C14", Faults: 2,
		About:  "A transient error is retried once immediately. If that fails as well, it is logged but not returned.",
		Source: writingControllers,
		Buggy: with(frontendWorld, func(env converge.Env) reconcile.Reconciler {
			return &loggingReconciler{env.Client, 2}
		}),
		Correct: with(frontendWorld, func(env converge.Env) reconcile.Reconciler {
			return &frontendReconciler{env.Client, true}
		}),
	},
	{
		Name: "c14-all-client-errors-terminal", Class: "C14", Faults: 1,
		About: "Errors with codes from 400 to 499 are treated as permanent errors of the user. They include conflicts and " +
			"too many requests.",
		Source: "controller-runtime, reconcile.TerminalError: there is no other attempt. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/reconcile#TerminalError",
		Buggy: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
			return &terminalReconciler{env.Client, clientError}
		}),
		Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
			return &terminalReconciler{env.Client, apierrors.IsInvalid}
		}),
	},
	{
		Name: "c14-deadline-without-timer", Class: "C14",
		About: "A rollout without progress must be reported after ten minutes, and no event triggers a request by then.",
		Source: "kubernetes/kubernetes#34458: the progress deadline of a deployment depended on the next resync. " +
			"https://github.com/kubernetes/kubernetes/issues/34458",
		Buggy: with(deadlineWorld, func(env converge.Env) reconcile.Reconciler {
			return &deadlineReconciler{env.Client, false}
		}),
		Correct: with(deadlineWorld, func(env converge.Env) reconcile.Reconciler {
			return &deadlineReconciler{env.Client, true}
		}),
	},
	{
		Name: "c14-remaining-time-rounded-down", Class: "C14",
		About: "The remaining time is truncated to whole seconds. Less than a second becomes zero, which means no requeue.",
		Source: "kubernetes/kubernetes#39785: checks come too early by fractions of a second, and a second was added to " +
			"all of them. " +
			"https://github.com/kubernetes/kubernetes/issues/39785#issuecomment-279959133",
		Buggy: with(warmUpWorld, func(env converge.Env) reconcile.Reconciler {
			return &warmUpReconciler{env.Client, wholeSeconds}
		}),
		Correct: with(warmUpWorld, func(env converge.Env) reconcile.Reconciler {
			return &warmUpReconciler{env.Client, plusOneSecond}
		}),
	},
	{
		Name: "c14-failures-are-final", Class: "C14", Faults: 2,
		About: "After two failures of any kind, the object is marked as failed permanently.",
		Source: "controller-runtime, reconcile.Reconciler: errors are retried with backoff for as long as it takes. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/reconcile#TypedReconciler",
		Buggy: with(degradedWorld, func(env converge.Env) reconcile.Reconciler {
			return &finalReconciler{degradedReconciler{env, true}}
		}),
		Correct: with(degradedWorld, func(env converge.Env) reconcile.Reconciler { return &degradedReconciler{env, true} }),
	},
	{
		Name: "c14-kind-not-installed", Class: "C14", Faults: 1,
		About: "Without the CustomResourceDefinition of buckets, the bucket of a widget is left out. No event reports that " +
			"the definition is installed later.",
		Source: writingControllers,
		Buggy: with(optionalWorld, func(env converge.Env) reconcile.Reconciler {
			return &optionalReconciler{env.Client, 0}
		}),
		Correct: with(optionalWorld, func(env converge.Env) reconcile.Reconciler {
			return &optionalReconciler{env.Client, time.Minute}
		}),
	},
}

// loggingReconciler is frontendReconciler that defers some errors to the next event.
type loggingReconciler struct {
	client.Client
	attempts int
}

func (r *loggingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("config map: %w", err)
	}
	for attempt := 1; ; attempt++ {
		err := applyService(ctx, r.Client, w)
		switch {
		case err == nil:
			return reconcile.Result{}, nil
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
			apierrors.IsInvalid(err):
			return reconcile.Result{}, fmt.Errorf("service: %w", err)
		case attempt == r.attempts:
			log.FromContext(ctx).Error(err, "the service will be updated later")
			return reconcile.Result{}, nil
		}
	}
}

type terminalReconciler struct {
	client.Client
	terminal func(error) bool
}

func (r *terminalReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		if r.terminal(err) {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

func clientError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// deadlineReconciler gives a deployment ten minutes.
type deadlineReconciler struct {
	client.Client
	timer bool
}

func (r *deadlineReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	const deadline = 10 * time.Minute
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment, err := applyDeployment(ctx, r.Client, w)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("apply deployment: %w", err)
	}
	before, result := w.DeepCopy(), reconcile.Result{}
	if fullyRolledOut(deployment) {
		setReady(w, true, "RolledOut", "")
		return result, writeStatus(ctx, r.Client, before, w)
	}
	setReady(w, false, "RollingOut", "")
	since := apimeta.FindStatusCondition(w.Status.Conditions, readyCondition).LastTransitionTime
	switch remaining := time.Until(since.Add(deadline)); {
	case remaining <= 0:
		setReady(w, false, "DeadlineExceeded", "the deployment makes no progress")
	case r.timer:
		result.RequeueAfter = remaining + time.Second
	}
	return result, writeStatus(ctx, r.Client, before, w)
}

func deadlineWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Image: "v1", Replicas: 2})
	return converge.Scenario{
		For:  &Widget{},
		Owns: []client.Object{&appsv1.Deployment{}},
		Steps: converge.Steps(
			converge.Apply(w), converge.Sleep(time.Hour), converge.Settle(), converge.Delete(w), converge.Settle(),
		),
		World: []converge.Actor{converge.Deployments(converge.Fail)},
		Desired: func(s converge.State) error {
			current := w.DeepCopy()
			if !s.Get(current) {
				return nil
			}
			if c := apimeta.FindStatusCondition(current.Status.Conditions, readyCondition); c == nil ||
				c.Reason != "DeadlineExceeded" {
				return fmt.Errorf("the condition after an hour is %v", c)
			}
			return nil
		},
	}
}

// warmUpReconciler enables traffic for a widget after some time.
type warmUpReconciler struct {
	client.Client
	wait func(remaining time.Duration) time.Duration
}

func (r *warmUpReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config: %w", err)
	}
	before := w.DeepCopy()
	if remaining := time.Until(w.CreationTimestamp.Add(10 * time.Second)); remaining > 0 {
		setReady(w, false, "WarmingUp", "")
		return reconcile.Result{RequeueAfter: r.wait(remaining)}, writeStatus(ctx, r.Client, before, w)
	}
	setReady(w, true, "Warm", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func wholeSeconds(remaining time.Duration) time.Duration {
	return remaining.Truncate(time.Second)
}

func plusOneSecond(remaining time.Duration) time.Duration {
	return remaining + time.Second
}

func warmUpWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}})
	return converge.Scenario{
		For:  &Widget{},
		Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Steps(
			converge.Apply(w), converge.Sleep(time.Minute), converge.Settle(), converge.Delete(w), converge.Settle(),
		),
	}
}

// finalReconciler tries twice.
type finalReconciler struct{ degradedReconciler }

func (r *finalReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.DeletionTimestamp.IsZero() && w.Status.Failures >= 2 && controllerutil.ContainsFinalizer(w, finalizer) {
		log.FromContext(ctx).Info("the widget has failed")
		return reconcile.Result{}, nil
	}
	return r.degradedReconciler.Reconcile(ctx, req)
}

// optionalReconciler creates the bucket of a widget, unless buckets are not installed.
type optionalReconciler struct {
	client.Client
	// retry is the time until it looks again.
	retry time.Duration
}

func (r *optionalReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	b := &Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, b, func() error {
		b.Spec.Region = w.Spec.Storage
		return controllerutil.SetControllerReference(w, b, r.Scheme())
	})
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("buckets are not installed")
		return reconcile.Result{RequeueAfter: r.retry}, nil
	}
	return reconcile.Result{}, err
}

func optionalWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&Bucket{}},
		With:  []converge.Fault{converge.FaultKindRemoved},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Storage: "north"}), func(w *Widget) { w.Spec.Storage = "south" }),
	}
}
