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

// c03 are bugs of stale reads that cause the wrong object to be deleted or changed.
var c03 = []Entry{{
	Name: "c03-replace-without-uid", Class: "C3", Faults: 1,
	About: "An outdated job is deleted by name. If the cache still has it, its replacement is deleted, too.",
	Source: "cluster-api#11688, references that were kept although the UID behind the name had changed: " +
		"https://github.com/kubernetes-sigs/cluster-api/pull/11688",
	Buggy:   with(builds, func(e converge.Env) reconcile.Reconciler { return &replacedBuild{build{e.Client}} }),
	Correct: with(builds, func(e converge.Env) reconcile.Reconciler { return &checkedBuild{build{e.Client}} }),
}, {
	Name: "c03-adopt-for-predecessor", Class: "C3", Faults: 1,
	About: "An orphan is adopted for an owner from a stale cache, although a new object has the same name. The orphan " +
		"is garbage-collected.",
	Source: "kubernetes#42639, adoption without a live check of the owner: " +
		"https://github.com/kubernetes/kubernetes/issues/42639",
	Buggy: with(orphans, func(e converge.Env) reconcile.Reconciler { return &trustingAdoption{adoption{e.Client}} }),
	Correct: with(orphans, func(e converge.Env) reconcile.Reconciler {
		return &recheckedAdoption{adoption{e.Client}, e.APIReader}
	}),
}, {
	Name: "c03-record-of-another", Class: "C3", Faults: 1,
	About: "A widget releases the host in its stale status, although another widget has that host now.",
	Source: "external-dns, TXT registry, whose records say who owns a name so that only its owner deletes it: " +
		"https://kubernetes-sigs.github.io/external-dns/latest/docs/registry/txt/",
	Buggy:   with(hosts, func(e converge.Env) reconcile.Reconciler { return &blindRelease{host{e}} }),
	Correct: with(hosts, func(e converge.Env) reconcile.Reconciler { return &ownedRelease{host{e}} }),
}, {
	Name: "c03-sweep-by-cache", Class: "C3", Faults: 1,
	About: "A secret is deleted as unused because the cache does not have its widget yet.",
	Source: "kubernetes, podgc, which asks the API server before it deletes pods of nodes that its cache lacks: " +
		"https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/podgc/gc_controller.go",
	Buggy: with(leftovers, func(e converge.Env) reconcile.Reconciler {
		return &sweeper{Client: e.Client, owners: e.Client}
	}),
	Correct: with(leftovers, func(e converge.Env) reconcile.Reconciler {
		return &sweeper{Client: e.Client, owners: e.APIReader}
	}),
}}

// builds are widgets whose job must be replaced when the image changes.
func builds() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&batchv1.Job{}},
		Steps: converge.Lifecycle(widget("site", WidgetSpec{Image: "builder:1"}), func(w *Widget) {
			w.Spec.Image = "builder:2"
		}),
		World: []converge.Actor{converge.Jobs(converge.BecomeReady)},
	}
}

// build runs a job of the image of a widget.
type build struct{ client.Client }

// current returns the job of a widget, or nil if none exists.
func (r *build) current(ctx context.Context, w *Widget) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name + "-build"}, job)
	if apierrs.IsNotFound(err) {
		return nil, nil
	}
	if err == nil && !metav1.IsControlledBy(job, w) {
		return nil, fmt.Errorf("job %s is not of widget %s", job.Name, w.Name)
	}
	return job, err
}

func (r *build) create(ctx context.Context, w *Widget) error {
	spec := podSpec(w.Spec.Image)
	spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{
		ObjectMeta: childMeta(w, w.Name+"-build"),
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}, BackoffLimit: new(int32(2))},
	}
	if err := controllerutil.SetControllerReference(w, job, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, job)
}

func outdated(w *Widget, job *batchv1.Job) bool {
	return job.Spec.Template.Spec.Containers[0].Image != w.Spec.Image
}

type replacedBuild struct{ build }

func (r *replacedBuild) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	job, err := r.current(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if job != nil && outdated(w, job) {
		err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting the old job: %w", err)
		}
		job = nil
	}
	if job == nil {
		if err := r.create(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("creating the job: %w", err)
		}
	}
	if w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	w.Status.ObservedGeneration, w.Status.Image = w.Generation, w.Spec.Image
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

type checkedBuild struct{ build }

func (r *checkedBuild) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	job, err := r.current(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if job != nil && outdated(w, job) {
		old := client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}
		err := r.Delete(ctx, job, old, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting the old job: %w", err)
		}
		job = nil
	}
	if job == nil {
		if err := r.create(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("creating the job: %w", err)
		}
	}
	if w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	w.Status.ObservedGeneration, w.Status.Image = w.Generation, w.Spec.Image
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

// orphans are config maps of users that a widget with a certain name adopts. A new widget with the same name replaces
// the widget.
func orphans() converge.Scenario {
	w := widget("db", WidgetSpec{})
	orphan := &corev1.ConfigMap{ObjectMeta: childMeta(w, "db-settings"), Data: map[string]string{"memory": "4Gi"}}
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Watches: []converge.Watch{{Object: &corev1.ConfigMap{}, Requests: requestOfLabel}},
		Given:   []client.Object{w},
		Steps: converge.Steps(converge.Settle(),
			converge.Delete(w), converge.Apply(w), converge.Apply(orphan), converge.Settle(),
			converge.Delete(w), converge.Settle()),
	}
}

// adoption adopts objects that have the label of a widget and no owner.
type adoption struct{ client.Client }

func (r *adoption) orphans(ctx context.Context, w *Widget) ([]corev1.ConfigMap, error) {
	maps := &corev1.ConfigMapList{}
	if err := r.List(ctx, maps, ofWidget(w)...); err != nil {
		return nil, err
	}
	var orphans []corev1.ConfigMap
	for _, cm := range maps.Items {
		if metav1.GetControllerOf(&cm) == nil && cm.DeletionTimestamp.IsZero() {
			orphans = append(orphans, cm)
		}
	}
	return orphans, nil
}

func (r *adoption) adopt(ctx context.Context, w *Widget, orphans []corev1.ConfigMap) error {
	for i := range orphans {
		if err := controllerutil.SetControllerReference(w, &orphans[i], r.Scheme()); err != nil {
			return err
		}
		if err := r.Update(ctx, &orphans[i]); err != nil {
			return fmt.Errorf("adopting %s: %w", orphans[i].Name, err)
		}
	}
	return nil
}

type trustingAdoption struct{ adoption }

func (r *trustingAdoption) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	orphans, err := r.orphans(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.adopt(ctx, w, orphans)
}

type recheckedAdoption struct {
	adoption
	live client.Reader
}

func (r *recheckedAdoption) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	orphans, err := r.orphans(ctx, w)
	if len(orphans) == 0 || err != nil {
		return reconcile.Result{}, err
	}
	fresh := &Widget{}
	if err := r.live.Get(ctx, req.NamespacedName, fresh); err != nil {
		return reconcile.Result{}, fmt.Errorf("checking the owner: %w", err)
	}
	if fresh.UID != w.UID || !fresh.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, fmt.Errorf("the owner no longer exists: the UID is %s, want %s", fresh.UID, w.UID)
	}
	return reconcile.Result{}, r.adopt(ctx, w, orphans)
}
