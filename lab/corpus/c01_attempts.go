// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

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
