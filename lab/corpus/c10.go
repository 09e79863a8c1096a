// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

const kubebuilderFinalizers = "Kubebuilder Book, Using Finalizers. " +
	"https://book.kubebuilder.io/reference/using-finalizers"

// C10: the protocol of finalizers.
var c10 = []Entry{
	{
		Name: "c10-finalizer-after-bucket", Class: "C10",
		About: "The bucket is created before the finalizer is added. If the object is deleted in between, the bucket stays.",
		Source: "Kubernetes KEP-980, Finalizer Protection for Service LoadBalancers: load balancers were left behind, and " +
			"now the finalizer comes first. " +
			"https://github.com/kubernetes/enhancements/issues/980",
		Buggy: with(bucketWorld, func(env converge.Env) reconcile.Reconciler {
			return lateFinalizer{bucketReconciler{env}}
		}),
		Correct: with(bucketWorld, func(env converge.Env) reconcile.Reconciler { return bucketReconciler{env} }),
	},
	{
		Name: "c10-cleanup-error-logged", Class: "C10", Faults: 1,
		About:  "An error of the cleanup is logged, and the finalizer is removed nevertheless.",
		Source: kubebuilderFinalizers,
		Buggy: with(bucketWorld, func(env converge.Env) reconcile.Reconciler {
			return hastyRelease{bucketReconciler{env}}
		}),
		Correct: with(bucketWorld, func(env converge.Env) reconcile.Reconciler { return bucketReconciler{env} }),
	},
	{
		Name: "c10-cleanup-not-repeatable", Class: "C10", Faults: 1,
		About: "The cleanup fails if the bucket no longer exists. After an interruption at that point, the finalizer " +
			"stays forever.",
		Source: "Deletion has to be idempotent: " + kubebuilderFinalizers,
		Buggy: with(bucketWorld, func(env converge.Env) reconcile.Reconciler {
			return strictRelease{bucketReconciler{env}}
		}),
		Correct: with(bucketWorld, func(env converge.Env) reconcile.Reconciler { return bucketReconciler{env} }),
	},
	{
		Name: "c10-finalizer-before-cleanup", Class: "C10", Faults: 1,
		About: "The finalizer is removed before the bucket is deleted.",
		Source: "Kubernetes KEP-2644, Honor Persistent Volume Reclaim Policy: volumes were left behind when the object " +
			"went before its storage. " +
			"https://github.com/kubernetes/enhancements/issues/2644",
		Buggy: with(bucketWorld, func(env converge.Env) reconcile.Reconciler {
			return earlyRemoval{bucketReconciler{env}}
		}),
		Correct: with(bucketWorld, func(env converge.Env) reconcile.Reconciler { return bucketReconciler{env} }),
	},
	{
		Name: "c10-cleanup-given-up", Class: "C10", Faults: 2,
		About:  "The cleanup is abandoned after two failures, so that the object does not get stuck.",
		Source: "A failed cleanup has to be retried: " + kubebuilderFinalizers,
		Buggy: with(bucketWorld, func(env converge.Env) reconcile.Reconciler {
			return impatientRelease{bucketReconciler{env}}
		}),
		Correct: with(bucketWorld, func(env converge.Env) reconcile.Reconciler { return bucketReconciler{env} }),
	},
	{
		Name: "c10-waits-for-garbage-collector", Class: "C10",
		About: "The finalizer waits for the deletion of owned objects, which the garbage collector deletes only after " +
			"their owner.",
		Source: "Kubernetes documentation, Garbage Collection, Background cascading deletion. " +
			"https://kubernetes.io/docs/concepts/architecture/garbage-collection/#background-deletion",
		Buggy:   with(drainWorld, func(env converge.Env) reconcile.Reconciler { return &drainReconciler{env.Client, false} }),
		Correct: with(drainWorld, func(env converge.Env) reconcile.Reconciler { return &drainReconciler{env.Client, true} }),
	},
}

// bucketReconciler has an external bucket for each Bucket, with its region as content.
type bucketReconciler struct{ converge.Env }

func (r bucketReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		if err := r.release(ctx, b); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.unprotect(ctx, b)
	}
	if err := r.protect(ctx, b); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.provision(ctx, b)
}

func (r bucketReconciler) protect(ctx context.Context, b *Bucket) error {
	if !controllerutil.AddFinalizer(b, finalizer) {
		return nil
	}
	if err := r.Client.Update(ctx, b); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return nil
}

func (r bucketReconciler) unprotect(ctx context.Context, b *Bucket) error {
	if !controllerutil.RemoveFinalizer(b, finalizer) {
		return nil
	}
	if err := r.Client.Update(ctx, b); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

func (r bucketReconciler) provision(ctx context.Context, b *Bucket) error {
	region, err := r.Cloud.Get(ctx, bucketKey(b))
	switch {
	case err == nil && region == b.Spec.Region:
		return nil
	case err != nil && !errors.Is(err, converge.ErrAbsent):
		return fmt.Errorf("look at bucket: %w", err)
	}
	if err := r.Cloud.Put(ctx, bucketKey(b), b.Spec.Region); err != nil {
		return fmt.Errorf("put bucket: %w", err)
	}
	return nil
}

func (r bucketReconciler) release(ctx context.Context, b *Bucket) error {
	if err := r.Cloud.Delete(ctx, bucketKey(b)); err != nil && !errors.Is(err, converge.ErrAbsent) {
		return fmt.Errorf("delete bucket: %w", err)
	}
	return nil
}

func bucketKey(b *Bucket) string {
	return b.Namespace + "/" + b.Name
}

func bucketWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Bucket{},
		Steps: converge.Lifecycle(bucket("a", BucketSpec{Region: "north"}), func(b *Bucket) { b.Spec.Region = "south" }),
	}
}

type lateFinalizer struct{ bucketReconciler }

func (r lateFinalizer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		if err := r.release(ctx, b); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.unprotect(ctx, b)
	}
	if err := r.provision(ctx, b); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.protect(ctx, b)
}

type hastyRelease struct{ bucketReconciler }

func (r hastyRelease) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp.IsZero() {
		return r.bucketReconciler.Reconcile(ctx, req)
	}
	if err := r.release(ctx, b); err != nil {
		log.FromContext(ctx).Error(err, "cleanup failed")
	}
	return reconcile.Result{}, r.unprotect(ctx, b)
}

type strictRelease struct{ bucketReconciler }

func (r strictRelease) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp.IsZero() {
		return r.bucketReconciler.Reconcile(ctx, req)
	}
	if err := r.Cloud.Delete(ctx, bucketKey(b)); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete bucket: %w", err)
	}
	return reconcile.Result{}, r.unprotect(ctx, b)
}

type earlyRemoval struct{ bucketReconciler }

func (r earlyRemoval) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp.IsZero() {
		return r.bucketReconciler.Reconcile(ctx, req)
	}
	if err := r.unprotect(ctx, b); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.release(ctx, b)
}

type impatientRelease struct{ bucketReconciler }

const failuresAnnotation = "corpus.trueup.dev/cleanup-failures"

func (r impatientRelease) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp.IsZero() {
		return r.bucketReconciler.Reconcile(ctx, req)
	}
	failures, _ := strconv.Atoi(b.Annotations[failuresAnnotation])
	if failures < 2 {
		if err := r.release(ctx, b); err != nil {
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, failuresAnnotation, strconv.Itoa(failures+1))
			return reconcile.Result{}, errors.Join(err, r.Client.Update(ctx, b))
		}
	}
	return reconcile.Result{}, r.unprotect(ctx, b)
}

// drainReconciler deletes the deployment of a widget before the widget.
type drainReconciler struct {
	client.Client
	deletes bool
}

func (r *drainReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return r.drain(ctx, w)
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	_, err := applyDeployment(ctx, r.Client, w)
	return reconcile.Result{}, err
}

func (r *drainReconciler) drain(ctx context.Context, w *Widget) (reconcile.Result, error) {
	deployment := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(w), deployment)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err == nil && metav1.IsControlledBy(deployment, w) {
		if r.deletes && deployment.DeletionTimestamp.IsZero() {
			if err := r.Delete(ctx, deployment, client.Preconditions{UID: &deployment.UID}); client.IgnoreNotFound(err) != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{RequeueAfter: 5 * time.Second}, nil
	}
	controllerutil.RemoveFinalizer(w, finalizer)
	return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
}

func drainWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&appsv1.Deployment{}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1", Replicas: 2}), withImage("v2")),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}
