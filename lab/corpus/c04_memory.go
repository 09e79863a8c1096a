// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// exportNamespace is the namespace of the copies. Widgets cannot own objects there.
const exportNamespace = "exports"

// exports are widgets whose data is copied to another namespace.
func exports() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Given: []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exportNamespace}},
			widget("prices", WidgetSpec{Data: map[string]string{"apple": "3", "pear": "5"}}),
		},
	}
}

// watchExports registers a controller that copies the data of widgets. It also reconciles when a copy changes or is
// deleted.
func watchExports(mgr manager.Manager, r reconcile.Reconciler) error {
	widgetOf := func(_ context.Context, obj client.Object) []reconcile.Request {
		if obj.GetNamespace() != exportNamespace || obj.GetLabels()[widgetLabel] == "" {
			return nil
		}
		return []reconcile.Request{
			{NamespacedName: client.ObjectKey{Namespace: namespace, Name: obj.GetLabels()[widgetLabel]}},
		}
	}
	changes := predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
	return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(widgetOf), builder.WithPredicates(changes)).
		Complete(r)
}

// export copies the data of a widget.
type export struct{ client.Client }

func (r *export) copy(key client.ObjectKey) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: exportNamespace, Name: key.Name, Labels: map[string]string{widgetLabel: key.Name},
	}}
}

func (r *export) publish(ctx context.Context, w *Widget) error {
	cm := r.copy(client.ObjectKeyFromObject(w))
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, widgetLabel, w.Name)
		cm.Data = w.Spec.Data
		return nil
	})
	return err
}

func (r *export) remove(ctx context.Context, key client.ObjectKey) error {
	return client.IgnoreNotFound(r.Delete(ctx, r.copy(key)))
}

type eventExport struct{ export }

func (r *eventExport) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	err := r.Get(ctx, req.NamespacedName, w)
	if apierrs.IsNotFound(err) {
		return reconcile.Result{}, r.remove(ctx, req.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.publish(ctx, w)
}

type finalizedExport struct{ export }

func (r *finalizedExport) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(w, finalizer) {
			return reconcile.Result{}, nil
		}
		if err := r.remove(ctx, req.NamespacedName); err != nil {
			return reconcile.Result{}, err
		}
		controllerutil.RemoveFinalizer(w, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.publish(ctx, w)
}

// rotations are widgets that must restart when the secret they refer to changes.
func rotations() converge.Scenario {
	secret := &corev1.Secret{ObjectMeta: meta("token"), Data: map[string][]byte{"token": []byte("first")}}
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}},
		Watches: []converge.Watch{{Object: &corev1.Secret{}, Requests: func(
			_ context.Context, obj client.Object,
		) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: "api"}}}
		}}},
		Given: []client.Object{secret, widget("api", WidgetSpec{Image: "api:1", Replicas: 1, Ref: "token"})},
		Steps: converge.Steps(converge.Settle(),
			converge.Change(secret, func(s *corev1.Secret) {
				s.Data = map[string][]byte{"token": []byte("second")}
			}), converge.Settle(),
			converge.Delete(widget("api", WidgetSpec{})), converge.Settle()),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}

// sumAnnotation is on the template of a deployment. A change of it restarts the pods.
const sumAnnotation = "corpus.trueup.dev/secret-sum"

// rotation runs a deployment that reads a secret when it starts.
type rotation struct{ client.Client }

// sum returns a checksum of the secret of a widget.
func (r *rotation) sum(ctx context.Context, w *Widget) (string, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, secret); err != nil {
		return "", fmt.Errorf("the secret: %w", err)
	}
	sum := sha256.Sum256(secret.Data["token"])
	return hex.EncodeToString(sum[:8]), nil
}

// ensure creates or updates a deployment with a checksum. An empty checksum keeps that of the deployment.
func (r *rotation) ensure(ctx context.Context, w *Widget, sum string) error {
	d := &appsv1.Deployment{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		labels := map[string]string{widgetLabel: w.Name}
		d.Spec.Replicas = &w.Spec.Replicas
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(w.Spec.Image)}
		} else if !metav1.IsControlledBy(d, w) {
			return fmt.Errorf("it has another owner")
		}
		d.Spec.Template.Spec.Containers[0].Image = w.Spec.Image
		if sum != "" {
			metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, sumAnnotation, sum)
		}
		return controllerutil.SetControllerReference(w, d, r.Scheme())
	})
	return err
}

type rememberedSum struct {
	rotation
	sums map[string]string
}

func (r *rememberedSum) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	sum, err := r.sum(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	restart := ""
	if last, seen := r.sums[req.String()]; seen && last != sum {
		restart = sum
	}
	if err := r.ensure(ctx, w, restart); err != nil {
		return reconcile.Result{}, fmt.Errorf("the deployment: %w", err)
	}
	r.sums[req.String()] = sum
	return reconcile.Result{}, nil
}

type writtenSum struct{ rotation }

func (r *writtenSum) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	sum, err := r.sum(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.ensure(ctx, w, sum); err != nil {
		return reconcile.Result{}, fmt.Errorf("the deployment: %w", err)
	}
	return reconcile.Result{}, nil
}
