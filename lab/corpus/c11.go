// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// C11: an object stays after it is no longer wanted.
var c11 = []Entry{
	{
		Name: "c11-no-owner-reference", Class: "C11",
		About: "One of two objects has no owner reference and stays when the owner is deleted.",
		Source: "Kubernetes documentation, Garbage Collection, Owners and dependents. " +
			"https://kubernetes.io/docs/concepts/architecture/garbage-collection/",
		Buggy: with(frontendWorld, func(env converge.Env) reconcile.Reconciler {
			return &frontendReconciler{env.Client, false}
		}),
		Correct: with(frontendWorld, func(env converge.Env) reconcile.Reconciler {
			return &frontendReconciler{env.Client, true}
		}),
	},
	{
		Name: "c11-scale-down-leaves-claim", Class: "C11", Faults: 1,
		About: "Claims are deleted after their pods, which they are found by. After a crash in between, claims stay.",
		Source: "Sieve (OSDI'22), intermediate-state bugs: a controller restarts between the writes of one reconcile, and " +
			"storage of removed members stays. " +
			"https://www.usenix.org/conference/osdi22/presentation/sun",
		Buggy: with(memberWorld, func(env converge.Env) reconcile.Reconciler {
			return &memberReconciler{env.Client, false}
		}),
		Correct: with(memberWorld, func(env converge.Env) reconcile.Reconciler {
			return &memberReconciler{env.Client, true}
		}),
	},
	{
		Name: "c11-moved-bucket", Class: "C11",
		About: "The name of the bucket depends on a field that users can change. After a change, the old bucket stays.",
		Source: "Crossplane documentation, Managed resources, Immutable fields: what makes another external resource " +
			"cannot be changed. " +
			"https://docs.crossplane.io/latest/managed-resources/managed-resources/",
		Buggy: with(bucketWorld, func(env converge.Env) reconcile.Reconciler {
			return movingReconciler{bucketReconciler{env}, false}
		}),
		Correct: with(bucketWorld, func(env converge.Env) reconcile.Reconciler {
			return movingReconciler{bucketReconciler{env}, true}
		}),
	},
	clusterScopedChild,
	{
		Name: "c11-failed-lookup-starts-over", Class: "C11", Faults: 2,
		About: "After an interrupted creation, a failed lookup is mistaken for a broken volume, and another volume is " +
			"created under a new name.",
		Source: "crossplane-runtime, annotation external-create-pending: what to do after a creation of which the outcome " +
			"is not known. " +
			"https://pkg.go.dev/github.com/crossplane/crossplane-runtime/pkg/meta#AnnotationKeyExternalCreatePending",
		Buggy:   with(volumeWorld, func(env converge.Env) reconcile.Reconciler { return &volumeReconciler{env, true} }),
		Correct: with(volumeWorld, func(env converge.Env) reconcile.Reconciler { return &volumeReconciler{env, false} }),
	},
}

// frontendReconciler creates a config map and a service.
type frontendReconciler struct {
	client.Client
	ownsAll bool
}

func (r *frontendReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("config map: %w", err)
	}
	service := newService(w)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		fillService(service, w)
		if r.ownsAll {
			return controllerutil.SetControllerReference(w, service, r.Scheme())
		}
		return nil
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("service: %w", err)
	}
	return reconcile.Result{}, nil
}

func frontendWorld() converge.Scenario {
	return converge.Scenario{
		For:  &Widget{},
		Owns: []client.Object{&corev1.ConfigMap{}, &corev1.Service{}},
		Steps: converge.Lifecycle(
			widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}, Host: "blue.example.com"}), withData("slow"),
			func(w *Widget) { w.Spec.Host = "green.example.com" },
		),
	}
}

// memberReconciler has a pod and a claim for each member, and removes those with the highest numbers.
type memberReconciler struct {
	client.Client
	listsClaims bool
}

func (r *memberReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for i := range w.Spec.Replicas {
		for _, obj := range []client.Object{newClaim(w, i), newMember(w, i)} {
			if err := ensure(ctx, r.Client, w, obj); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	return reconcile.Result{}, r.scaleDown(ctx, w)
}

func (r *memberReconciler) scaleDown(ctx context.Context, w *Widget) error {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, ofWidget(w)...); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if ordinal(pod.Name) < w.Spec.Replicas {
			continue
		}
		if err := remove(ctx, r.Client, &pod); err != nil {
			return err
		}
		if r.listsClaims {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: "data-" + pod.Name}, claim)
		if err == nil {
			err = remove(ctx, r.Client, claim)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if !r.listsClaims {
		return nil
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.List(ctx, &claims, ofWidget(w)...); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if ordinal(claim.Name) < w.Spec.Replicas {
			continue
		}
		if err := remove(ctx, r.Client, &claim); err != nil {
			return err
		}
	}
	return nil
}

func ordinal(name string) int32 {
	n, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func newMember(w *Widget, i int32) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: childMeta(w, fmt.Sprintf("%s-%d", w.Name, i)), Spec: podSpec(w.Spec.Image)}
}

func newClaim(w *Widget, i int32) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: childMeta(w, fmt.Sprintf("data-%s-%d", w.Name, i)),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

func memberWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1", Replicas: 3}), func(w *Widget) { w.Spec.Replicas = 1 }),
	}
}

// movingReconciler has a bucket in the desired region, and its key in the status.
type movingReconciler struct {
	bucketReconciler
	deletesOld bool
}

func (r movingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		if err := r.drop(ctx, b.Status.ID); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.unprotect(ctx, b)
	}
	if err := r.protect(ctx, b); err != nil {
		return reconcile.Result{}, err
	}
	if key := b.Spec.Region + "/" + bucketKey(b); b.Status.ID != key {
		if r.deletesOld {
			if err := r.drop(ctx, b.Status.ID); err != nil {
				return reconcile.Result{}, err
			}
		}
		b.Status.ID = key
		if err := r.Client.Status().Update(ctx, b); err != nil {
			return reconcile.Result{}, fmt.Errorf("record key: %w", err)
		}
	}
	if err := r.Cloud.Create(ctx, b.Status.ID, b.Spec.Policy); err != nil && !errors.Is(err, converge.ErrExists) {
		return reconcile.Result{}, fmt.Errorf("create bucket: %w", err)
	}
	return reconcile.Result{}, nil
}

func (r movingReconciler) drop(ctx context.Context, key string) error {
	if key == "" {
		return nil
	}
	if err := r.Cloud.Delete(ctx, key); err != nil && !errors.Is(err, converge.ErrAbsent) {
		return fmt.Errorf("delete bucket %s: %w", key, err)
	}
	return nil
}

var clusterScopedChild = Entry{
	Name: "c11-cluster-scoped-child", Class: "C11",
	About: "A cluster role has an owner reference to a namespaced object, which the garbage collector cannot resolve.",
	Source: "Kubernetes documentation, Owners and Dependents: such a dependent cannot be garbage collected. " +
		"https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/; see also " +
		"https://github.com/kubernetes/kubernetes/issues/98040",
	Buggy:   with(roleWorld, func(env converge.Env) reconcile.Reconciler { return &roleReconciler{env.Client, true} }),
	Correct: with(roleWorld, func(env converge.Env) reconcile.Reconciler { return &roleReconciler{env.Client, false} }),
}

// roleReconciler has a cluster role for each widget.
type roleReconciler struct {
	client.Client
	reference bool
}

func (r *roleReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "widget-" + w.Namespace + "-" + w.Name}}
	if !w.DeletionTimestamp.IsZero() {
		if err := r.Delete(ctx, role); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("delete cluster role: %w", err)
		}
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
		}
		return reconcile.Result{}, nil
	}
	if !r.reference && controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, role, func() error {
		metav1.SetMetaDataLabel(&role.ObjectMeta, widgetLabel, w.Name)
		metav1.SetMetaDataAnnotation(&role.ObjectMeta, "corpus.trueup.dev/namespace", w.Namespace)
		role.Rules = []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{
				"corpus.trueup.dev",
			}, Resources: []string{"widgets"}, ResourceNames: []string{w.Name, w.Spec.Ref},
		}}
		if r.reference {
			role.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "corpus.trueup.dev/v1", Kind: "Widget", Name: w.Name, UID: w.UID, Controller: new(true),
			}}
		}
		return nil
	})
	return reconcile.Result{}, err
}

func roleWorld() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Watches: []converge.Watch{{
			Object: &rbacv1.ClusterRole{},
			Requests: func(_ context.Context, obj client.Object) []reconcile.Request {
				name, ok := obj.GetLabels()[widgetLabel]
				if !ok {
					return nil
				}
				return []reconcile.Request{
					{NamespacedName: types.NamespacedName{Namespace: obj.GetAnnotations()["corpus.trueup.dev/namespace"], Name: name}},
				}
			},
		}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Ref: "b"}), func(w *Widget) { w.Spec.Ref = "c" }),
	}
}

// volumeReconciler has an external volume. It records the name before it creates the volume.
type volumeReconciler struct {
	converge.Env
	startsOver bool
}

func (r *volumeReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.release(ctx, w)
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	if w.Status.ID != "" {
		return reconcile.Result{}, nil
	}
	exists := false
	if w.Status.Pending != "" {
		// the last attempt was interrupted
		_, err := r.Cloud.Get(ctx, w.Status.Pending)
		switch {
		case err == nil:
			exists = true
		case errors.Is(err, converge.ErrAbsent):
		case r.startsOver:
			w.Status.Pending = ""
		default:
			return reconcile.Result{}, fmt.Errorf("look at volume %s: %w", w.Status.Pending, err)
		}
	}
	if w.Status.Pending == "" {
		w.Status.Attempts++
		w.Status.Pending = fmt.Sprintf("%s-%s-%d", w.Namespace, w.Name, w.Status.Attempts)
		if err := r.Client.Status().Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("record name: %w", err)
		}
	}
	if !exists {
		if err := r.Cloud.Create(ctx, w.Status.Pending, w.Spec.Storage); err != nil && !errors.Is(err, converge.ErrExists) {
			return reconcile.Result{}, fmt.Errorf("create volume: %w", err)
		}
	}
	w.Status.ID, w.Status.Pending = w.Status.Pending, ""
	return reconcile.Result{}, r.Client.Status().Update(ctx, w)
}

func (r *volumeReconciler) release(ctx context.Context, w *Widget) error {
	for _, name := range []string{w.Status.ID, w.Status.Pending} {
		if name == "" {
			continue
		}
		if err := r.Cloud.Delete(ctx, name); err != nil && !errors.Is(err, converge.ErrAbsent) {
			return fmt.Errorf("delete volume %s: %w", name, err)
		}
	}
	if controllerutil.RemoveFinalizer(w, finalizer) {
		return client.IgnoreNotFound(r.Client.Update(ctx, w))
	}
	return nil
}

func volumeWorld() converge.Scenario {
	return converge.Scenario{For: &Widget{}, Given: []client.Object{widget("a", WidgetSpec{Storage: "1Gi"})}}
}
