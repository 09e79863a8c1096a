// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

var correctOutside = []Entry{
	{
		Name:    "correct-two-buckets",
		About:   "Two objects with a bucket each, a finalizer that is added first, and an idempotent cleanup.",
		Source:  kubebuilderFinalizers,
		Correct: with(bucketsWorld, func(env converge.Env) reconcile.Reconciler { return bucketReconciler{env} }),
	},
	{
		Name: "correct-backoff-of-its-own",
		About: "Counts failures in the status and requeues with increasing delays, without returning the error. A success " +
			"resets the count.",
		Source: "controller-runtime, reconcile.Result.RequeueAfter. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/reconcile#Result",
		Correct: with(backoffWorld, func(env converge.Env) reconcile.Reconciler { return &backoffReconciler{env} }),
	},
	{
		Name:  "correct-name-given-by-cloud",
		About: "The cloud names the disk. A lookup by content finds the disk of an interrupted attempt.",
		Source: "AWS Load Balancer Controller: what it has made is found by tags. " +
			"https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/how-it-works/",
		Correct: with(diskWorld, func(env converge.Env) reconcile.Reconciler { return &diskReconciler{env} }),
	},
}

func bucketsWorld() converge.Scenario {
	a, b := bucket("a", BucketSpec{Region: "north"}), bucket("b", BucketSpec{Region: "south"})
	return converge.Scenario{
		For: &Bucket{},
		Steps: converge.Steps(
			converge.Apply(a), converge.Apply(b), converge.Settle(),
			converge.Change(a, func(b *Bucket) { b.Spec.Region = "west" }), converge.Delete(b), converge.Settle(),
			converge.Delete(a), converge.Settle(),
		),
	}
}

// backoffReconciler has an external value.
type backoffReconciler struct{ converge.Env }

func (r *backoffReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	key := "record/" + w.Namespace + "/" + w.Name
	if !w.DeletionTimestamp.IsZero() {
		if err := r.Cloud.Delete(ctx, key); err != nil && !errors.Is(err, converge.ErrAbsent) {
			return reconcile.Result{}, err
		}
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(r.Client.Update(ctx, w))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	before := w.DeepCopy()
	if last := w.Status.LastSyncTime; last != nil && w.Status.ObservedGeneration == w.Generation {
		if remaining := time.Until(last.Add(time.Second << w.Status.Failures)); remaining > 0 {
			return reconcile.Result{RequeueAfter: remaining}, nil
		}
	}
	value, err := r.Cloud.Get(ctx, key)
	if errors.Is(err, converge.ErrAbsent) || err == nil && value != w.Spec.Host {
		err = r.Cloud.Put(ctx, key, w.Spec.Host)
	}
	if err != nil {
		w.Status.Failures, w.Status.LastSyncTime = min(w.Status.Failures+1, 10), new(metav1.Now())
		setReady(w, false, "CloudFails", err.Error())
		return reconcile.Result{RequeueAfter: time.Second << w.Status.Failures}, writeStatus(ctx, r.Client, before, w)
	}
	w.Status.Failures, w.Status.LastSyncTime = 0, nil
	setReady(w, true, "Applied", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func backoffWorld() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Host: "a.example.com"}), func(w *Widget) {
			w.Spec.Host = "b.example.com"
		}),
	}
}

// diskReconciler has a disk with a tag. The cloud names disks, and an attempt with an unknown result may have created
// one.
type diskReconciler struct{ converge.Env }

func (r *diskReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	tag := "disk-of-" + w.Namespace + "-" + w.Name + "-"
	disks, err := r.Cloud.List(ctx, tag)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("list disks: %w", err)
	}
	keep := 1
	if !w.DeletionTimestamp.IsZero() {
		keep = 0
	} else if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	for _, disk := range disks[min(keep, len(disks)):] {
		if err := r.Cloud.Delete(ctx, disk); err != nil && !errors.Is(err, converge.ErrAbsent) {
			return reconcile.Result{}, fmt.Errorf("delete disk %s: %w", disk, err)
		}
	}
	if keep == 0 {
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(r.Client.Update(ctx, w))
		}
		return reconcile.Result{}, nil
	}
	if len(disks) == 0 {
		name, err := r.Cloud.CreateNamed(ctx, tag, w.Spec.Storage)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("create disk: %w", err)
		}
		disks = append(disks, name)
	}
	before := w.DeepCopy()
	w.Status.ID = disks[0]
	return reconcile.Result{RequeueAfter: time.Hour}, writeStatus(ctx, r.Client, before, w)
}

func diskWorld() converge.Scenario {
	return converge.Scenario{For: &Widget{}, Given: []client.Object{widget("a", WidgetSpec{Storage: "1Gi"})}}
}
