// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

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
