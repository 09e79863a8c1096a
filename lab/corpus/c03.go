// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
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

// hosts are two widgets. One releases its host, and the other one takes it.
func hosts() converge.Scenario {
	blog, shop := widget("blog", WidgetSpec{Host: "www"}), widget("shop", WidgetSpec{Host: "shop"})
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Given: []client.Object{blog, shop},
		Steps: converge.Steps(converge.Settle(),
			converge.Change(blog, func(w *Widget) { w.Spec.Host = "blog" }),
			converge.Change(shop, func(w *Widget) { w.Spec.Host = "www" }), converge.Settle(),
			converge.Delete(blog), converge.Delete(shop), converge.Settle()),
	}
}

// host has an external record for the host of a widget, and a config map that publishes the host to pods.
type host struct{ converge.Env }

func (r *host) owner(w *Widget) string { return w.Namespace + "/" + w.Name }

// publish publishes the host to pods.
func (r *host) publish(ctx context.Context, w *Widget) error {
	cm := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name+"-host")}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, widgetLabel, w.Name)
		cm.Data = map[string]string{"host": w.Spec.Host}
		return controllerutil.SetControllerReference(w, cm, r.Scheme)
	})
	return err
}

// take allocates the host to the widget, unless it has another owner.
func (r *host) take(ctx context.Context, w *Widget) error {
	owner, err := r.Cloud.Get(ctx, w.Spec.Host)
	switch {
	case errors.Is(err, converge.ErrAbsent):
		return r.Cloud.Create(ctx, w.Spec.Host, r.owner(w))
	case err != nil:
		return err
	case owner != r.owner(w):
		return fmt.Errorf("host %s is taken", w.Spec.Host)
	}
	return nil
}

// release releases a host if it belongs to the widget.
func (r *host) release(ctx context.Context, w *Widget, name string) error {
	owner, err := r.Cloud.Get(ctx, name)
	if errors.Is(err, converge.ErrAbsent) || err == nil && owner != r.owner(w) {
		return nil
	}
	if err != nil {
		return err
	}
	return deleteCloud(ctx, r.Cloud, name)
}

// reconcile is common to both versions, except for the release of a host.
func (r *host) reconcile(
	ctx context.Context, req reconcile.Request, release func(context.Context, *Widget, string) error,
) error {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(w, finalizer) {
			return nil
		}
		for _, name := range []string{w.Status.Host, w.Spec.Host} {
			if err := r.release(ctx, w, name); err != nil {
				return fmt.Errorf("releasing %s: %w", name, err)
			}
		}
		controllerutil.RemoveFinalizer(w, finalizer)
		return client.IgnoreNotFound(r.Client.Update(ctx, w))
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return err
		}
	}
	if w.Status.Host != "" && w.Status.Host != w.Spec.Host {
		if err := release(ctx, w, w.Status.Host); err != nil {
			return fmt.Errorf("releasing %s: %w", w.Status.Host, err)
		}
	}
	// The status names a host before it is taken, so that it is released in any case.
	if w.Status.Host != w.Spec.Host {
		w.Status.Host = w.Spec.Host
		if err := r.Client.Status().Update(ctx, w); err != nil {
			return err
		}
	}
	if err := r.take(ctx, w); err != nil {
		return fmt.Errorf("taking %s: %w", w.Spec.Host, err)
	}
	return r.publish(ctx, w)
}

type blindRelease struct{ host }

func (r *blindRelease) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(ctx context.Context, _ *Widget, name string) error {
		return deleteCloud(ctx, r.Cloud, name)
	})
}

type ownedRelease struct{ host }

func (r *ownedRelease) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, r.release)
}

// leftovers are secrets that users upload for their widgets. Without the widget they are unused.
func leftovers() converge.Scenario {
	w := widget("gate", WidgetSpec{})
	secret := &corev1.Secret{
		ObjectMeta: childMeta(w, "gate-password"), StringData: map[string]string{"password": "sesame"},
	}
	return converge.Scenario{
		For:     &Widget{},
		Watches: []converge.Watch{{Object: &corev1.Secret{}, Requests: requestOfLabel}},
		Steps: converge.Steps(converge.Apply(w), converge.Apply(secret), converge.Settle(),
			converge.Delete(w), converge.Settle()),
	}
}

// sweeper deletes the secrets of widgets that no longer exist.
type sweeper struct {
	client.Client
	owners client.Reader
}

func (r *sweeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secrets := &corev1.SecretList{}
	if err := r.List(ctx, secrets, client.InNamespace(req.Namespace), client.MatchingLabels{
		widgetLabel: req.Name,
	}); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing secrets: %w", err)
	}
	if len(secrets.Items) == 0 {
		return reconcile.Result{}, nil
	}
	if err := r.owners.Get(ctx, req.NamespacedName, &Widget{}); !apierrs.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if err := r.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting secret %s: %w", secret.Name, err)
		}
	}
	return reconcile.Result{}, nil
}
