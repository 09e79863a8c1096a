// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// approvals are widgets that are approved after they were created.
func approvals() converge.Scenario {
	w := widget("access", WidgetSpec{Ref: "alice"})
	approve := func(ctx context.Context, c client.Client) error {
		current := &Widget{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), current); err != nil {
			return err
		}
		apimeta.SetStatusCondition(&current.Status.Conditions, metav1.Condition{
			Type: "Approved", Status: metav1.ConditionTrue, Reason: "ByAdministrator", ObservedGeneration: current.Generation,
		})
		return c.Status().Update(ctx, current)
	}
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Steps(converge.Apply(w), converge.Settle(),
			converge.Do("approve the widget", approve), converge.Settle(),
			converge.Delete(w), converge.Settle()),
	}
}

// lockedMergeFrom returns a merge patch that fails if the object has changed.
func lockedMergeFrom(obj client.Object) client.Patch {
	return client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
}

// approval grants access to approved widgets.
type approval struct {
	client.Client
	base func(client.Object) client.Patch
}

func (r *approval) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if apimeta.IsStatusConditionTrue(w.Status.Conditions, "Approved") {
		grant := &corev1.ConfigMap{ObjectMeta: childMeta(w, "grant-"+w.Name)}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, grant, func() error {
			metav1.SetMetaDataLabel(&grant.ObjectMeta, widgetLabel, w.Name)
			grant.Data = map[string]string{"user": w.Spec.Ref}
			return controllerutil.SetControllerReference(w, grant, r.Scheme())
		}); err != nil {
			return reconcile.Result{}, fmt.Errorf("granting access: %w", err)
		}
	}
	before := w.DeepCopy()
	changed := apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Valid", ObservedGeneration: w.Generation,
	})
	if !changed {
		return reconcile.Result{}, nil
	}
	w.Status.ObservedGeneration = w.Generation
	return reconcile.Result{}, r.Status().Patch(ctx, w, r.base(before))
}

// requests are widgets that are to be signed with a key in a secret.
func requests() converge.Scenario {
	root := &corev1.Secret{ObjectMeta: meta("root"), Data: map[string][]byte{"key": []byte("secret")}}
	team := &corev1.Secret{ObjectMeta: meta("team"), Data: map[string][]byte{"key": []byte("shared")}}
	www := widget("www", WidgetSpec{Host: "www.example.com", Ref: "root"})
	wiki := widget("wiki", WidgetSpec{Host: "wiki.example.com", Ref: "team"})
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Given: []client.Object{root, www},
		Steps: converge.Steps(converge.Settle(), converge.Apply(team), converge.Apply(wiki), converge.Settle(),
			converge.Delete(www), converge.Delete(wiki), converge.Settle()),
	}
}

// signer signs the host of a widget.
type signer struct{ client.Client }

func (r *signer) sign(ctx context.Context, w *Widget, key *corev1.Secret) error {
	cm := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name+"-certificate")}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, widgetLabel, w.Name)
		cm.Data = map[string]string{"certificate": fmt.Sprintf("%s, signed with %d bytes", w.Spec.Host, len(key.Data["key"]))}
		return controllerutil.SetControllerReference(w, cm, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("storing the certificate: %w", err)
	}
	return r.phase(ctx, w, "Issued")
}

func (r *signer) phase(ctx context.Context, w *Widget, phase string) error {
	if w.Status.Phase == phase && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Phase, w.Status.ObservedGeneration = phase, w.Generation
	return r.Status().Update(ctx, w)
}

type finalFailure struct{ signer }

func (r *finalFailure) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.Phase == "Failed" && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	key := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, key)
	if apierrs.IsNotFound(err) {
		return reconcile.Result{}, r.phase(ctx, w, "Failed")
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.sign(ctx, w, key)
}

type retriedFailure struct{ signer }

func (r *retriedFailure) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	key := &corev1.Secret{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, key); err != nil {
		return reconcile.Result{}, fmt.Errorf("the key of widget %s: %w", w.Name, err)
	}
	return reconcile.Result{}, r.sign(ctx, w, key)
}
