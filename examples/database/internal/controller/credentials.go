// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;patch;delete

// CredentialsReconciler manages the Secret with the password, which is made once and never changes.
//
// A new password is offered in every pass, because only the object manager knows whether there is a Secret. If there
// is one, HarmonizeImmutableFields puts its data in the place of the offer. Nothing else remembers that a password
// was made: not the status, which can be lost, and not the memory of the process. A cache that has not seen the
// Secret yet does no harm, either: the name is always the same, so that the API server refuses a second one.
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
		// The servers may have been initialized with the one that is lost. Another one is not made behind their back.
		db.Status.ConditionManager(ctx).MarkFalse(databasev1.ConditionCredentialsReady, "PasswordMissing",
			"Secret %q has no key %q; to get another password, delete it", child.Name, manifest.PasswordKey)
		return reconcilers.ErrHaltSubReconcilers
	}
	db.Status.SecretName = child.Name
	return nil
}
