// SPDX-License-Identifier: Apache-2.0

package states

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

const (
	finalizer = "states.trueup.dev/cleanup"
	appLabel  = "states.trueup.dev/app"
)

// controller reconciles apps: a function brings the children up to date, and the condition Ready reports its error.
type controller struct {
	client.Client

	cloud converge.Cloud
	sync  func(*session) error
}

// session is one reconcile.
type session struct {
	*controller
	*App

	ctx    context.Context
	result reconcile.Result
}

// Reconcile implements reconcile.Reconciler.
func (c *controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	app := &App{}
	if err := c.Get(ctx, req.NamespacedName, app); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if app.DeletionTimestamp != nil {
		return reconcile.Result{}, c.cleanUp(ctx, app)
	}
	before := app.Status
	before.Conditions, before.Members = app.DeepCopy().Status.Conditions, app.DeepCopy().Status.Members
	s := &session{controller: c, App: app, ctx: ctx}
	err := c.sync(s)
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "UpToDate"}
	if err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", err.Error()
	}
	apimeta.SetStatusCondition(&app.Status.Conditions, ready)
	if !equality.Semantic.DeepEqual(before, app.Status) {
		err = errors.Join(err, c.Status().Update(ctx, app))
	}
	return s.result, err
}

// cleanUp deletes what is outside of the cluster.
func (c *controller) cleanUp(ctx context.Context, app *App) error {
	if !controllerutil.ContainsFinalizer(app, finalizer) {
		return nil
	}
	if err := c.removeRecords(ctx, app, ""); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(app, finalizer)
	return client.IgnoreNotFound(c.Update(ctx, app))
}

// removeRecords deletes the records of an app, except one.
func (c *controller) removeRecords(ctx context.Context, app *App, keep string) error {
	keys, err := c.cloud.List(ctx, app.Name+"/")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if key == keep {
			continue
		}
		if err := c.cloud.Delete(ctx, key); err != nil && !errors.Is(err, converge.ErrAbsent) {
			return err
		}
	}
	return nil
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

// config is a config map with the name of the app.
func (s *session) config(fill func(*corev1.ConfigMap) error) error {
	config := &corev1.ConfigMap{ObjectMeta: s.child("")}
	return s.ensure(config, func() error {
		if config.Data == nil {
			config.Data = map[string]string{}
		}
		return fill(config)
	})
}

// deployment is a deployment with the name of the app.
func (s *session) deployment(fill func(*appsv1.Deployment, *corev1.Container) error) error {
	d := &appsv1.Deployment{ObjectMeta: s.child("")}
	return s.ensure(d, func() error {
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: s.Name}}
			d.Spec.Template.Labels = map[string]string{appLabel: s.Name}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/app:v1"}}
		}
		return fill(d, &d.Spec.Template.Spec.Containers[0])
	})
}

// service is a service with a name.
func (s *session) service(name string, ports []corev1.ServicePort) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	return s.ensure(service, func() error {
		service.Labels = map[string]string{appLabel: s.Name}
		service.Spec.Selector = map[string]string{appLabel: s.Name}
		for i := range ports {
			ports[i].Protocol, ports[i].TargetPort = corev1.ProtocolTCP, intstr.FromInt32(ports[i].Port)
		}
		service.Spec.Ports = ports
		return nil
	})
}
