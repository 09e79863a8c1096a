// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// Entries without a bug: common code, and code that a too simple check would report.
var correct = slices.Concat(correctChildren, correctSets, correctStatus, correctOutside)

var correctChildren = []Entry{
	{
		Name:  "correct-periodic",
		About: "Requeues every ten minutes, and writes only if something differs.",
		Source: "controller-runtime, reconcile.Result.RequeueAfter. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/reconcile#Result",
		Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler { return &periodicReconciler{env.Client} }),
	},
	{
		Name:  "correct-server-side-apply",
		About: "Applies all objects in each reconcile, with force. The API server detects that nothing has changed.",
		Source: "Kubernetes documentation, Server-Side Apply, Using Server-Side Apply in a controller. " +
			"https://kubernetes.io/docs/reference/using-api/server-side-apply/#using-server-side-apply-in-a-controller",
		Correct: with(appliedWorld, func(env converge.Env) reconcile.Reconciler { return &applyReconciler{env.Client} }),
	},
	{
		Name:  "correct-locked-patches",
		About: "Patches objects, and the finalizer, with optimistic locks.",
		Source: "controller-runtime, client.MergeFromWithOptimisticLock. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/client#MergeFromWithOptimisticLock",
		Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler { return &lockedReconciler{env.Client} }),
	},
	{
		Name:  "correct-adoption",
		About: "Adopts a config map that has no controller, and creates it if none exists.",
		Source: "Kubernetes design proposal, ControllerRef, Adoption. " +
			"https://github.com/kubernetes/design-proposals-archive/blob/main/api-machinery/controller-ref.md",
		Correct: with(adoptionWorld, func(env converge.Env) reconcile.Reconciler { return &adoptingReconciler{env.Client} }),
	},
	{
		Name: "correct-name-recorded-first",
		About: "Writes the name of the next object to the status before it creates the object. The name contains a part " +
			"of the UID, so it differs each time the widget is created.",
		Source: "controller-runtime, FAQ: use deterministic names, so that the API server refuses a second object. " +
			"https://github.com/kubernetes-sigs/controller-runtime/blob/main/FAQ.md",
		Correct: with(recreatedWorld, func(env converge.Env) reconcile.Reconciler { return &namingReconciler{env} }),
	},
	{
		Name:  "correct-random-secret",
		About: "Creates a secret with a random password once, and never changes it.",
		Source: "Kubernetes documentation, Secrets, Immutable Secrets. " +
			"https://kubernetes.io/docs/concepts/configuration/secret/#secret-immutable",
		Correct: with(passwordWorld, func(env converge.Env) reconcile.Reconciler { return &passwordReconciler{env.Client} }),
	},
	{
		Name:  "correct-paused",
		About: "Does nothing while the object has an annotation, and catches up afterwards.",
		Source: "Cluster API, PausedAnnotation: objects that have it are not reconciled. " +
			"https://pkg.go.dev/sigs.k8s.io/cluster-api/api/v1beta1#PausedAnnotation",
		Correct: withSetup(pausedWorld, setupPaused(everything)),
	},
	{
		Name:  "correct-replacement-of-immutable",
		About: "Deletes an immutable config map with a precondition, waits until it no longer exists, and creates it again.",
		Source: "Kubernetes documentation, ConfigMaps, Immutable ConfigMaps: they can only be deleted and created again. " +
			"https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable",
		Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler { return &replacingReconciler{env.Client} }),
	},
	{
		Name: "correct-revisions",
		About: "Creates a new immutable config map for each content, switches the deployment to it, and then deletes the " +
			"old ones.",
		Source: "Kustomize, configMapGenerator: names with a hash of the content. " +
			"https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/configmapgenerator/",
		Correct: with(revisionWorld, func(env converge.Env) reconcile.Reconciler { return &revisionReconciler{env.Client} }),
	},
}

func everythingOwned() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &corev1.Service{}, &corev1.Secret{}, &appsv1.Deployment{}}
}

func appliedWorld() converge.Scenario {
	return converge.Scenario{
		For:  &Widget{},
		Owns: everythingOwned(),
		Steps: converge.Lifecycle(
			widget("a", WidgetSpec{Image: "v1", Replicas: 2, Data: map[string]string{"mode": "fast"}}), withImage("v2"),
			withData("slow"),
		),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}

// adoptionWorld has an existing config map.
func adoptionWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}})
	return converge.Scenario{
		For:  &Widget{},
		Owns: everythingOwned(),
		Given: []client.Object{
			&corev1.ConfigMap{ObjectMeta: childMeta(w, "a"), Data: map[string]string{"mode": "old", "more": "kept"}},
		},
		Steps: converge.Lifecycle(w, withData("slow")),
	}
}

// recreatedWorld has a widget that is deleted and created again at once.
func recreatedWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"mode": "fast"}})
	return converge.Scenario{
		For:  &Widget{},
		Owns: everythingOwned(),
		Steps: converge.Steps(
			converge.Apply(w), converge.Settle(), converge.Delete(w), converge.Apply(w), converge.Settle(), converge.Delete(w),
			converge.Settle(),
		),
	}
}

func passwordWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  everythingOwned(),
		Given: []client.Object{widget("a", WidgetSpec{}), widget("b", WidgetSpec{})},
		Masks: []converge.Mask{{Object: &corev1.Secret{}, Field: "data"}},
	}
}

func revisionWorld() converge.Scenario {
	return converge.Scenario{
		For:  &Widget{},
		Owns: everythingOwned(),
		Steps: converge.Lifecycle(
			widget("a", WidgetSpec{
				Image: "v1", Replicas: 1, Data: map[string]string{"mode": "fast"},
			}), withData("slow"), withData("fast"),
		),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}
