// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// keys are widgets that need a secret.
func keys() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.Secret{}},
		Given: []client.Object{widget("web", WidgetSpec{Host: "web.example.com"})},
	}
}

type generatedKey struct{ client.Client }

func (r *generatedKey) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.ID != "" {
		err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Status.ID}, &corev1.Secret{})
		if err == nil || !apierrs.IsNotFound(err) {
			return reconcile.Result{}, err
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: childMeta(w, ""),
		StringData: map[string]string{"host": w.Spec.Host},
	}
	secret.GenerateName = w.Name + "-key-"
	if err := controllerutil.SetControllerReference(w, secret, r.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.Create(ctx, secret); err != nil {
		return reconcile.Result{}, fmt.Errorf("creating the key: %w", err)
	}
	w.Status.ID = secret.Name
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

type namedKey struct{ client.Client }

func (r *namedKey) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name + "-key"}, secret)
	if apierrs.IsNotFound(err) {
		secret = &corev1.Secret{
			ObjectMeta: childMeta(w, w.Name+"-key"),
			StringData: map[string]string{"host": w.Spec.Host},
		}
		if err := controllerutil.SetControllerReference(w, secret, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		err = r.Create(ctx, secret)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("the key: %w", err)
	}
	if !metav1.IsControlledBy(secret, w) {
		return reconcile.Result{}, fmt.Errorf("secret %s is not of widget %s", secret.Name, w.Name)
	}
	if w.Status.ID == secret.Name {
		return reconcile.Result{}, nil
	}
	w.Status.ID = secret.Name
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

// pendingBuckets are buckets in a system that generates their names.
func pendingBuckets() converge.Scenario {
	return converge.Scenario{For: &Bucket{}, Given: []client.Object{bucket("logs", BucketSpec{Region: "eu"})}}
}

const (
	// pendingAnnotation is set while a bucket may have been created whose name is not known yet.
	pendingAnnotation = "corpus.trueup.dev/create-pending"
	// externalName is the annotation with the name that the system has generated.
	externalName = "corpus.trueup.dev/external-name"
)

// pendingBucket marks a Bucket before it creates the external bucket.
type pendingBucket struct{ converge.Env }

// load returns a bucket that has a finalizer, or nil if nothing more is to do.
func (r *pendingBucket) load(ctx context.Context, key client.ObjectKey) (*Bucket, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, key, b); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return nil, r.cleanUp(ctx, b)
	}
	if controllerutil.AddFinalizer(b, finalizer) {
		return b, r.Client.Update(ctx, b)
	}
	return b, nil
}

func (r *pendingBucket) prefix(b *Bucket) string { return b.Namespace + "/" + b.Name + "/" }

func (r *pendingBucket) cleanUp(ctx context.Context, b *Bucket) error {
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return nil
	}
	names, err := r.Cloud.List(ctx, r.prefix(b))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := deleteCloud(ctx, r.Cloud, name); err != nil {
			return fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return client.IgnoreNotFound(r.Client.Update(ctx, b))
}

// find returns the name of the bucket that an earlier attempt has created.
func (r *pendingBucket) find(ctx context.Context, b *Bucket) (string, error) {
	names, err := r.Cloud.List(ctx, r.prefix(b))
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

// create marks the Bucket, creates the external bucket, and records the name.
func (r *pendingBucket) create(ctx context.Context, b *Bucket) error {
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, pendingAnnotation, "true")
	if err := r.Client.Update(ctx, b); err != nil {
		return err
	}
	name, err := r.Cloud.CreateNamed(ctx, r.prefix(b), b.Spec.Region)
	if err != nil {
		return err
	}
	return r.record(ctx, b, name)
}

// record replaces the mark by the name.
func (r *pendingBucket) record(ctx context.Context, b *Bucket, name string) error {
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, externalName, name)
	delete(b.Annotations, pendingAnnotation)
	return r.Client.Update(ctx, b)
}

type forgottenPending struct{ pendingBucket }

func (r *forgottenPending) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b, err := r.load(ctx, req.NamespacedName)
	if b == nil || err != nil || b.Annotations[externalName] != "" {
		return reconcile.Result{}, err
	}
	if b.Annotations[pendingAnnotation] != "" {
		name, err := r.find(ctx, b)
		if err != nil {
			return reconcile.Result{}, err
		}
		delete(b.Annotations, pendingAnnotation)
		if err := r.Client.Update(ctx, b); err != nil {
			return reconcile.Result{}, err
		}
		if name != "" {
			return reconcile.Result{}, r.record(ctx, b, name)
		}
	}
	return reconcile.Result{}, r.create(ctx, b)
}

type keptPending struct{ pendingBucket }

func (r *keptPending) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b, err := r.load(ctx, req.NamespacedName)
	if b == nil || err != nil || b.Annotations[externalName] != "" {
		return reconcile.Result{}, err
	}
	if b.Annotations[pendingAnnotation] != "" {
		name, err := r.find(ctx, b)
		if err != nil {
			return reconcile.Result{}, err
		}
		if name != "" {
			return reconcile.Result{}, r.record(ctx, b, name)
		}
	}
	return reconcile.Result{}, r.create(ctx, b)
}
