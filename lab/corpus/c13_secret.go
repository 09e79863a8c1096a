// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

var (
	secretMapping = Entry{
		Name: "c13-secret-taken-for-primary", Class: "C13",
		About: "A change of a secret triggers a request with the name of the secret instead of the objects that refer to it.",
		Source: "Kubebuilder Book, Watching Resources, Secondary Resources Not Owned By the Controller. " +
			"https://book.kubebuilder.io/reference/watching-resources/secondary-resources-not-owned",
		Buggy: withSetup(secretWorld, func(mgr manager.Manager) error {
			return setupChecksums(mgr, &handler.EnqueueRequestForObject{}, predicate.ResourceVersionChangedPredicate{})
		}),
		Correct: withSetup(secretWorld, setupReferrers(predicate.ResourceVersionChangedPredicate{})),
	}
	secretGeneration = Entry{
		Name: "c13-secret-without-generation", Class: "C13",
		About:   "A predicate for changes of the generation is used for a kind without generations, and drops every change.",
		Source:  generationPredicate,
		Buggy:   withSetup(secretWorld, setupReferrers(predicate.GenerationChangedPredicate{})),
		Correct: withSetup(secretWorld, setupReferrers(predicate.ResourceVersionChangedPredicate{})),
	}
)

// checksumReconciler has a config map with the checksum of the secret that a widget refers to.
type checksumReconciler struct{ client.Client }

func (r *checksumReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before, secret := w.DeepCopy(), &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, secret)
	switch {
	case apierrors.IsNotFound(err):
		setReady(w, false, "SecretMissing", "there is no secret "+w.Spec.Ref)
		return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
	case err != nil:
		return reconcile.Result{}, err
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-checksum"}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"checksum": checksum(secret)}
		return controllerutil.SetControllerReference(w, config, r.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("apply checksum: %w", err)
	}
	setReady(w, true, "Applied", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func checksum(secret *corev1.Secret) string {
	sum := sha256.Sum256(secret.Data["password"])
	return hex.EncodeToString(sum[:4])
}

func setupChecksums(mgr manager.Manager, secrets handler.EventHandler, filter predicate.Predicate) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, secrets, builder.WithPredicates(filter)).
		Complete(&checksumReconciler{mgr.GetClient()})
}

// setupReferrers maps a secret to the widgets that refer to it.
func setupReferrers(filter predicate.Predicate) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		const index = "spec.ref"
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &Widget{}, index, func(obj client.Object) []string {
			return []string{obj.(*Widget).Spec.Ref}
		})
		if err != nil {
			return err
		}
		return setupChecksums(mgr, handler.EnqueueRequestsFromMapFunc(func(
			ctx context.Context, secret client.Object,
		) (requests []reconcile.Request) {
			var widgets WidgetList
			if err := mgr.GetClient().List(ctx, &widgets, client.InNamespace(secret.GetNamespace()), client.MatchingFields{
				index: secret.GetName(),
			}); err != nil {
				log.FromContext(ctx).Error(err, "list widgets that refer to a secret")
			}
			for _, w := range widgets.Items {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&w)})
			}
			return requests
		}), filter)
	}
}

func secretWorld() converge.Scenario {
	secret := &corev1.Secret{ObjectMeta: meta("credentials"), Data: map[string][]byte{"password": []byte("one")}}
	a, b := widget("a", WidgetSpec{Ref: "credentials"}), widget("b", WidgetSpec{Ref: "credentials"})
	return converge.Scenario{
		For:   &Widget{},
		Given: []client.Object{secret},
		Steps: converge.Steps(
			converge.Apply(a), converge.Apply(b), converge.Settle(),
			converge.Change(secret, func(s *corev1.Secret) { s.Data["password"] = []byte("two") }), converge.Settle(),
			converge.Delete(a), converge.Delete(b), converge.Settle(),
		),
		Desired: func(s converge.State) error {
			current := secret.DeepCopy()
			if !s.Get(current) {
				return errors.New("the secret is gone")
			}
			for _, w := range []*Widget{a, b} {
				config := &corev1.ConfigMap{ObjectMeta: meta(w.Name + "-checksum")}
				switch exists, found := s.Get(w.DeepCopy()), s.Get(config); {
				case found != exists:
					return fmt.Errorf("config map of %s: found %t, want %t", w.Name, found, exists)
				case found && config.Data["checksum"] != checksum(current):
					return fmt.Errorf("config map of %s has the checksum of an old secret", w.Name)
				}
			}
			return nil
		},
	}
}
