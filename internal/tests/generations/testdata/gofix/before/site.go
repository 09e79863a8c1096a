// SPDX-License-Identifier: Apache-2.0

// Package site spells every deprecated name the way it was once documented.
package site

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/apis"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
	"trueup.dev/tracker"
)

func Reconciler(c reconcilers.Config) *reconcilers.ParentReconciler[*corev1.ConfigMap] {
	return &reconcilers.ParentReconciler[*corev1.ConfigMap]{
		Name: "Site",
		Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{
			&reconcilers.CastParent[*corev1.ConfigMap, client.Object]{
				Reconciler: &reconcilers.SyncReconciler[client.Object]{Sync: finalizers},
			},
		},
		Config: c,
	}
}

var secrets = &reconcilers.ResourceManager[*corev1.Secret]{
	MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
}

func finalizers(ctx context.Context, parent client.Object) error {
	if parent.GetDeletionTimestamp() != nil {
		return reconcilers.ClearParentFinalizer(ctx, parent, "site.example.com/record")
	}
	if err := reconcilers.AddParentFinalizer(ctx, parent, "site.example.com/record"); err != nil {
		return err
	}
	return reconcilers.HaltSubReconcilers
}

func configs(ctx context.Context) (context.Context, error) {
	c, err := reconcilers.RetrieveParentConfig(ctx)
	if err != nil {
		return nil, err
	}
	if reconcilers.RetrieveParentConfigOrDie(ctx) != c {
		return nil, reconcilers.ErrHaltSubReconcilers
	}
	ctx = reconcilers.StashParentConfig(ctx, c)
	loaded := reconcilers.RetrieveParentType(ctx)
	seen := reconcilers.RetrieveCastParentType(ctx)
	ctx = reconcilers.StashParentType(ctx, loaded)
	return reconcilers.StashCastParentType(ctx, seen), nil
}

func startedAt(ctx context.Context) time.Time {
	return rtime.RetrieveTime(ctx)
}

func ready(status *apis.Status) bool {
	return apis.NewLivingConditionSet().Manage(status).IsHappy()
}

func setup(ctx context.Context) error {
	return secrets.Setup(ctx)
}

func webhook(adapter *reconcilers.AdmissionWebhookAdapter[*corev1.ConfigMap]) *admission.Webhook {
	return adapter.Build()
}

func key(name types.NamespacedName) tracker.Key {
	return tracker.NewKey(corev1.SchemeGroupVersion.WithKind("ConfigMap"), name)
}
