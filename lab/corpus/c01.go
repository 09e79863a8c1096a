// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// c01 are bugs of crashes between two writes.
var c01 = []Entry{{
	Name: "c01-phase-before-job", Class: "C1", Faults: 1,
	About: "The status reports a running migration before its job is created. After a crash in between, the job is " +
		"never created.",
	Source: "Kubernetes API conventions, typical status properties, on phases as state machines: " +
		"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties",
	Buggy:   with(migrations, func(e converge.Env) reconcile.Reconciler { return &phasedMigration{migration{e.Client}} }),
	Correct: with(migrations, func(e converge.Env) reconcile.Reconciler { return &ensuredMigration{migration{e.Client}} }),
}, {
	Name: "c01-resize-recorded-first", Class: "C1", Faults: 1,
	About: "A new size is recorded before the volumes have it. After a crash in between, the volumes are not checked " +
		"again.",
	Source: "Sieve (OSDI'22), intermediate-state bugs, the resize-pvc workload of rabbitmq-operator: " +
		"https://github.com/sieve-project/sieve",
	Buggy:   with(volumes, func(e converge.Env) reconcile.Reconciler { return &recordedResize{volumeSet{e.Client}} }),
	Correct: with(volumes, func(e converge.Env) reconcile.Reconciler { return &comparedResize{volumeSet{e.Client}} }),
}, {
	Name: "c01-key-of-generated-name", Class: "C1", Faults: 1,
	About: "A secret with a generated name is created, and its name is written to the status afterwards. After a crash " +
		"in between, a second one is created.",
	Source: "cert-manager, keymanager_controller.go, which has to clean up secrets that " +
		"status.nextPrivateKeySecretName does not name: " +
		"https://github.com/cert-manager/cert-manager/blob/master/pkg/controller/certificates/keymanager/keymanager_controller.go",
	Buggy:   with(keys, func(e converge.Env) reconcile.Reconciler { return &generatedKey{e.Client} }),
	Correct: with(keys, func(e converge.Env) reconcile.Reconciler { return &namedKey{e.Client} }),
}, {
	Name: "c01-pending-forgotten", Class: "C1", Faults: 2,
	About: "After a crash, the mark of a pending creation is removed before the created object is recorded. After a " +
		"second crash, another one is created.",
	Source: "crossplane-runtime, the annotation crossplane.io/external-create-pending of managed resources: " +
		"https://github.com/crossplane/crossplane-runtime/blob/main/pkg/meta/meta.go",
	Buggy: with(pendingBuckets, func(e converge.Env) reconcile.Reconciler {
		return &forgottenPending{pendingBucket{e}}
	}),
	Correct: with(pendingBuckets, func(e converge.Env) reconcile.Reconciler { return &keptPending{pendingBucket{e}} }),
}, {
	Name: "c01-attempt-not-undone", Class: "C1", Faults: 2,
	About: "The object of a failed attempt is deleted once, right after the failure. If that fails too, it stays, " +
		"because the next attempt uses another name.",
	Source: "cert-manager, keymanager_controller.go, which looks for all secrets of a certificate and deletes those " +
		"that are too many: " +
		"https://github.com/cert-manager/cert-manager/blob/master/pkg/controller/certificates/keymanager/keymanager_controller.go",
	Buggy:   with(attempts, func(e converge.Env) reconcile.Reconciler { return &forgottenAttempt{attempt{e.Client}} }),
	Correct: with(attempts, func(e converge.Env) reconcile.Reconciler { return &prunedAttempt{attempt{e.Client}} }),
}}

// migrations are widgets whose image changes. Each image needs a job.
func migrations() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&batchv1.Job{}},
		Steps: converge.Lifecycle(widget("app", WidgetSpec{Image: "app:1"}), func(w *Widget) { w.Spec.Image = "app:2" }),
		World: []converge.Actor{converge.Jobs(converge.BecomeReady)},
	}
}

// migration runs a job for each image of a widget, and reports its progress in the phase.
type migration struct{ client.Client }

func (r *migration) job(w *Widget) *batchv1.Job {
	spec := podSpec(w.Spec.Image)
	spec.RestartPolicy = corev1.RestartPolicyNever
	name := fmt.Sprintf("%s-migrate-%d", w.Name, w.Generation)
	return &batchv1.Job{
		ObjectMeta: childMeta(w, name),
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
	}
}

func (r *migration) create(ctx context.Context, w *Widget) error {
	job := r.job(w)
	if err := controllerutil.SetControllerReference(w, job, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, job)
}

// wait records that the job is done, if it is.
func (r *migration) wait(ctx context.Context, w *Widget, job *batchv1.Job) error {
	if job.Status.Succeeded == 0 {
		return nil
	}
	w.Status.Phase, w.Status.Image = "Migrated", w.Spec.Image
	return r.Status().Update(ctx, w)
}

type phasedMigration struct{ migration }

func (r *phasedMigration) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if w.Status.ObservedGeneration != w.Generation {
		w.Status.Phase, w.Status.ObservedGeneration = "Migrating", w.Generation
		if err := r.Status().Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.create(ctx, w)
	}
	if w.Status.Phase != "Migrating" {
		return reconcile.Result{}, nil
	}
	job := &batchv1.Job{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(r.job(w)), job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, r.wait(ctx, w, job)
}

type ensuredMigration struct{ migration }

func (r *ensuredMigration) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if w.Status.ObservedGeneration != w.Generation {
		w.Status.Phase, w.Status.ObservedGeneration = "Migrating", w.Generation
		if err := r.Status().Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	if w.Status.Phase != "Migrating" {
		return reconcile.Result{}, nil
	}
	job := &batchv1.Job{}
	err := r.Get(ctx, client.ObjectKeyFromObject(r.job(w)), job)
	if apierrs.IsNotFound(err) {
		return reconcile.Result{}, r.create(ctx, w)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if !metav1.IsControlledBy(job, w) {
		return reconcile.Result{}, fmt.Errorf("job %s has another owner", job.Name)
	}
	return reconcile.Result{}, r.wait(ctx, w, job)
}

// volumes are widgets whose storage grows.
func volumes() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.PersistentVolumeClaim{}},
		Steps: converge.Lifecycle(widget("queue", WidgetSpec{Replicas: 3, Storage: "1Gi"}), func(w *Widget) {
			w.Spec.Storage = "2Gi"
		}),
		World: []converge.Actor{{
			Name: "volume binder", For: &corev1.PersistentVolumeClaim{},
			Act: func(ctx context.Context, c client.Client, obj client.Object) error {
				claim := obj.(*corev1.PersistentVolumeClaim)
				if claim.Status.Phase == corev1.ClaimBound {
					return nil
				}
				claim.Status.Phase = corev1.ClaimBound
				return c.Status().Update(ctx, claim)
			},
		}},
	}
}

// volumeSet has a volume for each replica.
type volumeSet struct{ client.Client }

// ensure creates or resizes a volume.
func (r *volumeSet) ensure(ctx context.Context, w *Widget, i int32) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: childMeta(w, fmt.Sprintf("data-%s-%d", w.Name, i))}
	size, err := resource.ParseQuantity(w.Spec.Storage)
	if err != nil {
		return reconcile.TerminalError(err)
	}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, claim, func() error {
		if claim.CreationTimestamp.IsZero() {
			claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		} else if !metav1.IsControlledBy(claim, w) {
			return fmt.Errorf("volume %s has another owner", claim.Name)
		}
		if claim.Spec.Resources.Requests == nil {
			claim.Spec.Resources.Requests = corev1.ResourceList{}
		}
		if claim.Spec.Resources.Requests.Storage().Cmp(size) != 0 {
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = size
		}
		return controllerutil.SetControllerReference(w, claim, r.Scheme())
	})
	return err
}

// exists reports whether the volume exists, with any size.
func (r *volumeSet) exists(ctx context.Context, w *Widget, i int32) (bool, error) {
	key := client.ObjectKey{Namespace: w.Namespace, Name: fmt.Sprintf("data-%s-%d", w.Name, i)}
	err := r.Get(ctx, key, &corev1.PersistentVolumeClaim{})
	return err == nil, client.IgnoreNotFound(err)
}

type recordedResize struct{ volumeSet }

func (r *recordedResize) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	resize := w.Status.ID != w.Spec.Storage
	if resize {
		w.Status.ID, w.Status.ObservedGeneration = w.Spec.Storage, w.Generation
		if err := r.Status().Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("recording the size: %w", err)
		}
	}
	for i := range w.Spec.Replicas {
		there, err := r.exists(ctx, w, i)
		if err != nil {
			return reconcile.Result{}, err
		}
		if !there || resize {
			if err := r.ensure(ctx, w, i); err != nil {
				return reconcile.Result{}, fmt.Errorf("volume %d: %w", i, err)
			}
		}
	}
	return reconcile.Result{}, nil
}

type comparedResize struct{ volumeSet }

func (r *comparedResize) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	for i := range w.Spec.Replicas {
		if err := r.ensure(ctx, w, i); err != nil {
			return reconcile.Result{}, fmt.Errorf("volume %d: %w", i, err)
		}
	}
	if w.Status.ID == w.Spec.Storage && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	w.Status.ID, w.Status.ObservedGeneration = w.Spec.Storage, w.Generation
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

// attempts are widgets that need a secret, and a config map that names it.
func attempts() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		Given:   []client.Object{widget("ledger", WidgetSpec{})},
		Desired: oneAttempt,
	}
}

// oneAttempt returns an error unless each widget has one secret, which its config map names.
func oneAttempt(s converge.State) error {
	widgets, secrets := &WidgetList{}, &corev1.SecretList{}
	if err := s.List(widgets); err != nil {
		return err
	}
	if err := s.List(secrets); err != nil {
		return err
	}
	if len(widgets.Items) != len(secrets.Items) {
		return fmt.Errorf("%d secrets for %d widgets", len(secrets.Items), len(widgets.Items))
	}
	for _, w := range widgets.Items {
		cm := &corev1.ConfigMap{ObjectMeta: meta(w.Name)}
		if !s.Get(cm) || cm.Data["secret"] != secrets.Items[0].Name {
			return fmt.Errorf("the config map does not name %s", secrets.Items[0].Name)
		}
	}
	return nil
}

// attempt creates two objects. If it cannot create the second one, it abandons the first one, and the next attempt uses
// another name.
type attempt struct{ client.Client }

func attemptName(w *Widget, n int32) string { return fmt.Sprintf("%s-%d", w.Name, n) }

// load returns a widget whose status has the number of an attempt, or nil if nothing is to do.
func (r *attempt) load(ctx context.Context, req reconcile.Request) (*Widget, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	if w.Status.Number == 0 {
		return w, r.next(ctx, w)
	}
	return w, nil
}

// next starts another attempt.
func (r *attempt) next(ctx context.Context, w *Widget) error {
	w.Status.Number++
	return r.Status().Update(ctx, w)
}

func (r *attempt) secret(ctx context.Context, w *Widget) error {
	secret := &corev1.Secret{ObjectMeta: childMeta(w, attemptName(w, w.Status.Number))}
	err := r.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if err == nil && !metav1.IsControlledBy(secret, w) {
		return fmt.Errorf("secret %s has another owner", secret.Name)
	}
	if !apierrs.IsNotFound(err) {
		return err
	}
	if err := controllerutil.SetControllerReference(w, secret, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, secret)
}

func (r *attempt) publish(ctx context.Context, w *Widget) error {
	cm := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		cm.Data = map[string]string{"secret": attemptName(w, w.Status.Number)}
		return controllerutil.SetControllerReference(w, cm, r.Scheme())
	})
	return err
}

// failed reports whether an error makes an attempt fail. After other errors, such as a conflict, the attempt continues.
func failed(err error) bool {
	return apierrs.IsTimeout(err) || apierrs.IsServerTimeout(err) || apierrs.IsInternalError(err)
}

type forgottenAttempt struct{ attempt }

func (r *forgottenAttempt) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.load(ctx, req)
	if w == nil || err != nil {
		return reconcile.Result{}, err
	}
	if err := r.secret(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.publish(ctx, w); failed(err) {
		secret := &corev1.Secret{ObjectMeta: childMeta(w, attemptName(w, w.Status.Number))}
		if undo := r.Delete(ctx, secret); undo != nil {
			log.FromContext(ctx).Error(undo, "Cannot delete the secret of the failed attempt.")
		}
		if next := r.next(ctx, w); next != nil {
			return reconcile.Result{}, next
		}
		return reconcile.Result{}, fmt.Errorf("attempt %d: %w", w.Status.Number-1, err)
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

type prunedAttempt struct{ attempt }

func (r *prunedAttempt) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.load(ctx, req)
	if w == nil || err != nil {
		return reconcile.Result{}, err
	}
	if err := r.secret(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.publish(ctx, w); failed(err) {
		if next := r.next(ctx, w); next != nil {
			return reconcile.Result{}, next
		}
		return reconcile.Result{}, fmt.Errorf("attempt %d: %w", w.Status.Number-1, err)
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.prune(ctx, w)
}

// prune deletes the secrets of earlier attempts.
func (r *prunedAttempt) prune(ctx context.Context, w *Widget) error {
	secrets := &corev1.SecretList{}
	if err := r.List(ctx, secrets, ofWidget(w)...); err != nil {
		return err
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if secret.Name == attemptName(w, w.Status.Number) || !metav1.IsControlledBy(secret, w) {
			continue
		}
		if err := r.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", secret.Name, err)
		}
	}
	return nil
}

// keys are widgets that need a secret.
func keys() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.Secret{}},
		Given: []client.Object{widget("web", WidgetSpec{Host: "web.example.com"})},
	}
}

type generatedKey struct{ client.Client }

func (r *generatedKey) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.ID != "" {
		err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Status.ID}, &corev1.Secret{})
		if err == nil || !apierrs.IsNotFound(err) {
			return reconcile.Result{}, err
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: childMeta(w, ""),
		StringData: map[string]string{"host": w.Spec.Host},
	}
	secret.GenerateName = w.Name + "-key-"
	if err := controllerutil.SetControllerReference(w, secret, r.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.Create(ctx, secret); err != nil {
		return reconcile.Result{}, fmt.Errorf("creating the key: %w", err)
	}
	w.Status.ID = secret.Name
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

type namedKey struct{ client.Client }

func (r *namedKey) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name + "-key"}, secret)
	if apierrs.IsNotFound(err) {
		secret = &corev1.Secret{
			ObjectMeta: childMeta(w, w.Name+"-key"),
			StringData: map[string]string{"host": w.Spec.Host},
		}
		if err := controllerutil.SetControllerReference(w, secret, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		err = r.Create(ctx, secret)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("the key: %w", err)
	}
	if !metav1.IsControlledBy(secret, w) {
		return reconcile.Result{}, fmt.Errorf("secret %s is not of widget %s", secret.Name, w.Name)
	}
	if w.Status.ID == secret.Name {
		return reconcile.Result{}, nil
	}
	w.Status.ID = secret.Name
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

// pendingBuckets are buckets in a system that generates their names.
func pendingBuckets() converge.Scenario {
	return converge.Scenario{For: &Bucket{}, Given: []client.Object{bucket("logs", BucketSpec{Region: "eu"})}}
}

const (
	// pendingAnnotation is set while a bucket may have been created whose name is not known yet.
	pendingAnnotation = "corpus.trueup.dev/create-pending"
	// externalName is the annotation with the name that the system has generated.
	externalName = "corpus.trueup.dev/external-name"
)

// pendingBucket marks a Bucket before it creates the external bucket.
type pendingBucket struct{ converge.Env }

// load returns a bucket that has a finalizer, or nil if nothing more is to do.
func (r *pendingBucket) load(ctx context.Context, key client.ObjectKey) (*Bucket, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, key, b); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return nil, r.cleanUp(ctx, b)
	}
	if controllerutil.AddFinalizer(b, finalizer) {
		return b, r.Client.Update(ctx, b)
	}
	return b, nil
}

func (r *pendingBucket) prefix(b *Bucket) string { return b.Namespace + "/" + b.Name + "/" }

func (r *pendingBucket) cleanUp(ctx context.Context, b *Bucket) error {
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return nil
	}
	names, err := r.Cloud.List(ctx, r.prefix(b))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := deleteCloud(ctx, r.Cloud, name); err != nil {
			return fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return client.IgnoreNotFound(r.Client.Update(ctx, b))
}

// find returns the name of the bucket that an earlier attempt has created.
func (r *pendingBucket) find(ctx context.Context, b *Bucket) (string, error) {
	names, err := r.Cloud.List(ctx, r.prefix(b))
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

// create marks the Bucket, creates the external bucket, and records the name.
func (r *pendingBucket) create(ctx context.Context, b *Bucket) error {
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, pendingAnnotation, "true")
	if err := r.Client.Update(ctx, b); err != nil {
		return err
	}
	name, err := r.Cloud.CreateNamed(ctx, r.prefix(b), b.Spec.Region)
	if err != nil {
		return err
	}
	return r.record(ctx, b, name)
}

// record replaces the mark by the name.
func (r *pendingBucket) record(ctx context.Context, b *Bucket, name string) error {
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, externalName, name)
	delete(b.Annotations, pendingAnnotation)
	return r.Client.Update(ctx, b)
}

type forgottenPending struct{ pendingBucket }

func (r *forgottenPending) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b, err := r.load(ctx, req.NamespacedName)
	if b == nil || err != nil || b.Annotations[externalName] != "" {
		return reconcile.Result{}, err
	}
	if b.Annotations[pendingAnnotation] != "" {
		name, err := r.find(ctx, b)
		if err != nil {
			return reconcile.Result{}, err
		}
		delete(b.Annotations, pendingAnnotation)
		if err := r.Client.Update(ctx, b); err != nil {
			return reconcile.Result{}, err
		}
		if name != "" {
			return reconcile.Result{}, r.record(ctx, b, name)
		}
	}
	return reconcile.Result{}, r.create(ctx, b)
}

type keptPending struct{ pendingBucket }

func (r *keptPending) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b, err := r.load(ctx, req.NamespacedName)
	if b == nil || err != nil || b.Annotations[externalName] != "" {
		return reconcile.Result{}, err
	}
	if b.Annotations[pendingAnnotation] != "" {
		name, err := r.find(ctx, b)
		if err != nil {
			return reconcile.Result{}, err
		}
		if name != "" {
			return reconcile.Result{}, r.record(ctx, b, name)
		}
	}
	return reconcile.Result{}, r.create(ctx, b)
}
