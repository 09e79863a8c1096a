// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// certificateStash passes the hash of the certificate to the StatefulSet.
var certificateStash = reconcilers.NewStasher[string]("certificate")

// CertificateReconciler reads the TLS Secret. While it does not exist or is incomplete, the reconcile halts here, and
// running servers stay as they are. The Secret is always tracked: when it is created or changes, the Database is
// reconciled.
func CertificateReconciler() reconcilers.SubReconciler[*Database] {
	return &reconcilers.SyncReconciler[*Database]{
		Name: "Certificate",
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Sync: func(ctx context.Context, db *Database) error {
			conditions := db.Status.ConditionManager(ctx)
			if db.Spec.TLS == nil {
				conditions.MarkTrue(databasev1.ConditionCertificateReady, "NotNeeded", "")
				return nil
			}
			var secret corev1.Secret
			key := types.NamespacedName{Namespace: db.Namespace, Name: db.Spec.TLS.SecretName}
			err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &secret)
			switch {
			case apierrs.IsNotFound(err):
				conditions.MarkFalse(databasev1.ConditionCertificateReady, "SecretNotFound", "Secret %q does not exist", key.Name)
				return reconcilers.ErrHaltSubReconcilers
			case err != nil:
				return err
			case len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0:
				conditions.MarkFalse(databasev1.ConditionCertificateReady, "SecretIncomplete",
					"Secret %q must have the keys %s and %s", key.Name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
				return reconcilers.ErrHaltSubReconcilers
			}
			// The certificate is public, the key is not, and each new key comes with a new certificate.
			certificateStash.Store(ctx, manifest.Hash(secret.Data[corev1.TLSCertKey]))
			conditions.MarkTrue(databasev1.ConditionCertificateReady, "Found", "")
			return nil
		},
	}
}
