// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

var (
	degradedStays = Entry{
		Name: "c12-degraded-stays", Class: "C12", Faults: 2,
		About: "After two failures the condition Degraded is set, and it is never removed.",
		Source: "Kubernetes API conventions, Typical status properties: conditions describe the current state. " +
			apiConventions,
		Buggy:   with(degradedWorld, func(env converge.Env) reconcile.Reconciler { return &degradedReconciler{env, false} }),
		Correct: with(degradedWorld, func(env converge.Env) reconcile.Reconciler { return &degradedReconciler{env, true} }),
	}
	lostCondition = Entry{
		Name: "c12-condition-of-another-lost", Class: "C12", Faults: 1,
		About: "A merge patch without a resourceVersion replaces the whole list of conditions, including one that another " +
			"controller has added.",
		Source: "controller-runtime, client.MergeFromOptions: lists are replaced, and the lock keeps what others have " +
			"written. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/client#MergeFromOptions",
		Buggy: with(verifiedWorld, func(env converge.Env) reconcile.Reconciler {
			return &patchReconciler{env.Client, client.MergeFrom}
		}),
		Correct: with(verifiedWorld, func(env converge.Env) reconcile.Reconciler {
			return &patchReconciler{env.Client, func(obj client.Object) client.Patch {
				return client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
			}}
		}),
	}
)

type shadowReconciler struct{ client.Client }

func (r *shadowReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	err := r.Get(ctx, req.NamespacedName, w)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if applied(ctx, r.Client, w) {
		return reconcile.Result{}, nil
	}
	before := w.DeepCopy()
	defer func() {
		report(w, err)
		if failed := writeStatus(ctx, r.Client, before, w); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config: %w", err)
	}
	return reconcile.Result{}, err
}

type deferReconciler struct{ client.Client }

func (r *deferReconciler) Reconcile(ctx context.Context, req reconcile.Request) (_ reconcile.Result, err error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if applied(ctx, r.Client, w) {
		return reconcile.Result{}, nil
	}
	before := w.DeepCopy()
	defer func() {
		report(w, err)
		if failed := writeStatus(ctx, r.Client, before, w); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config: %w", err)
	}
	return reconcile.Result{}, nil
}

func report(w *Widget, err error) {
	if err != nil {
		setReady(w, false, "ApplyFailed", err.Error())
		return
	}
	setReady(w, true, "Applied", "")
}

// applied reports whether the status of a widget shows that everything was applied.
func applied(ctx context.Context, c client.Client, w *Widget) bool {
	config := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKeyFromObject(w), config)
	return err == nil && metav1.IsControlledBy(config, w) && isReady(w) && w.Status.ObservedGeneration == w.Generation
}

// degradedReconciler has an external disk.
type degradedReconciler struct {
	converge.Env
	recovers bool
}

func (r *degradedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	key := "disk/" + w.Namespace + "/" + w.Name
	if !w.DeletionTimestamp.IsZero() {
		if err := r.Cloud.Delete(ctx, key); err != nil && !errors.Is(err, converge.ErrAbsent) {
			return reconcile.Result{}, err
		}
		controllerutil.RemoveFinalizer(w, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(r.Client.Update(ctx, w))
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	before := w.DeepCopy()
	if err := r.resize(ctx, key, w.Spec.Storage); err != nil {
		w.Status.Failures++
		if w.Status.Failures >= 2 {
			apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
				Type: "Degraded", Status: metav1.ConditionTrue, Reason: "CloudFails", ObservedGeneration: w.Generation,
			})
		}
		setReady(w, false, "Failed", "the disk does not have the size that is wanted")
		return reconcile.Result{}, errors.Join(err, writeStatus(ctx, r.Client, before, w))
	}
	w.Status.Failures = 0
	if r.recovers {
		apimeta.RemoveStatusCondition(&w.Status.Conditions, "Degraded")
	}
	setReady(w, true, "Provisioned", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func (r *degradedReconciler) resize(ctx context.Context, key, size string) error {
	current, err := r.Cloud.Get(ctx, key)
	if err == nil && current == size {
		return nil
	}
	if err != nil && !errors.Is(err, converge.ErrAbsent) {
		return err
	}
	return r.Cloud.Put(ctx, key, size)
}

func degradedWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Storage: "1Gi"}), func(w *Widget) { w.Spec.Storage = "2Gi" }),
	}
}

// patchReconciler shares the conditions with another controller.
type patchReconciler struct {
	client.Client
	patch func(client.Object) client.Patch
}

func (r *patchReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	setReady(w, true, "Applied", "")
	if equality.Semantic.DeepEqual(before.Status, w.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, w, r.patch(before)))
}

// verifiedWorld has a controller that verifies each widget once, and records that.
func verifiedWorld() converge.Scenario {
	const annotation = "corpus.trueup.dev/verified"
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.ConfigMap{}},
		Steps: changeData(),
		World: []converge.Actor{{
			Name: "verifier", For: &Widget{},
			Act: func(ctx context.Context, c client.Client, obj client.Object) error {
				w := obj.(*Widget)
				if w.Annotations[annotation] != "" || !w.DeletionTimestamp.IsZero() {
					return nil
				}
				if apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
					Type: "Verified", Status: metav1.ConditionTrue, Reason: "Passed",
				}) {
					if err := c.Status().Update(ctx, w); err != nil {
						return err
					}
				}
				metav1.SetMetaDataAnnotation(&w.ObjectMeta, annotation, "passed")
				return c.Update(ctx, w)
			},
		}},
		Desired: func(s converge.State) error {
			w := widget("a", WidgetSpec{})
			switch {
			case !s.Get(w):
				return nil
			case !isReady(w):
				return errors.New("not ready")
			case !apimeta.IsStatusConditionTrue(w.Status.Conditions, "Verified"):
				return errors.New("the condition of the verifier is lost")
			}
			return nil
		},
	}
}
