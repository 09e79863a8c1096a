// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// CredentialsReconciler manages the Secret with the password, which is generated once and never changes.
//
// Each reconcile offers a new password, because only the object manager knows whether the Secret exists. If it does,
// HarmonizeImmutableFields replaces the offered data with its data. Nothing else records that a password was generated:
// the status and the memory of the process can be lost. A stale cache does no harm: the name is always the same, so the
// API server rejects a second Secret.
func CredentialsReconciler(newPassword func() string) reconcilers.SubReconciler[*Database] {
	return &reconcilers.ChildReconciler[*Database, *corev1.Secret, *corev1.SecretList]{
		Name: "Credentials",
		DesiredChild: func(_ context.Context, db *Database) (*corev1.Secret, error) {
			return manifest.Credentials(db, newPassword()), nil
		},
		HarmonizeImmutableFields: func(current, desired *corev1.Secret) {
			desired.Data, desired.Type = current.Data, current.Type
		},
		MergeBeforeUpdate: func(current, desired *corev1.Secret) {
			current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
			current.Data, current.Immutable = desired.Data, desired.Immutable
		},
		ReflectChildStatusOnParentWithError: reflectOn(databasev1.ConditionCredentialsReady, reflectCredentials),
	}
}

func reflectCredentials(ctx context.Context, db *Database, child *corev1.Secret) error {
	if len(child.Data[manifest.PasswordKey]) == 0 {
		// The servers may have been initialized with the lost password, so a new one is not generated silently.
		db.Status.ConditionManager(ctx).MarkFalse(databasev1.ConditionCredentialsReady, "PasswordMissing",
			"Secret %q has no key %q; delete it to generate a new password", child.Name, manifest.PasswordKey)
		return reconcilers.ErrHaltSubReconcilers
	}
	db.Status.SecretName = child.Name
	return nil
}
