// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// ScheduleReconciler manages the CronJob that takes backups. The API server validates the schedule; the condition shows
// its answer.
func ScheduleReconciler() reconcilers.SubReconciler[*Database] {
	return &reconcilers.ChildReconciler[*Database, *batchv1.CronJob, *batchv1.CronJobList]{
		Name: "Schedule",
		DesiredChild: func(_ context.Context, db *Database) (*batchv1.CronJob, error) {
			if db.Spec.Backup == nil || db.Spec.Backup.Schedule == "" {
				return nil, nil // none; an existing one is deleted
			}
			return manifest.ScheduledBackup(db), nil
		},
		// The manifest does not set spec.suspend, so that other clients can suspend the backups.
		ChildObjectManager:                  apply[*batchv1.CronJob](),
		ReflectChildStatusOnParentWithError: reflectOn[*batchv1.CronJob](databasev1.ConditionBackupReady, nil),
	}
}
