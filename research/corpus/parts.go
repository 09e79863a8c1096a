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

// This file has the parts of reconcilers that bugs are not about.

// hostAnnotation has the host of a widget on what belongs to it.
const hostAnnotation = "corpus.trueup.dev/host"

// setReady sets the condition Ready for the generation that was acted on.
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

// isReady is true if the condition Ready is.
func isReady(w *Widget) bool {
	return apimeta.IsStatusConditionTrue(w.Status.Conditions, readyCondition)
}

// writeStatus writes a status that differs from the one before.
func writeStatus(ctx context.Context, c client.Client, before, after *Widget) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	return c.Status().Update(ctx, after)
}

// applyConfig has a config map of the widget's name hold its data.
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

// fillService sets what the service of a widget has.
func fillService(service *corev1.Service, w *Widget) {
	metav1.SetMetaDataAnnotation(&service.ObjectMeta, hostAnnotation, w.Spec.Host)
	service.Spec.Selector = map[string]string{widgetLabel: w.Name}
	service.Spec.Ports = []corev1.ServicePort{
		{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)},
	}
}

// applyService has a service of the widget's name select its pods.
func applyService(ctx context.Context, c client.Client, w *Widget) error {
	service := newService(w)
	_, err := controllerutil.CreateOrUpdate(ctx, c, service, func() error {
		fillService(service, w)
		return controllerutil.SetControllerReference(w, service, c.Scheme())
	})
	return err
}

// applyDeployment has a deployment of the widget's name run replicas of its image.
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

// setSelector has a new deployment select pods of a widget. Later it cannot be changed.
func setSelector(d *appsv1.Deployment, w *Widget) {
	if d.CreationTimestamp.IsZero() {
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{widgetLabel: w.Name}}
		d.Spec.Template.Labels = map[string]string{widgetLabel: w.Name}
	}
}

// setImage sets the image of the first container, and leaves alone what the API server has set by default.
func setImage(template *corev1.PodTemplateSpec, image string) {
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = []corev1.Container{{Name: "main"}}
	}
	template.Spec.Containers[0].Image = image
}

// fullyRolledOut is true if a deployment runs what its spec says.
func fullyRolledOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
		d.Status.Replicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
}

// ensure creates an object of a widget, unless it is there.
func ensure(ctx context.Context, c client.Client, w *Widget, obj client.Object) error {
	current := obj.DeepCopyObject().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), current)
	switch {
	case err == nil && !metav1.IsControlledBy(current, w):
		return fmt.Errorf("%T %s is not that of widget %s", obj, obj.GetName(), w.Name)
	case !apierrors.IsNotFound(err):
		return err
	}
	if err := controllerutil.SetControllerReference(w, obj, c.Scheme()); err != nil {
		return err
	}
	return c.Create(ctx, obj)
}

// remove deletes the object that was seen, and not another one of the same name.
func remove(ctx context.Context, c client.Client, obj client.Object) error {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())}))
}

// withImage is a change of a widget's image.
func withImage(image string) func(*Widget) {
	return func(w *Widget) { w.Spec.Image = image }
}

// withData is a change of a value in a widget's data.
func withData(value string) func(*Widget) {
	return func(w *Widget) { w.Spec.Data = map[string]string{"mode": value} }
}

// changeData is the life of a widget whose data changes once.
func changeData() []converge.Step {
	return converge.Lifecycle(widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}}), withData("slow"))
}

// dataWorld has such a widget, and config maps that belong to it.
func dataWorld() converge.Scenario {
	return converge.Scenario{For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}}, Steps: changeData()}
}
