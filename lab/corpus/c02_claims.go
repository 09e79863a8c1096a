// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// runs are widgets that request a run by a tag.
func runs() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&batchv1.Job{}},
		Steps: converge.Lifecycle(widget("report", WidgetSpec{Ref: "monday", Image: "report:1"}), func(w *Widget) {
			w.Spec.Ref = "tuesday"
		}),
		World: []converge.Actor{converge.Jobs(converge.BecomeReady)},
	}
}

// runner runs jobs.
type runner struct{ client.Client }

func (r *runner) start(ctx context.Context, w *Widget, meta metav1.ObjectMeta) error {
	spec := podSpec(w.Spec.Image)
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	if err := controllerutil.SetControllerReference(w, job, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, job)
}

// started records that the requested run was started.
func (r *runner) started(ctx context.Context, w *Widget) error {
	w.Status.ID, w.Status.ObservedGeneration = w.Spec.Ref, w.Generation
	return r.Status().Update(ctx, w)
}

type rememberedRun struct{ runner }

func (r *rememberedRun) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() || w.Status.ID == w.Spec.Ref {
		return reconcile.Result{}, nil
	}
	meta := childMeta(w, "")
	meta.GenerateName = w.Name + "-" + w.Spec.Ref + "-"
	if err := r.start(ctx, w, meta); err != nil {
		return reconcile.Result{}, fmt.Errorf("starting run %s: %w", w.Spec.Ref, err)
	}
	return reconcile.Result{}, r.started(ctx, w)
}

type namedRun struct{ runner }

func (r *namedRun) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	job := &batchv1.Job{ObjectMeta: childMeta(w, w.Name+"-"+w.Spec.Ref)}
	err := r.Get(ctx, client.ObjectKeyFromObject(job), job)
	switch {
	case apierrs.IsNotFound(err):
		err = r.start(ctx, w, job.ObjectMeta)
	case err == nil && !metav1.IsControlledBy(job, w):
		err = fmt.Errorf("job %s has another owner", job.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("run %s: %w", w.Spec.Ref, err)
	}
	if w.Status.ID == w.Spec.Ref && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.started(ctx, w)
}

// firstPort is the first of the ports that widgets get.
const firstPort = 9000

// ports are widgets that each need a unique port.
func ports() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Given:   []client.Object{widget("a", WidgetSpec{}), widget("b", WidgetSpec{}), widget("c", WidgetSpec{})},
		Desired: portsDiffer,
	}
}

// portsDiffer returns an error unless each widget has a port that no other widget has.
func portsDiffer(s converge.State) error {
	widgets := &WidgetList{}
	if err := s.List(widgets); err != nil {
		return err
	}
	owners := map[int32]string{}
	for _, w := range widgets.Items {
		if w.Status.Number == 0 {
			return fmt.Errorf("%s has no port", w.Name)
		}
		if other := owners[w.Status.Number]; other != "" {
			return fmt.Errorf("%s and %s have port %d", other, w.Name, w.Status.Number)
		}
		owners[w.Status.Number] = w.Name
	}
	return nil
}

type reservedPort struct {
	client.Client
	taken map[int32]string // owners of ports that are not allocated in the cache yet
}

func (r *reservedPort) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.Number != 0 || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	all := &WidgetList{}
	if err := r.List(ctx, all, client.InNamespace(w.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	for _, other := range all.Items {
		if other.Status.Number != 0 {
			r.taken[other.Status.Number] = other.Name
		}
	}
	port := int32(firstPort)
	for r.taken[port] != "" {
		port++
	}
	r.taken[port] = w.Name
	w.Status.Number = port
	if err := r.Status().Update(ctx, w); err != nil {
		delete(r.taken, port)
		return reconcile.Result{}, fmt.Errorf("taking port %d: %w", port, err)
	}
	return reconcile.Result{}, nil
}

type claimedPort struct {
	client.Client
	live client.Reader
}

func (r *claimedPort) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	port := w.Status.Number
	if port == 0 {
		port = firstPort
	}
	for ; ; port++ {
		ours, err := r.claim(ctx, w, port)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("claiming port %d: %w", port, err)
		}
		if ours {
			break
		}
	}
	if w.Status.Number == port {
		return reconcile.Result{}, r.release(ctx, w)
	}
	w.Status.Number = port
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

// release releases the claims of the widget that it does not use.
func (r *claimedPort) release(ctx context.Context, w *Widget) error {
	claims := &corev1.ConfigMapList{}
	if err := r.List(ctx, claims, ofWidget(w)...); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Name == fmt.Sprintf("port-%d", w.Status.Number) || !metav1.IsControlledBy(claim, w) {
			continue
		}
		if err := r.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing %s: %w", claim.Name, err)
		}
	}
	return nil
}

// claim reports whether the port belongs to the widget now. Only one object with the name of the port can exist.
func (r *claimedPort) claim(ctx context.Context, w *Widget, port int32) (bool, error) {
	claim := &corev1.ConfigMap{ObjectMeta: childMeta(w, fmt.Sprintf("port-%d", port))}
	if err := r.Get(ctx, client.ObjectKeyFromObject(claim), claim); err == nil && metav1.IsControlledBy(claim, w) {
		return true, nil
	}
	claim = &corev1.ConfigMap{ObjectMeta: childMeta(w, claim.Name)}
	if err := controllerutil.SetControllerReference(w, claim, r.Scheme()); err != nil {
		return false, err
	}
	err := r.Create(ctx, claim)
	if !apierrs.IsAlreadyExists(err) {
		return err == nil, err
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return false, err
	}
	return metav1.IsControlledBy(claim, w), nil
}
