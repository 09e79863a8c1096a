// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// bucketKeeper has a bucket outside of the cluster for each Secret. It creates the bucket first, and adds its finalizer
// later.
type bucketKeeper struct {
	client.Client
	cloud Cloud
}

const bucketFinalizer = "example.com/bucket"

func (r *bucketKeeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if secret.DeletionTimestamp != nil {
		if err := r.cloud.Delete(ctx, req.Name); err != nil {
			return reconcile.Result{}, err
		}
		controllerutil.RemoveFinalizer(secret, bucketFinalizer)
		return reconcile.Result{}, r.Update(ctx, secret)
	}
	if err := r.cloud.Put(ctx, req.Name, "bucket"); err != nil {
		return reconcile.Result{}, err
	}
	if controllerutil.AddFinalizer(secret, bucketFinalizer) {
		return reconcile.Result{}, r.Update(ctx, secret)
	}
	return reconcile.Result{}, nil
}

// keeping is a scenario of a bucketKeeper.
func keeping() Scenario {
	return Scenario{
		Scheme: scheme.Scheme,
		New:    func(e Env) reconcile.Reconciler { return &bucketKeeper{e.Client, e.Cloud} },
		For:    &corev1.Secret{},
		Steps:  Lifecycle(newSecret("a")),
	}
}
