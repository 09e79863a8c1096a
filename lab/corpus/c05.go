// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// c05 are bugs of caches that start in the past after a restart.
var c05 = []Entry{{
	Name: "c05-volumes-of-successor", Class: "C5", Faults: 1,
	About: "After a restart, the deletion of a widget is seen again, and the volumes of the new widget with the same " +
		"name are deleted.",
	Source: "zookeeper-operator#312, volumes deleted because of a deletion timestamp of the past, found by Sieve " +
		"(OSDI'22, stale states): https://github.com/pravega/zookeeper-operator/issues/312",
	Buggy: with(recreations, func(e converge.Env) reconcile.Reconciler {
		return &labelledVolumes{finalVolumes{e.Client}}
	}),
	Correct: with(recreations, func(e converge.Env) reconcile.Reconciler {
		return &controlledVolumes{finalVolumes{e.Client}}
	}),
}, {
	Name: "c05-scaled-by-the-past", Class: "C5", Faults: 1,
	About: "After a restart, an old number of replicas is seen, and the volumes of the other replicas are deleted.",
	Source: "kubernetes#59848, caches that go back in time when they are filled again: " +
		"https://github.com/kubernetes/kubernetes/issues/59848",
	Buggy: with(breathing, func(e converge.Env) reconcile.Reconciler {
		return &scaling{volumeSet{e.Client}, func(context.Context, *Widget) error { return nil }}
	}),
	Correct: with(breathing, func(e converge.Env) reconcile.Reconciler {
		return &scaling{
			volumeSet{e.Client}, func(ctx context.Context, w *Widget) error { return confirm(ctx, e.APIReader, w) },
		}
	}),
}, {
	Name: "c05-run-again", Class: "C5", Faults: 1,
	About: "After a restart, the stale status does not show that a job is done. The job was cleaned up already, so it " +
		"runs again.",
	Source: "Sun et al., Reasoning about modern datacenter infrastructures using partial histories (HotOS'21), time " +
		"travel: https://github.com/sieve-project/sieve/blob/main/docs/paper-hotos.pdf",
	Buggy:   with(onces, func(e converge.Env) reconcile.Reconciler { return &once{Client: e.Client} }),
	Correct: with(onces, func(e converge.Env) reconcile.Reconciler { return &once{Client: e.Client, live: e.APIReader} }),
}, {
	Name: "c05-bucket-of-the-dead", Class: "C5", Faults: 1,
	About: "After a restart, a deleted bucket is seen again. Its external object is created and never deleted.",
	Source: "kubernetes#59848, caches that go back in time when they are filled again: " +
		"https://github.com/kubernetes/kubernetes/issues/59848",
	Buggy:   with(traveled, func(e converge.Env) reconcile.Reconciler { return &revivedBucket{e} }),
	Correct: with(traveled, func(e converge.Env) reconcile.Reconciler { return &checkedBucket{e} }),
}}

// confirm returns an error if a cached object is not the current one of the API server.
func confirm(ctx context.Context, live client.Reader, obj client.Object) error {
	fresh := obj.DeepCopyObject().(client.Object)
	if err := live.Get(ctx, client.ObjectKeyFromObject(obj), fresh); err != nil {
		return fmt.Errorf("confirming %s: %w", obj.GetName(), err)
	}
	if fresh.GetUID() != obj.GetUID() || fresh.GetResourceVersion() != obj.GetResourceVersion() {
		return fmt.Errorf(
			"the cache is stale: it has %s at %s and not at %s", obj.GetName(), obj.GetResourceVersion(),
			fresh.GetResourceVersion(),
		)
	}
	return nil
}

// recreations are widgets that are deleted and created again with the same name.
func recreations() converge.Scenario {
	w := widget("zk", WidgetSpec{Replicas: 1, Storage: "1Gi"})
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.PersistentVolumeClaim{}},
		Steps: converge.Steps(converge.Apply(w), converge.Settle(), converge.Delete(w), converge.Settle(),
			converge.Apply(w), converge.Settle(), converge.Delete(w), converge.Settle()),
		Consistency: converge.TimeTravel,
	}
}

// finalVolumes has volumes for a widget, and deletes them before the widget is deleted.
type finalVolumes struct{ client.Client }

func (r *finalVolumes) ensure(ctx context.Context, w *Widget) error {
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return err
		}
	}
	for i := range w.Spec.Replicas {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: childMeta(w, fmt.Sprintf("data-%s-%d", w.Name, i))}
		err := r.Get(ctx, client.ObjectKeyFromObject(claim), claim)
		if err == nil && !metav1.IsControlledBy(claim, w) {
			return fmt.Errorf("volume %s is not of this widget", claim.Name)
		}
		if err == nil {
			continue
		}
		if !apierrs.IsNotFound(err) {
			return err
		}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(w.Spec.Storage)}
		if err := controllerutil.SetControllerReference(w, claim, r.Scheme()); err != nil {
			return err
		}
		if err := r.Create(ctx, claim); err != nil {
			return fmt.Errorf("creating volume %s: %w", claim.Name, err)
		}
	}
	return nil
}

// reconcile is common to both versions, except for which of the labeled volumes are deleted.
func (r *finalVolumes) reconcile(
	ctx context.Context, req reconcile.Request, remove func(context.Context, *Widget, client.Object) error,
) error {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	if w.DeletionTimestamp.IsZero() {
		return r.ensure(ctx, w)
	}
	if !controllerutil.ContainsFinalizer(w, finalizer) {
		return nil
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.List(ctx, claims, ofWidget(w)...); err != nil {
		return err
	}
	for i := range claims.Items {
		if err := remove(ctx, w, &claims.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting volume %s: %w", claims.Items[i].Name, err)
		}
	}
	controllerutil.RemoveFinalizer(w, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, w))
}

type labelledVolumes struct{ finalVolumes }

func (r *labelledVolumes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(ctx context.Context, _ *Widget, claim client.Object) error {
		return r.Delete(ctx, claim)
	})
}

type controlledVolumes struct{ finalVolumes }

func (r *controlledVolumes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(ctx context.Context, w *Widget, claim client.Object) error {
		if !metav1.IsControlledBy(claim, w) {
			return nil
		}
		return r.Delete(ctx, claim, client.Preconditions{UID: new(claim.GetUID())})
	})
}

// breathing are widgets that are scaled down and up again.
func breathing() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.PersistentVolumeClaim{}},
		Steps: converge.Lifecycle(widget("kafka", WidgetSpec{Replicas: 2, Storage: "1Gi"}),
			func(w *Widget) { w.Spec.Replicas = 1 },
			func(w *Widget) { w.Spec.Replicas = 2 }),
		Consistency: converge.TimeTravel,
	}
}

// scaling creates missing volumes, and deletes superfluous ones.
type scaling struct {
	volumeSet
	confirm func(context.Context, *Widget) error // called before anything is created or deleted
}

func (r *scaling) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var missing []int32
	for i := range w.Spec.Replicas {
		there, err := r.exists(ctx, w, i)
		if err != nil {
			return reconcile.Result{}, err
		}
		if !there {
			missing = append(missing, i)
		}
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.List(ctx, claims, ofWidget(w)...); err != nil {
		return reconcile.Result{}, err
	}
	tooMany := slices.DeleteFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool {
		return !surplus(w, claim.Name) || !metav1.IsControlledBy(&claim, w)
	})
	if len(missing)+len(tooMany) == 0 {
		return reconcile.Result{}, nil
	}
	if err := r.confirm(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	for _, i := range missing {
		if err := r.ensure(ctx, w, i); err != nil {
			return reconcile.Result{}, fmt.Errorf("volume %d: %w", i, err)
		}
	}
	for i := range tooMany {
		err := r.Delete(ctx, &tooMany[i], client.Preconditions{UID: &tooMany[i].UID})
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting volume %s: %w", tooMany[i].Name, err)
		}
	}
	return reconcile.Result{}, nil
}

// onces are widgets whose job must run exactly once.
func onces() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&batchv1.Job{}},
		Given:       []client.Object{widget("invoice", WidgetSpec{Image: "invoice:1"})},
		World:       []converge.Actor{converge.Jobs(converge.BecomeReady)},
		Consistency: converge.TimeTravel,
	}
}

// once runs a job, and deletes it when it is done and the cache shows that this is recorded.
type once struct {
	client.Client
	live client.Reader // confirms that the job was not run; optional
}

func (r *once) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	job := &batchv1.Job{ObjectMeta: childMeta(w, w.Name+"-once")}
	err := r.Get(ctx, client.ObjectKeyFromObject(job), job)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	there := err == nil
	if there && !metav1.IsControlledBy(job, w) {
		return reconcile.Result{}, fmt.Errorf("job %s is not of this widget", job.Name)
	}
	switch {
	case w.Status.Phase == "Done" && there:
		err = client.IgnoreNotFound(
			r.Delete(
				ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground),
			),
		)
	case w.Status.Phase == "Done":
		return reconcile.Result{}, nil
	case !there:
		err = r.start(ctx, w, job)
	case job.Status.Succeeded > 0:
		w.Status.Phase, w.Status.ObservedGeneration = "Done", w.Generation
		err = r.Status().Update(ctx, w)
	}
	return reconcile.Result{}, err
}

func (r *once) start(ctx context.Context, w *Widget, job *batchv1.Job) error {
	if r.live != nil {
		if err := confirm(ctx, r.live, w); err != nil {
			return err
		}
	}
	job.Spec.Template.Spec = podSpec(w.Spec.Image)
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if err := controllerutil.SetControllerReference(w, job, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, job)
}

// traveled are buckets whose cache can go back in time.
func traveled() converge.Scenario {
	return converge.Scenario{
		For: &Bucket{}, Given: []client.Object{bucket("photos", BucketSpec{Region: "us"})}, Consistency: converge.TimeTravel,
	}
}

// finalizeBucket deletes the external object of a bucket, and removes the finalizer.
func finalizeBucket(ctx context.Context, e converge.Env, b *Bucket) error {
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return nil
	}
	if err := deleteCloud(ctx, e.Cloud, b.Name); err != nil {
		return fmt.Errorf("deleting %s: %w", b.Name, err)
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return client.IgnoreNotFound(e.Client.Update(ctx, b))
}

type revivedBucket struct{ converge.Env }

func (r *revivedBucket) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, finalizeBucket(ctx, r.Env, b)
	}
	if controllerutil.AddFinalizer(b, finalizer) {
		if err := r.Client.Update(ctx, b); err != nil {
			return reconcile.Result{}, err
		}
	}
	_, err := r.Cloud.Get(ctx, b.Name)
	if errors.Is(err, converge.ErrAbsent) {
		err = r.Cloud.Create(ctx, b.Name, b.Spec.Region)
	}
	return reconcile.Result{}, err
}

type checkedBucket struct{ converge.Env }

func (r *checkedBucket) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, finalizeBucket(ctx, r.Env, b)
	}
	if controllerutil.AddFinalizer(b, finalizer) {
		if err := r.Client.Update(ctx, b); err != nil {
			return reconcile.Result{}, err
		}
	}
	_, err := r.Cloud.Get(ctx, b.Name)
	if errors.Is(err, converge.ErrAbsent) {
		if err := confirm(ctx, r.APIReader, b); err != nil {
			return reconcile.Result{}, err
		}
		err = r.Cloud.Create(ctx, b.Name, b.Spec.Region)
	}
	return reconcile.Result{}, err
}
