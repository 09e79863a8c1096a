// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"

	"trueup.dev/apis"
)

// The conditions of a Database. Ready sums up the others: it is True when all of them are.
const (
	ConditionReady = apis.ConditionReady
	// CertificateReady: the TLS Secret exists and has a certificate, or none is asked for.
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
	// BackupReady: the CronJob is current, or not asked for. While the Database is being deleted: the final backup is
	// taken.
	ConditionBackupReady = "BackupReady"
)

// Labels, annotations and the finalizer.
const (
	// LabelDatabase is on every child and pod; its value is the name of the Database.
	LabelDatabase = "database.trueup.dev/name"
	// AnnotationConfigHash is on the pod template: when the configuration or the certificate changes, it changes, and the
	// servers restart.
	AnnotationConfigHash = "database.trueup.dev/config-hash"
	// AnnotationSkipFinalBackup on a Database, with the value "true", lets it be deleted without a final backup.
	AnnotationSkipFinalBackup = "database.trueup.dev/skip-final-backup"
	// Finalizer keeps a deleted Database until its final backup is taken.
	Finalizer = "database.trueup.dev/final-backup"
)

var conditions = apis.NewLivingConditionSet(
	ConditionCertificateReady,
	ConditionConfigurationReady,
	ConditionCredentialsReady,
	ConditionServiceReady,
	ConditionStatefulSetReady,
	ConditionDisruptionBudgetReady,
	ConditionBackupReady,
)

// InitializeConditions sets the conditions that are missing to Unknown. The ResourceReconciler calls it before every
// pass.
func (s *DatabaseStatus) InitializeConditions(ctx context.Context) {
	s.ConditionManager(ctx).InitializeConditions()
}

// ConditionManager sets conditions and keeps Ready in line with them.
func (s *DatabaseStatus) ConditionManager(ctx context.Context) apis.ConditionManager {
	return conditions.ManageWithContext(ctx, s)
}

// DefaultTarget is where backups go that have no target. The webhook stores it; without the webhook the controller
// uses it.
func (d *Database) DefaultTarget() string {
	return "backups/" + d.Namespace + "/" + d.Name
}
