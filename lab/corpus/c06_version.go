// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// configs are widgets whose data changes.
func configs() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"color": "red"}})
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Lifecycle(w, func(w *Widget) { w.Spec.Data = map[string]string{"color": "blue"} }),
	}
}

// configKeeper keeps a config map with the data of a widget. The versions differ in how they handle a conflict.
type configKeeper struct {
	client.Client

	again func(ctx context.Context, c client.Client, config *corev1.ConfigMap) error
}

func (r *configKeeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{}
	err := r.Get(ctx, req.NamespacedName, config)
	if apierrs.IsNotFound(err) {
		config = &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name), Data: w.Spec.Data}
		if err := controllerutil.SetControllerReference(w, config, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.Create(ctx, config)
	}
	if err != nil || maps.Equal(config.Data, w.Spec.Data) {
		return reconcile.Result{}, err
	}
	config.Data = w.Spec.Data
	if err = r.Update(ctx, config); apierrs.IsConflict(err) {
		err = r.again(ctx, r.Client, config)
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// overwrite writes the same object again, with the current resource version.
func overwrite(ctx context.Context, c client.Client, config *corev1.ConfigMap) error {
	current := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(config), current); err != nil {
		return err
	}
	config.ResourceVersion = current.ResourceVersion
	return c.Update(ctx, config)
}

// changeCurrent changes the current object.
func changeCurrent(ctx context.Context, c client.Client, config *corev1.ConfigMap) error {
	current := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(config), current); err != nil {
		return err
	}
	current.Data = config.Data
	return c.Update(ctx, current)
}
