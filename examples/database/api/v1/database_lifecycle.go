// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"

	"trueup.dev/apis"
)

// The conditions of a Database. Ready is True if all others are.
const (
	ConditionReady = apis.ConditionReady
	// CertificateReady: the TLS Secret exists and has a certificate, or spec.tls is not set.
	ConditionCertificateReady = "CertificateReady"
	// ConfigurationReady: the ConfigMap with postgresql.conf is current.
	ConditionConfigurationReady = "ConfigurationReady"
	// CredentialsReady: the Secret with the password exists.
	ConditionCredentialsReady = "CredentialsReady"
	// ServiceReady: both Services exist.
	ConditionServiceReady = "ServiceReady"
	// StatefulSetReady: every server runs the current version, configuration and certificate.
	ConditionStatefulSetReady = "StatefulSetReady"
	// DisruptionBudgetReady: the PodDisruptionBudget is current, or not needed.
	ConditionDisruptionBudgetReady = "DisruptionBudgetReady"
	// BackupReady: the CronJob is current, or not needed. While the Database is being deleted: the final backup is
	// taken.
	ConditionBackupReady = "BackupReady"
	// ConditionBackupAccountReady: the account of the scheduled backups exists, or is not needed.
	ConditionBackupAccountReady = "BackupAccountReady"
)

// Labels, annotations and the finalizer.
const (
	// LabelDatabase is on every child and pod; its value is the name of the Database.
	LabelDatabase = "database.trueup.dev/name"
	// AnnotationConfigHash is on the pod template. It changes with the configuration and the certificate, so that the
	// servers restart.
	AnnotationConfigHash = "database.trueup.dev/config-hash"
	// AnnotationSkipFinalBackup on a Database, with the value "true", allows it to be deleted without a final backup.
	AnnotationSkipFinalBackup = "database.trueup.dev/skip-final-backup"
	// Finalizer keeps a Database that is being deleted until its final backup is taken.
	Finalizer = "database.trueup.dev/final-backup"
	// AccountFinalizer keeps a Database that is being deleted until its account at the backup system is deleted.
	AccountFinalizer = "database.trueup.dev/backup-account"
	// FormerFinalizer is the finalizer of the first release. It is replaced by Finalizer.
	FormerFinalizer = "database.trueup.dev/backup"
)

var conditions = apis.NewLivingConditionSet(
	ConditionCertificateReady, ConditionConfigurationReady, ConditionCredentialsReady, ConditionServiceReady,
	ConditionStatefulSetReady, ConditionDisruptionBudgetReady, ConditionBackupReady, ConditionBackupAccountReady,
)

// InitializeConditions sets missing conditions to Unknown. The ResourceReconciler calls it before every reconcile.
func (s *DatabaseStatus) InitializeConditions(ctx context.Context) {
	s.ConditionManager(ctx).InitializeConditions()
}

// ConditionManager sets conditions and updates Ready.
func (s *DatabaseStatus) ConditionManager(ctx context.Context) apis.ConditionManager {
	return conditions.ManageWithContext(ctx, s)
}

// DefaultTarget returns the target of backups that have none. The webhook stores it; without the webhook the controller
// uses it.
func (d *Database) DefaultTarget() string {
	return "backups/" + d.Namespace + "/" + d.Name
}
