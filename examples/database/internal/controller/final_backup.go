// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/graph"
	"trueup.dev/reconcilers"
)

// FinalBackupReconciler takes the final backup of a Database that is being deleted. A failure is shown in the condition
// and retried with back-off; until the backup is complete, the servers and the Database stay.
//
// The pods do not stay if the Database is deleted with propagationPolicy=Foreground, because the garbage collector then
// deletes children first. The webhook rejects such a deletion.
func FinalBackupReconciler(backups backup.System, poll time.Duration) reconcilers.SubReconciler[*Database] {
	return &reconcilers.SyncReconciler[*Database]{
		Name: "FinalBackup",
		Sync: func(context.Context, *Database) error { return nil },
		FinalizeWithResult: func(ctx context.Context, db *Database) (reconcilers.Result, error) {
			if wanted, err := wantsFinalBackup(ctx, db); err != nil || !wanted {
				return reconcilers.Result{}, err
			}
			complete, err := backups.Take(ctx, backup.Request{
				ID: string(db.UID), Source: manifest.Endpoint(db), Target: manifest.BackupTarget(db),
			})
			conditions := db.Status.ConditionManager(ctx)
			switch {
			case err != nil:
				conditions.MarkFalse(databasev1.ConditionBackupReady, "FinalBackupFailed", "%s", err)
				return reconcilers.Result{}, err
			case !complete: // the backup system sends no events: poll
				conditions.MarkUnknown(databasev1.ConditionBackupReady, "FinalBackupRunning", "")
				return reconcilers.Result{RequeueAfter: poll}, reconcilers.ErrHaltSubReconcilers
			}
			return reconcilers.Result{}, nil
		},
		Describe: func(n *graph.Node) { n.Needs(&appsv1.StatefulSet{}, "", "get") },
	}
}

// wantsFinalBackup reports whether there are servers to back up. There are none if the Database was deleted before they
// were created, or after an earlier reconcile took the backup and deleted them.
func wantsFinalBackup(ctx context.Context, db *Database) (bool, error) {
	if db.Spec.Backup == nil || db.Annotations[databasev1.AnnotationSkipFinalBackup] == "true" {
		return false, nil
	}
	// The cache may not have the StatefulSet yet, and skipping a backup is irreversible: read from the API server.
	err := reconcilers.RetrieveConfigOrDie(ctx).APIReader.Get(ctx, client.ObjectKeyFromObject(db), &appsv1.StatefulSet{})
	if apierrs.IsNotFound(err) {
		logr.FromContextOrDiscard(ctx).Info("no final backup, no servers exist")
		return false, nil
	}
	return err == nil, err
}

// FormerFinalizerReconciler removes the finalizer of the first release. It is the last step: a Database that was being
// deleted at the time of the upgrade has only that one, because no finalizer can be added then, and must keep it until
// its final backup is complete.
func FormerFinalizerReconciler() reconcilers.SubReconciler[*Database] {
	remove := func(ctx context.Context, db *Database) error {
		return reconcilers.ClearFinalizer(ctx, db, databasev1.FormerFinalizer)
	}
	uses := func(n *graph.Node) { n.Finalizer(databasev1.FormerFinalizer) }
	return &reconcilers.SyncReconciler[*Database]{Name: "FormerFinalizer", Sync: remove, Finalize: remove, Describe: uses}
}
