// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
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

const (
	generationPredicate = "controller-runtime, predicate.GenerationChangedPredicate, caveats. " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/predicate#GenerationChangedPredicate"
	ownsDocumentation = "controller-runtime, builder.Owns: only the controller reference counts unless told otherwise. " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/builder#TypedBuilder.Owns"
)

// C13: a correct reconciler that is not called when it should be.
var c13 = []Entry{
	{
		Name: "c13-service-not-watched", Class: "C13", Faults: 1,
		About: "Only one of two kinds of children is watched. The deletion of a child of the other kind is not detected.",
		Source: "Kubebuilder Book, Watching Resources, Secondary Resources Owned By the Controller. " +
			"https://book.kubebuilder.io/reference/watching-resources/secondary-owned-resources",
		Buggy:   withSetup(wiredFrontendWorld, setupFrontend(&corev1.ConfigMap{})),
		Correct: withSetup(wiredFrontendWorld, setupFrontend(&corev1.ConfigMap{}, &corev1.Service{})),
	},
	{
		Name: "c13-status-events-filtered", Class: "C13",
		About:  "A predicate for changes of the spec applies to all kinds, so it drops changes of the deployment's status.",
		Source: generationPredicate,
		Buggy: withSetup(wiredRolloutWorld, func(mgr manager.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&appsv1.Deployment{}).
				WithEventFilter(predicate.GenerationChangedPredicate{}).
				Complete(&rolloutReconciler{mgr.GetClient(), fullyRolledOut})
		}),
		Correct: withSetup(wiredRolloutWorld, func(mgr manager.Manager) error {
			// Not for widgets only, either: a status that is based on a stale cache needs the event of the status to be
			// repaired.
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&appsv1.Deployment{}).
				Complete(&rolloutReconciler{mgr.GetClient(), fullyRolledOut})
		}),
	},
	{
		Name: "c13-annotation-filtered", Class: "C13",
		About: "An annotation pauses the reconciler, and a predicate for changes of the spec drops the removal of the " +
			"annotation.",
		Source: generationPredicate,
		Buggy:  withSetup(pausedWorld, setupPaused(predicate.GenerationChangedPredicate{})),
		Correct: withSetup(
			pausedWorld,
			setupPaused(
				predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}),
			),
		),
	},
	{
		Name: "c13-owner-is-no-controller", Class: "C13", Faults: 1,
		About:   "The owner reference is not a controller reference, and only controller references trigger requests.",
		Source:  ownsDocumentation,
		Buggy:   withSetup(sharedWorld, setupShared()),
		Correct: withSetup(sharedWorld, setupShared(builder.MatchEveryOwner)),
	},
	{
		Name: "c13-label-removed", Class: "C13",
		About: "A predicate checks the label of the new object only. The removal of the label is dropped, and the child " +
			"stays.",
		Source: "controller-runtime, predicate.NewPredicateFuncs: updates are filtered by the new object. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/predicate#NewPredicateFuncs",
		Buggy: withSetup(labelledWorld, setupLabelled(builder.WithPredicates(predicate.NewPredicateFuncs(func(
			obj client.Object,
		) bool {
			return obj.GetLabels()[enabledLabel] == "true"
		})))),
		Correct: withSetup(labelledWorld, setupLabelled()),
	},
	secretMapping,
	secretGeneration,
}

func setupFrontend(owned ...client.Object) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		b := ctrl.NewControllerManagedBy(mgr).For(&Widget{})
		for _, kind := range owned {
			b.Owns(kind)
		}
		return b.Complete(&frontendReconciler{mgr.GetClient(), true})
	}
}

func wiredFrontendWorld() converge.Scenario {
	return converge.Scenario{For: &Widget{}, Steps: changeData()}
}

func wiredRolloutWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1", Replicas: 2}), withImage("v2")),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
		Desired: func(s converge.State) error {
			w := widget("a", WidgetSpec{})
			if s.Get(w) && (!isReady(w) || w.Status.Image != w.Spec.Image) {
				return fmt.Errorf(
					"image %s is rolled out, and the status says ready %t with image %q", w.Spec.Image, isReady(w), w.Status.Image,
				)
			}
			return nil
		},
	}
}

const pausedAnnotation = "corpus.trueup.dev/paused"

type pausedReconciler struct{ client.Client }

func (r *pausedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := w.Annotations[pausedAnnotation]; paused {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, applyConfig(ctx, r.Client, w)
}

func setupPaused(filter predicate.Predicate) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).
			For(&Widget{}, builder.WithPredicates(filter)).
			Owns(&corev1.ConfigMap{}).
			Complete(&pausedReconciler{mgr.GetClient()})
	}
}

func pausedWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}})
	w.Annotations = map[string]string{pausedAnnotation: "yes"}
	return converge.Scenario{
		For: &Widget{},
		Steps: converge.Lifecycle(w,
			withData("faster"),
			func(w *Widget) { delete(w.Annotations, pausedAnnotation) },
		),
		Desired: func(s converge.State) error {
			w, config := widget("a", WidgetSpec{}), &corev1.ConfigMap{ObjectMeta: meta("a")}
			exists := s.Get(w)
			_, paused := w.Annotations[pausedAnnotation]
			switch found := s.Get(config); {
			case found && (!exists || paused):
				return errors.New("there is a config map for a widget that is paused or gone")
			case exists && !paused && (!found || config.Data["mode"] != w.Spec.Data["mode"]):
				return errors.New("there is no config map with the data of the widget")
			}
			return nil
		},
	}
}

// sharedReconciler is one of several owners of its config map, and not its controller.
type sharedReconciler struct{ client.Client }

func (r *sharedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "shared"}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = w.Spec.Data
		return controllerutil.SetOwnerReference(w, config, r.Scheme())
	})
	return reconcile.Result{}, err
}

func setupShared(options ...builder.OwnsOption) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).
			For(&Widget{}).
			Owns(&corev1.ConfigMap{}, options...).
			Complete(&sharedReconciler{mgr.GetClient()})
	}
}

func sharedWorld() converge.Scenario {
	return converge.Scenario{For: &Widget{}, Steps: changeData()}
}

const enabledLabel = "corpus.trueup.dev/enabled"

type labelledReconciler struct{ client.Client }

func (r *labelledReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Labels[enabledLabel] == "true" {
		return reconcile.Result{}, applyConfig(ctx, r.Client, w)
	}
	config := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, config); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(config, w) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, remove(ctx, r.Client, config)
}

func setupLabelled(options ...builder.ForOption) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).
			For(&Widget{}, options...).
			Owns(&corev1.ConfigMap{}).
			Complete(&labelledReconciler{mgr.GetClient()})
	}
}

func labelledWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}})
	w.Labels = map[string]string{enabledLabel: "true"}
	return converge.Scenario{
		For:   &Widget{},
		Steps: converge.Lifecycle(w, func(w *Widget) { delete(w.Labels, enabledLabel) }),
		Desired: func(s converge.State) error {
			w, config := widget("a", WidgetSpec{}), &corev1.ConfigMap{ObjectMeta: meta("a")}
			wanted := s.Get(w) && w.Labels[enabledLabel] == "true"
			if found := s.Get(config); found != wanted {
				return fmt.Errorf("config map exists: %t, want %t", found, wanted)
			}
			return nil
		},
	}
}

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
