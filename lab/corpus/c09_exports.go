// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

var crossNamespaceOwner = Entry{
	Name: "c09-cross-namespace-owner", Class: "C9",
	About: "An object has an owner reference to an object in another namespace. The garbage collector deletes it after " +
		"each creation.",
	Source: "Kubernetes documentation, Owners and Dependents: references across namespaces are disallowed by design. " +
		"https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/",
	Buggy: with(sharedExportWorld, func(env converge.Env) reconcile.Reconciler {
		return &ownedExportReconciler{env.Client}
	}),
	Correct: with(sharedExportWorld, func(env converge.Env) reconcile.Reconciler {
		return &sharedExportReconciler{env.Client}
	}),
}

type userErrorReconciler struct {
	client.Client
	retry bool
}

func (r *userErrorReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	timeout, invalid := time.ParseDuration(w.Spec.Timeout)
	if invalid != nil {
		setReady(w, false, "InvalidTimeout", invalid.Error())
		if r.retry {
			w.Status.Attempts++
		}
		if err := writeStatus(ctx, r.Client, before, w); err != nil {
			return reconcile.Result{}, err
		}
		if r.retry {
			return reconcile.Result{}, invalid
		}
		return reconcile.Result{}, nil
	}
	w.Spec.Data = map[string]string{"timeout-seconds": fmt.Sprint(timeout.Seconds())}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	setReady(w, true, "Applied", "")
	w.Status.Attempts = 0
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func userErrorWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Timeout: "5 minutes"}), func(w *Widget) { w.Spec.Timeout = "5m" }),
	}
}

// exportsNamespace is the namespace of all exports.
const exportsNamespace = "exports"

func exported(key types.NamespacedName) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: exportsNamespace, Name: key.Namespace + "." + key.Name},
	}
}

// fillExport sets the content and the origin of an export.
func fillExport(config *corev1.ConfigMap, w *Widget) {
	if config.Labels == nil {
		config.Labels = map[string]string{}
	}
	config.Labels["corpus.trueup.dev/namespace"], config.Labels[widgetLabel] = w.Namespace, w.Name
	config.Data = w.Spec.Data
}

type ownedExportReconciler struct{ client.Client }

func (r *ownedExportReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := exported(req.NamespacedName)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		fillExport(config, w)
		gvk := schema.GroupVersionKind{Group: "corpus.trueup.dev", Version: "v1", Kind: "Widget"}
		config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w, gvk)}
		return nil
	})
	return reconcile.Result{}, err
}

type sharedExportReconciler struct{ client.Client }

func (r *sharedExportReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := exported(req.NamespacedName)
	if !w.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.Delete(ctx, config)); err != nil {
			return reconcile.Result{}, fmt.Errorf("delete export: %w", err)
		}
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		fillExport(config, w)
		return nil
	})
	return reconcile.Result{}, err
}

func sharedExportWorld() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Watches: []converge.Watch{{
			Object: &corev1.ConfigMap{},
			Requests: func(_ context.Context, obj client.Object) []reconcile.Request {
				name, ok := obj.GetLabels()[widgetLabel]
				if !ok {
					return nil
				}
				return []reconcile.Request{
					{NamespacedName: types.NamespacedName{Namespace: obj.GetLabels()["corpus.trueup.dev/namespace"], Name: name}},
				}
			},
		}},
		Given: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exportsNamespace}}},
		Steps: changeData(),
	}
}
