// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// version is a version of the controller.
type version struct {
	// sync brings the children of an app up to date.
	sync func(*session) error
	// cleanUp deletes what is not garbage-collected. The object has the finalizers of the version until then. They are set
	// in each reconcile, unless sync does that.
	cleanUp    func(*session) error
	finalizers []string
	// keepsFinalizers is set if sync adds finalizers.
	keepsFinalizers bool
}

// controller reconciles apps with a version.
type controller struct {
	client.Client
	version

	cloud converge.Cloud
}

// session is one reconcile.
type session struct {
	*controller
	*App

	ctx context.Context
}

// Reconcile implements reconcile.Reconciler.
func (c *controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	app := &App{}
	if err := c.Get(ctx, req.NamespacedName, app); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	s := &session{controller: c, App: app, ctx: ctx}
	if app.DeletionTimestamp != nil {
		return reconcile.Result{}, s.finalize()
	}
	if !c.keepsFinalizers {
		if err := s.addFinalizers(); err != nil {
			return reconcile.Result{}, err
		}
	}
	before := app.DeepCopy().Status
	err := c.sync(s)
	if !equality.Semantic.DeepEqual(before, app.Status) {
		err = errors.Join(err, c.Client.Status().Update(ctx, app))
	}
	return reconcile.Result{}, err
}

// addFinalizers adds the finalizers of the version.
func (s *session) addFinalizers() error {
	return s.change(func() {
		for _, finalizer := range s.finalizers {
			controllerutil.AddFinalizer(s.App, finalizer)
		}
	})
}

// finalize cleans up, and removes the finalizers of the version.
func (s *session) finalize() error {
	if !slices.ContainsFunc(s.finalizers, func(f string) bool { return controllerutil.ContainsFinalizer(s.App, f) }) {
		return nil
	}
	if s.cleanUp != nil {
		if err := s.cleanUp(s); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(s.change(func() {
		for _, finalizer := range s.finalizers {
			controllerutil.RemoveFinalizer(s.App, finalizer)
		}
	}))
}

// change changes the metadata of the app if that is necessary. The status remains the one of the reconcile.
func (s *session) change(mutate func()) error {
	before := s.DeepCopy()
	mutate()
	if equality.Semantic.DeepEqual(before.ObjectMeta, s.ObjectMeta) {
		return nil
	}
	app := s.App
	status := app.Status
	err := s.Update(s.ctx, s.App)
	app.Status = status
	return err
}

// annotate sets an annotation of the app, or removes it if the value is empty.
func (s *session) annotate(key, value string) error {
	return s.change(func() {
		if value == "" {
			delete(s.Annotations, key)
			return
		}
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value)
	})
}

// ensure creates or updates a child.
func (s *session) ensure(child client.Object, mutate func() error) error {
	_, err := controllerutil.CreateOrUpdate(s.ctx, s.Client, child, func() error {
		if err := mutate(); err != nil {
			return err
		}
		return controllerutil.SetControllerReference(s.App, child, s.Scheme())
	})
	return err
}

// create creates a child that does not exist. It never changes it.
func (s *session) create(child client.Object) error {
	err := s.Get(s.ctx, client.ObjectKeyFromObject(child), child.DeepCopyObject().(client.Object))
	if err == nil || client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(s.App, child, s.Scheme()); err != nil {
		return err
	}
	return s.Create(s.ctx, child)
}

// remove deletes a child if it exists.
func (s *session) remove(child client.Object) error {
	err := s.Get(s.ctx, client.ObjectKeyFromObject(child), child)
	if err != nil || child.GetDeletionTimestamp() != nil || !metav1.IsControlledBy(child, s.App) {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(s.Delete(s.ctx, child, client.Preconditions{UID: new(child.GetUID())}))
}

// child returns the metadata of a child.
func (s *session) child(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + suffix}
}

// config keeps a ConfigMap with the image.
func (s *session) config(suffix string) error {
	config := &corev1.ConfigMap{ObjectMeta: s.child(suffix)}
	return s.ensure(config, func() error {
		config.Data = map[string]string{"image": s.Spec.Image}
		return nil
	})
}

// removeConfig deletes a ConfigMap.
func (s *session) removeConfig(suffix string) error {
	return s.remove(&corev1.ConfigMap{ObjectMeta: s.child(suffix)})
}

// deployment keeps a Deployment with the name of the app. New ones have labels, and mutate changes all.
func (s *session) deployment(labels map[string]string, mutate func(*appsv1.Deployment) error) error {
	d := &appsv1.Deployment{ObjectMeta: s.child("")}
	return s.ensure(d, func() error {
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template.Labels = labels
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		}
		d.Spec.Replicas = new(int32(s.Spec.Size))
		d.Spec.Template.Spec.Containers[0].Image = s.Spec.Image
		return mutate(d)
	})
}

func unchanged(*appsv1.Deployment) error { return nil }
