// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// everything passes all events.
var everything = predicate.Funcs{}

type periodicReconciler struct{ client.Client }

func (r *periodicReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	setReady(w, true, "Applied", "")
	return reconcile.Result{RequeueAfter: 10 * time.Minute}, writeStatus(ctx, r.Client, before, w)
}

// applyReconciler applies a config map, and a deployment that has its data in its environment.
type applyReconciler struct{ client.Client }

func (r *applyReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	owner := metav1ac.OwnerReference().WithAPIVersion("corpus.trueup.dev/v1").WithKind("Widget").WithName(w.Name).
		WithUID(w.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	labels := map[string]string{widgetLabel: w.Name}
	config := corev1ac.ConfigMap(w.Name, w.Namespace).WithOwnerReferences(owner).WithLabels(labels).WithData(w.Spec.Data)
	if err := r.Apply(ctx, config, client.FieldOwner("widgets"), client.ForceOwnership); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config map: %w", err)
	}
	container := corev1ac.Container().WithName("main").WithImage(w.Spec.Image).
		WithEnvFrom(corev1ac.EnvFromSource().WithConfigMapRef(corev1ac.ConfigMapEnvSource().WithName(w.Name)))
	deployment := appsv1ac.Deployment(w.Name, w.Namespace).WithOwnerReferences(owner).WithLabels(labels).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(w.Spec.Replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(container))))
	if err := r.Apply(ctx, deployment, client.FieldOwner("widgets"), client.ForceOwnership); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply deployment: %w", err)
	}
	return reconcile.Result{}, nil
}

// lockedReconciler has a finalizer only for the patch: it deletes its config map itself.
type lockedReconciler struct{ client.Client }

func (r *lockedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, config := &Widget{}, &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	base := w.DeepCopy()
	err := r.Get(ctx, req.NamespacedName, config)
	switch {
	case !w.DeletionTimestamp.IsZero():
		if err == nil && metav1.IsControlledBy(config, w) {
			err = remove(ctx, r.Client, config)
		}
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("delete config map: %w", err)
		}
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(r.patch(ctx, w, base))
		}
		return reconcile.Result{}, nil
	case controllerutil.AddFinalizer(w, finalizer):
		return reconcile.Result{}, r.patch(ctx, w, base)
	case apierrors.IsNotFound(err):
		config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Data: w.Spec.Data}
		if err := controllerutil.SetControllerReference(w, config, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.Create(ctx, config)
	case err != nil:
		return reconcile.Result{}, err
	case !metav1.IsControlledBy(config, w):
		return reconcile.Result{}, fmt.Errorf("config map %s is not that of widget %s", config.Name, w.Name)
	case equality.Semantic.DeepEqual(config.Data, w.Spec.Data):
		return reconcile.Result{}, nil
	}
	old := config.DeepCopy()
	config.Data = w.Spec.Data
	return reconcile.Result{}, r.patch(ctx, config, old)
}

func (r *lockedReconciler) patch(ctx context.Context, obj, base client.Object) error {
	return r.Patch(ctx, obj, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

type adoptingReconciler struct{ client.Client }

func (r *adoptingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, config := &Widget{}, &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.Get(ctx, req.NamespacedName, config)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, ensure(ctx, r.Client, w, &corev1.ConfigMap{
			ObjectMeta: childMeta(w, w.Name), Data: w.Spec.Data,
		})
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	base := config.DeepCopy()
	if err := controllerutil.SetControllerReference(w, config, r.Scheme()); err != nil {
		return reconcile.Result{}, fmt.Errorf("adopt: %w", err)
	}
	config.Data = w.Spec.Data
	if equality.Semantic.DeepEqual(base, config) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.Update(ctx, config)
}

type namingReconciler struct{ converge.Env }

func (r *namingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.ID == "" {
		// The cache may be stale, and a name may be recorded already.
		if err := r.APIReader.Get(ctx, req.NamespacedName, w); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if w.Status.ID == "" {
		w.Status.ID = fmt.Sprintf("%s-%x", w.Name, hash(string(w.UID)))
		if err := r.Client.Status().Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("record name: %w", err)
		}
	}
	return reconcile.Result{}, ensure(ctx, r.Client, w, &corev1.Secret{
		ObjectMeta: childMeta(w, w.Status.ID), StringData: w.Spec.Data,
	})
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

type passwordReconciler struct{ client.Client }

func (r *passwordReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	password := make([]byte, 16)
	if _, err := rand.Read(password); err != nil {
		return reconcile.Result{}, err
	}
	secret := &corev1.Secret{
		ObjectMeta: childMeta(w, w.Name+"-password"), Immutable: new(true),
		Data: map[string][]byte{"password": []byte(hex.EncodeToString(password))},
	}
	if err := ensure(ctx, r.Client, w, secret); err != nil {
		return reconcile.Result{}, fmt.Errorf("secret: %w", err)
	}
	before := w.DeepCopy()
	setReady(w, true, "Created", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

type replacingReconciler struct{ client.Client }

func (r *replacingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, current := &Widget{}, &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.Get(ctx, req.NamespacedName, current)
	if err == nil && metav1.IsControlledBy(current, w) && !equality.Semantic.DeepEqual(current.Data, w.Spec.Data) {
		// The event of the deletion triggers the next request.
		return reconcile.Result{}, remove(ctx, r.Client, current)
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, ensure(ctx, r.Client, w, &corev1.ConfigMap{
		ObjectMeta: childMeta(w, w.Name), Data: w.Spec.Data, Immutable: new(true),
	})
}

type revisionReconciler struct{ client.Client }

func (r *revisionReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name := fmt.Sprintf("%s-%x", w.Name, hash(fmt.Sprint(w.Spec.Data)))
	revision := &corev1.ConfigMap{ObjectMeta: childMeta(w, name), Data: w.Spec.Data, Immutable: new(true)}
	if err := ensure(ctx, r.Client, w, revision); err != nil {
		return reconcile.Result{}, fmt.Errorf("config map: %w", err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		setSelector(deployment, w)
		deployment.Spec.Replicas = new(w.Spec.Replicas)
		setImage(&deployment.Spec.Template, w.Spec.Image)
		deployment.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}}
		return controllerutil.SetControllerReference(w, deployment, r.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("deployment: %w", err)
	}
	if !fullyRolledOut(deployment) {
		return reconcile.Result{}, nil
	}
	var configs corev1.ConfigMapList
	if err := r.List(ctx, &configs, ofWidget(w)...); err != nil {
		return reconcile.Result{}, err
	}
	for _, config := range configs.Items {
		if config.Name == name || !metav1.IsControlledBy(&config, w) {
			continue
		}
		if err := remove(ctx, r.Client, &config); err != nil {
			return reconcile.Result{}, fmt.Errorf("delete old config map: %w", err)
		}
	}
	return reconcile.Result{}, nil
}
