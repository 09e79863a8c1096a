// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

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
