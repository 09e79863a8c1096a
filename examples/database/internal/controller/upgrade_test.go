// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"crypto/rand"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/examples/database/internal/controller"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// firstRelease is the controller of the first release: it had another finalizer, and no PodDisruptionBudget.
func firstRelease(c reconcilers.Config, backups backup.System) *reconcilers.ResourceReconciler[*databasev1.Database] {
	return &reconcilers.ResourceReconciler[*databasev1.Database]{
		Name: "Database",
		Reconciler: &reconcilers.WithFinalizer[*databasev1.Database]{
			Finalizer: databasev1.FormerFinalizer,
			Reconciler: reconcilers.Sequence[*databasev1.Database]{
				controller.FinalBackupReconciler(backups, time.Second),
				controller.CertificateReconciler(),
				controller.ConfigurationReconciler(),
				controller.CredentialsReconciler(rand.Text),
				controller.PodsServiceReconciler(),
				controller.ServiceReconciler(),
				controller.StatefulSetReconciler(),
				controller.ScheduleReconciler(),
			},
		},
		SyncStatusDuringFinalization: true,
		Config:                       c,
	}
}

// The present version takes over from the first release at any point, also while a Database is being deleted: each has
// its final backup, and keeps its password.
func TestUpgrade_fromFirstRelease(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("takes long: not with -short, nor with the race detector, which makes schedules ten times slower")
	}
	t.Parallel()
	current := withFinalBackups(t)
	current.Steps = converge.Lifecycle(inDefault(rtesting.With(newDatabase(), withBackup)))
	current.NoRollback = "the first release does not remove the finalizer of the present version"
	old := current
	old.Setup = func(mgr ctrl.Manager) error {
		c := reconcilers.NewConfig(mgr, &databasev1.Database{}, 10*time.Hour)
		return firstRelease(c, cloudBackups{converge.EnvOf(mgr).Cloud}).SetupWithManager(t.Context(), mgr)
	}
	converge.Upgrade(t, old, current)
}
