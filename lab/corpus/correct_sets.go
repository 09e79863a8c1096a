// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

var correctSets = []Entry{
	{
		Name:  "correct-surplus-with-precondition",
		About: "Has a config map for each tag, and deletes those of other tags with UID and version preconditions.",
		Source: "Kubernetes API, Preconditions of DeleteOptions. " +
			"https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/delete-options/",
		Correct: with(tagWorld, func(env converge.Env) reconcile.Reconciler { return &tagReconciler{env.Client, false} }),
	},
	{
		Name:  "correct-parallel-creates",
		About: "Creates the config maps of all tags concurrently, and joins the errors.",
		Source: "kubernetes/kubernetes, slowStartBatch of the replica set controller. " +
			"https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/replicaset/replica_set.go",
		Correct: with(tagWorld, func(env converge.Env) reconcile.Reconciler { return &tagReconciler{env.Client, true} }),
	},
	{
		Name:  "correct-one-after-the-other",
		About: "Creates a pod only if all pods before it are running, and waits for events in between.",
		Source: "Kubernetes documentation, StatefulSet, OrderedReady Pod Management. " +
			"https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#orderedready-pod-management",
		Correct: with(orderedWorld, func(env converge.Env) reconcile.Reconciler { return &orderedReconciler{env.Client} }),
	},
	{
		Name:  "correct-shared-by-two",
		About: "Two widgets share a config map: each has a key and an owner reference in it, and the last one deletes it.",
		Source: "Kubernetes documentation, Garbage Collection: an object goes when its last owner does. " +
			"https://kubernetes.io/docs/concepts/architecture/garbage-collection/",
		Correct: with(twoOwnersWorld, func(env converge.Env) reconcile.Reconciler { return &keyReconciler{env} }),
	},
	{
		Name:  "correct-two-scopes",
		About: "Has a cluster role, which it deletes itself, and a service account, which the garbage collector deletes.",
		Source: "Kubernetes documentation, Owners and Dependents. " +
			"https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/",
		Correct: with(scopesWorld, func(env converge.Env) reconcile.Reconciler {
			return &scopesReconciler{roleReconciler{env.Client, false}}
		}),
	},
}

// tagReconciler has a config map for each tag of a widget.
type tagReconciler struct {
	client.Client
	parallel bool
}

func (r *tagReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.ensureAll(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	var configs corev1.ConfigMapList
	if err := r.List(ctx, &configs, ofWidget(w)...); err != nil {
		return reconcile.Result{}, err
	}
	for _, config := range configs.Items {
		if !metav1.IsControlledBy(&config, w) || slices.Contains(w.Spec.Tags, config.Data["tag"]) ||
			!config.DeletionTimestamp.IsZero() {
			continue
		}
		seen := client.Preconditions{UID: new(config.UID), ResourceVersion: new(config.ResourceVersion)}
		if err := r.Delete(ctx, &config, seen); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("delete %s: %w", config.Name, err)
		}
	}
	return reconcile.Result{}, nil
}

func (r *tagReconciler) ensureAll(ctx context.Context, w *Widget) error {
	errs := make([]error, len(w.Spec.Tags))
	var group sync.WaitGroup
	for i, tag := range w.Spec.Tags {
		create := func() {
			config := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name+"-"+tag), Data: map[string]string{"tag": tag}}
			if err := ensure(ctx, r.Client, w, config); err != nil {
				errs[i] = fmt.Errorf("tag %s: %w", tag, err)
			}
		}
		if r.parallel {
			group.Go(create)
		} else {
			create()
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

func tagWorld() converge.Scenario {
	return converge.Scenario{
		For:  &Widget{},
		Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Lifecycle(
			widget("a", WidgetSpec{Tags: []string{"red", "green", "blue"}}),
			func(w *Widget) { w.Spec.Tags = []string{"green", "yellow"} },
		),
	}
}

type orderedReconciler struct{ client.Client }

func (r *orderedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	w.Status.ReadyReplicas = 0
	for i := range w.Spec.Replicas {
		pod := newMember(w, i)
		if err := ensure(ctx, r.Client, w, pod); err != nil {
			return reconcile.Result{}, fmt.Errorf("pod %d: %w", i, err)
		}
		if err := r.Get(ctx, client.ObjectKeyFromObject(pod), pod); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if pod.Status.Phase != corev1.PodRunning {
			setReady(w, false, "Waiting", fmt.Sprintf("pod %d is not running", i))
			return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
		}
		w.Status.ReadyReplicas++
	}
	setReady(w, true, "Running", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func orderedWorld() converge.Scenario {
	s := kubeletWorld()
	s.Given = nil
	s.Steps = converge.Steps(
		converge.Apply(widget("a", WidgetSpec{Image: "v1", Replicas: 2})), converge.Settle(),
		converge.Change(widget("a", WidgetSpec{}), func(w *Widget) { w.Spec.Replicas = 3 }), converge.Settle(),
		converge.Delete(widget("a", WidgetSpec{})), converge.Settle(),
	)
	return s
}

// keyReconciler has a key of a widget in a config map that widgets share.
type keyReconciler struct{ converge.Env }

func (r *keyReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		if err := r.leave(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("leave shared config map: %w", err)
		}
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(r.Client.Update(ctx, w))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Spec.Ref}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		if config.Data == nil {
			config.Data = map[string]string{}
		}
		config.Data[w.Name] = w.Spec.Host
		return controllerutil.SetOwnerReference(w, config, r.Client.Scheme())
	})
	return reconcile.Result{}, err
}

func (r *keyReconciler) leave(ctx context.Context, w *Widget) error {
	config := &corev1.ConfigMap{}
	// With a stale cache, the widget would be deleted too early.
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, config); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := config.DeepCopy()
	delete(config.Data, w.Name)
	config.OwnerReferences = slices.DeleteFunc(config.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.UID == w.UID
	})
	if len(config.OwnerReferences) > 0 {
		if equality.Semantic.DeepEqual(before, config) {
			return nil
		}
		return r.Client.Update(ctx, config)
	}
	seen := client.Preconditions{UID: new(config.UID), ResourceVersion: new(config.ResourceVersion)}
	return client.IgnoreNotFound(r.Client.Delete(ctx, config, seen))
}

func twoOwnersWorld() converge.Scenario {
	a := widget("a", WidgetSpec{Ref: "shared", Host: "a.example.com"})
	b := widget("b", WidgetSpec{Ref: "shared", Host: "b.example.com"})
	return converge.Scenario{
		For: &Widget{},
		Watches: []converge.Watch{{
			Object: &corev1.ConfigMap{},
			Requests: func(_ context.Context, obj client.Object) (requests []reconcile.Request) {
				for _, owner := range obj.GetOwnerReferences() {
					requests = append(requests, reconcile.Request{
						NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name},
					})
				}
				return requests
			},
		}},
		Steps: converge.Steps(
			converge.Apply(a), converge.Apply(b), converge.Settle(), converge.Delete(a), converge.Settle(),
			converge.Delete(b), converge.Settle(),
		),
	}
}

// scopesReconciler is roleReconciler with a namespaced object.
type scopesReconciler struct{ roleReconciler }

func (r *scopesReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.DeletionTimestamp.IsZero() {
		account := &corev1.ServiceAccount{ObjectMeta: childMeta(w, w.Name)}
		if err := ensure(ctx, r.Client, w, account); err != nil {
			return reconcile.Result{}, fmt.Errorf("service account: %w", err)
		}
	}
	return r.roleReconciler.Reconcile(ctx, req)
}

func scopesWorld() converge.Scenario {
	s := roleWorld()
	s.Owns = []client.Object{&corev1.ServiceAccount{}}
	return s
}
