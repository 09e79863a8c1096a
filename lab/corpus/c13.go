// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
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
