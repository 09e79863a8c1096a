// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"trueup.dev/apis"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/external"
	"trueup.dev/reconcilers"
)

// AccountReconciler manages the account of the backup system with which the scheduled backups are stored. The UID of
// the Database identifies it, so nothing is recorded. It is a step, because a step that is no longer wanted deletes its
// external resource; a Database without backups has no account.
func AccountReconciler(backups backup.System) reconcilers.SubReconciler[*Database] {
	set := func(ctx context.Context, db *Database, id, _ string) (string, error) {
		target := manifest.BackupTarget(db)
		return target, backups.SetAccount(ctx, id, target)
	}
	account := &external.Resource[*Database, string]{
		Name:      "BackupAccount",
		Finalizer: databasev1.AccountFinalizer,
		Observe: func(ctx context.Context, _ *Database, id string) (string, bool, error) {
			return backups.Account(ctx, id)
		},
		Create: func(ctx context.Context, db *Database, id string) (string, string, error) {
			target, err := set(ctx, db, id, "")
			return id, target, err
		},
		InSync: func(_ context.Context, db *Database, target string) bool { return target == manifest.BackupTarget(db) },
		Update: set,
		Delete: func(ctx context.Context, _ *Database, id string) error { return backups.DeleteAccount(ctx, id) },
	}
	return &reconcilers.Steps[*Database]{
		Condition:  databasev1.ConditionBackupAccountReady,
		Conditions: func(ctx context.Context, db *Database) apis.ConditionManager { return db.Status.ConditionManager(ctx) },
		Steps: []reconcilers.Step[*Database]{{
			Name:       "Account",
			Reconciler: account,
			Wanted:     func(_ context.Context, db *Database) bool { return db.Spec.Backup != nil },
		}},
	}
}
