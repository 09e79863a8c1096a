// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/reconcilers"
)

// FormerFinalizerReconciler removes the finalizer of the first release. It follows the step that adds the present one:
// at each moment one of both keeps the Database until its final backup is complete. A Database that was being deleted
// at the time of the upgrade has only the former one, because no finalizer can be added then.
func FormerFinalizerReconciler() reconcilers.SubReconciler[*Database] {
	remove := func(ctx context.Context, db *Database) error {
		return reconcilers.ClearFinalizer(ctx, db, databasev1.FormerFinalizer)
	}
	return &reconcilers.SyncReconciler[*Database]{Name: "FormerFinalizer", Sync: remove, Finalize: remove}
}
