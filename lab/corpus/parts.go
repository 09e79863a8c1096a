// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
)

// This file contains the parts of reconcilers that the bugs do not affect.

// hostAnnotation has the host of a widget, on its children.
const hostAnnotation = "corpus.trueup.dev/host"

// setReady sets the condition Ready for the reconciled generation.
func setReady(w *Widget, status bool, reason, message string) {
	value := metav1.ConditionFalse
	if status {
		value = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: readyCondition, Status: value, Reason: reason, Message: message, ObservedGeneration: w.Generation,
	})
	w.Status.ObservedGeneration = w.Generation
}

// isReady reports whether the condition Ready is True.
func isReady(w *Widget) bool {
	return apimeta.IsStatusConditionTrue(w.Status.Conditions, readyCondition)
}

// writeStatus writes a status if it has changed.
func writeStatus(ctx context.Context, c client.Client, before, after *Widget) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	return c.Status().Update(ctx, after)
}

// applyConfig creates or updates a config map with the widget's name and data.
func applyConfig(ctx context.Context, c client.Client, w *Widget) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, config, func() error {
		config.Data = w.Spec.Data
		return controllerutil.SetControllerReference(w, config, c.Scheme())
	})
	return err
}

func newService(w *Widget) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
}

// fillService sets the fields of the service of a widget.
func fillService(service *corev1.Service, w *Widget) {
	metav1.SetMetaDataAnnotation(&service.ObjectMeta, hostAnnotation, w.Spec.Host)
	service.Spec.Selector = map[string]string{widgetLabel: w.Name}
	service.Spec.Ports = []corev1.ServicePort{
		{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)},
	}
}

// applyService creates or updates a service with the widget's name that selects its pods.
func applyService(ctx context.Context, c client.Client, w *Widget) error {
	service := newService(w)
	_, err := controllerutil.CreateOrUpdate(ctx, c, service, func() error {
		fillService(service, w)
		return controllerutil.SetControllerReference(w, service, c.Scheme())
	})
	return err
}

// applyDeployment creates or updates a deployment with the widget's name, replicas and image.
func applyDeployment(ctx context.Context, c client.Client, w *Widget) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, deployment, func() error {
		setSelector(deployment, w)
		deployment.Spec.Replicas = new(w.Spec.Replicas)
		setImage(&deployment.Spec.Template, w.Spec.Image)
		return controllerutil.SetControllerReference(w, deployment, c.Scheme())
	})
	return deployment, err
}

// setSelector sets the selector of a new deployment, which is immutable.
func setSelector(d *appsv1.Deployment, w *Widget) {
	if d.CreationTimestamp.IsZero() {
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{widgetLabel: w.Name}}
		d.Spec.Template.Labels = map[string]string{widgetLabel: w.Name}
	}
}

// setImage sets the image of the first container, and keeps server defaults.
func setImage(template *corev1.PodTemplateSpec, image string) {
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = []corev1.Container{{Name: "main"}}
	}
	template.Spec.Containers[0].Image = image
}

// fullyRolledOut reports whether a deployment has completed the rollout of its spec.
func fullyRolledOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
		d.Status.Replicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
}

// ensure creates an object of a widget if it does not exist.
func ensure(ctx context.Context, c client.Client, w *Widget, obj client.Object) error {
	current := obj.DeepCopyObject().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), current)
	switch {
	case err == nil && !metav1.IsControlledBy(current, w):
		return fmt.Errorf("%T %s does not belong to widget %s", obj, obj.GetName(), w.Name)
	case !apierrors.IsNotFound(err):
		return err
	}
	if err := controllerutil.SetControllerReference(w, obj, c.Scheme()); err != nil {
		return err
	}
	return c.Create(ctx, obj)
}

// remove deletes the object with its UID, and not another object with the same name.
func remove(ctx context.Context, c client.Client, obj client.Object) error {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())}))
}

// withImage changes a widget's image.
func withImage(image string) func(*Widget) {
	return func(w *Widget) { w.Spec.Image = image }
}

// withData changes a value in a widget's data.
func withData(value string) func(*Widget) {
	return func(w *Widget) { w.Spec.Data = map[string]string{"mode": value} }
}

// changeData are the steps of a widget whose data changes once.
func changeData() []converge.Step {
	return converge.Lifecycle(widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}}), withData("slow"))
}

// dataWorld has such a widget, with its config maps.
func dataWorld() converge.Scenario {
	return converge.Scenario{For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}}, Steps: changeData()}
}
