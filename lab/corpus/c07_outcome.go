// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// tokens are buckets in a system whose requests have idempotency tokens.
func tokens() converge.Scenario {
	return converge.Scenario{
		For: &Bucket{}, Given: []client.Object{bucket("backups", BucketSpec{Region: "ap"})}, Desired: oneEach,
	}
}

// oneEach returns an error unless each bucket has exactly one external object.
func oneEach(s converge.State) error {
	buckets := &BucketList{}
	if err := s.List(buckets); err != nil {
		return err
	}
	if there, wanted := len(s.Cloud()), len(buckets.Items); there != wanted {
		return fmt.Errorf("%d external objects for %d buckets", there, wanted)
	}
	for _, b := range buckets.Items {
		if b.Status.Phase != "Running" {
			return fmt.Errorf("%s is not running", b.Name)
		}
	}
	return nil
}

// tokenAnnotation has the token of the request that creates the external object of a bucket.
const tokenAnnotation = "corpus.trueup.dev/request-token"

// token creates external objects with a token that is new for each bucket and each process.
type token struct {
	converge.Env
	tokens map[string]string // by UID
}

// reconcile is common to both versions, except for how the token is saved.
func (r *token) reconcile(ctx context.Context, req reconcile.Request, save func(context.Context, *Bucket) error) error {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return r.cleanUp(ctx, b)
	}
	if controllerutil.AddFinalizer(b, finalizer) {
		if err := r.Client.Update(ctx, b); err != nil {
			return err
		}
	}
	id := cmp.Or(b.Annotations[tokenAnnotation], r.tokens[string(b.UID)])
	if id == "" {
		names, err := r.Cloud.List(ctx, "request/")
		if err != nil {
			return err
		}
		id = b.Name + "-" + strconv.Itoa(len(names))
		r.tokens[string(b.UID)] = id
	}
	if b.Annotations[tokenAnnotation] == "" {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, tokenAnnotation, id)
		if err := save(ctx, b); err != nil {
			return err
		}
	}
	if err := r.Cloud.Put(ctx, "request/"+id, b.Spec.Region); err != nil {
		return fmt.Errorf("request %s: %w", id, err)
	}
	if b.Status.ID == id && b.Status.ObservedGeneration == b.Generation {
		return nil
	}
	b.Status.ID, b.Status.Phase, b.Status.ObservedGeneration = id, "Running", b.Generation
	return r.Client.Status().Update(ctx, b)
}

func (r *token) cleanUp(ctx context.Context, b *Bucket) error {
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return nil
	}
	if id := cmp.Or(b.Annotations[tokenAnnotation], r.tokens[string(b.UID)]); id != "" {
		if err := deleteCloud(ctx, r.Cloud, "request/"+id); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return client.IgnoreNotFound(r.Client.Update(ctx, b))
}

type bestEffortToken struct{ token }

func (r *bestEffortToken) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(ctx context.Context, b *Bucket) error {
		if err := r.Client.Update(ctx, b); err != nil {
			log.FromContext(ctx).Error(err, "Cannot save the token, which is still in memory.")
			delete(b.Annotations, tokenAnnotation)
		}
		return nil
	})
}

type savedToken struct{ token }

func (r *savedToken) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(ctx context.Context, b *Bucket) error {
		return r.Client.Update(ctx, b)
	})
}

// switches are widgets whose traffic goes to a deployment of their image.
func switches() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}, &corev1.Service{}},
		Steps: converge.Lifecycle(widget("cart", WidgetSpec{Image: "cart:1", Host: "blue", Replicas: 1}), func(w *Widget) {
			w.Spec.Image, w.Spec.Host = "cart:2", "green"
		}),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}

// trafficSwitch has a deployment for each color, and a service for the desired one.
type trafficSwitch struct{ client.Client }

func (r *trafficSwitch) labels(w *Widget) map[string]string {
	return map[string]string{widgetLabel: w.Name, "color": w.Spec.Host}
}

func (r *trafficSwitch) deployment(w *Widget) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: childMeta(w, w.Name+"-"+w.Spec.Host)}
}

func (r *trafficSwitch) deploy(ctx context.Context, w *Widget) error {
	d := r.deployment(w)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: r.labels(w)}
			d.Spec.Template = corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: r.labels(w)}, Spec: podSpec(w.Spec.Image),
			}
		} else if !metav1.IsControlledBy(d, w) {
			return fmt.Errorf("deployment %s has another owner", d.Name)
		}
		d.Spec.Replicas = &w.Spec.Replicas
		d.Spec.Template.Spec.Containers[0].Image = w.Spec.Image
		return controllerutil.SetControllerReference(w, d, r.Scheme())
	})
	return err
}

func (r *trafficSwitch) route(ctx context.Context, w *Widget) error {
	svc := &corev1.Service{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, svc, func() error {
		metav1.SetMetaDataLabel(&svc.ObjectMeta, widgetLabel, w.Name)
		svc.Spec.Selector = r.labels(w)
		if len(svc.Spec.Ports) == 0 {
			svc.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
		}
		return controllerutil.SetControllerReference(w, svc, r.Scheme())
	})
	return err
}

// retire deletes the deployments without traffic.
func (r *trafficSwitch) retire(ctx context.Context, w *Widget) error {
	all := &appsv1.DeploymentList{}
	if err := r.List(ctx, all, ofWidget(w)...); err != nil {
		return err
	}
	for i := range all.Items {
		old := &all.Items[i]
		if old.Name == r.deployment(w).Name || !metav1.IsControlledBy(old, w) {
			continue
		}
		if err := r.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("retiring %s: %w", old.Name, err)
		}
	}
	return nil
}

func (r *trafficSwitch) phase(ctx context.Context, w *Widget, phase string) error {
	if w.Status.Phase == phase && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Phase, w.Status.ObservedGeneration = phase, w.Generation
	return r.Status().Update(ctx, w)
}

type undoneSwitch struct{ trafficSwitch }

func (r *undoneSwitch) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() || w.Status.Phase == "RolledBack" && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	if err := r.deploy(ctx, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("deploying %s: %w", w.Spec.Image, err)
	}
	if err := r.route(ctx, w); err != nil {
		if undo := r.Delete(ctx, r.deployment(w)); client.IgnoreNotFound(undo) != nil {
			return reconcile.Result{}, fmt.Errorf("rolling back after %w: %w", err, undo)
		}
		return reconcile.Result{}, r.phase(ctx, w, "RolledBack")
	}
	if err := r.retire(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.phase(ctx, w, "Live")
}

type repeatedSwitch struct{ trafficSwitch }

func (r *repeatedSwitch) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if err := r.deploy(ctx, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("deploying %s: %w", w.Spec.Image, err)
	}
	if err := r.route(ctx, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("switching to %s: %w", w.Spec.Host, err)
	}
	if err := r.retire(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.phase(ctx, w, "Live")
}
