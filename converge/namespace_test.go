// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// namespaceScenario deletes a whole namespace. The reconciler creates a ConfigMap before it removes its finalizer,
// which the API server rejects in a namespace that is being deleted.
func namespaceScenario(stubborn bool, forbidden *int) Scenario {
	const finalizer = "example.com/note"
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if secret.DeletionTimestamp.IsZero() {
			if controllerutil.AddFinalizer(secret, finalizer) {
				return reconcile.Result{}, e.Client.Update(ctx, secret)
			}
			err := e.Client.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.ConfigMap{})
			if apierrs.IsNotFound(err) {
				err = client.IgnoreAlreadyExists(e.Client.Create(ctx, configMapOf(secret, true)))
			}
			if apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				*forbidden++
			}
			return reconcile.Result{}, err
		}
		note := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: "note"}}
		err := client.IgnoreAlreadyExists(e.Client.Create(ctx, note))
		if apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !stubborn {
			err = nil
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		controllerutil.RemoveFinalizer(secret, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(e.Client.Update(ctx, secret))
	})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	secret := newSecret("a")
	secret.Namespace = namespace.Name
	s.Steps = Steps(Apply(namespace), Apply(secret), Settle(), Delete(namespace), Settle())
	return s
}

// TestDeletedNamespaces finds a reconciler that does not remove its finalizer. The rejection also affects the other
// one: users may delete the namespace at any time.
func TestDeletedNamespaces(t *testing.T) {
	forbidden := 0
	converges(t, namespaceScenario(false, &forbidden), DefaultOptions())
	if forbidden == 0 {
		t.Error("no creation is rejected because the namespace is being deleted")
	}
	f := foundIn(t, namespaceScenario(true, &forbidden))
	if f == nil || f.Violation.Oracle != OracleQuiescence ||
		!strings.Contains(f.Violation.Message, "because it is being terminated") {
		t.Errorf("got %v, want that the deletion does not end", f)
	}
}
