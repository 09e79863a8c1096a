// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Databases. Read [NewDatabaseReconciler] first: it lists the steps of a reconcile in
// order. Each step has its own file:
//
//	final_backup.go   an external system, called before a Database is deleted
//	certificate.go    a Secret that is not owned: read, tracked, and waited for
//	configuration.go  a child whose content restarts the servers
//	credentials.go    a child whose content is generated once and never changes
//	service.go        two children of one kind
//	statefulset.go    a child whose status determines the status of its parent, with immutable fields
//	disruption.go     a child that is not always needed
//	schedule.go       another optional child
//	account.go        an external resource that is not always needed
package controller

import (
	"context"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/reconcilers"
)

// Database is the kind that the steps reconcile.
type Database = databasev1.Database

// NewDatabaseReconciler returns the reconciler of the kind Database. It checks every poll whether a running final
// backup is complete, and calls newPassword for the password of a new Database.
func NewDatabaseReconciler(
	c reconcilers.Config, backups backup.System, poll time.Duration, newPassword func() string,
) *reconcilers.ResourceReconciler[*Database] {
	return &reconcilers.ResourceReconciler[*Database]{
		Name: "Database",
		Reconciler: &reconcilers.WithFinalizer[*Database]{
			Finalizer: databasev1.Finalizer,
			Reconciler: reconcilers.Sequence[*Database]{
				// First, because steps that manage children delete them when the Database is being deleted: while this
				// step fails or halts, the servers stay.
				FinalBackupReconciler(backups, poll),
				CertificateReconciler(),
				ConfigurationReconciler(),
				CredentialsReconciler(newPassword),
				PodsServiceReconciler(),
				ServiceReconciler(),
				StatefulSetReconciler(),
				// If one fails, the others still run.
				reconcilers.Always[*Database]{DisruptionBudgetReconciler(), ScheduleReconciler(), AccountReconciler(backups)},
				FormerFinalizerReconciler(),
			},
		},
		SyncStatusDuringFinalization: true, // for the condition of the final backup
		Config:                       c,
	}
}

// object is a child: a pointer that can be compared with nil.
type object interface {
	comparable
	client.Object
}

// apply returns the manager of a child that other clients may extend: the controller owns only the fields that the
// manifest sets, and takes them back from clients that change them. The other children are updated, because their
// content depends on the existing child or must be complete.
func apply[C client.Object]() reconcilers.ObjectManager[C] {
	return &reconcilers.ApplyingObjectManager[C]{Conflicts: reconcilers.ForceOnConflict}
}

// reflectOn returns a function that sets a condition from the result of reconciling a child. While the child does not
// exist, it halts the following steps. If the child exists, it calls then, which is optional.
func reflectOn[C object](
	condition string, then func(ctx context.Context, db *Database, child C) error,
) func(context.Context, *Database, C, error) error {
	return func(ctx context.Context, db *Database, child C, err error) error {
		conditions := db.Status.ConditionManager(ctx)
		var none C
		switch {
		case err != nil: // the name is in use, or the API server rejects the object
			conditions.MarkFalse(condition, string(apierrs.ReasonForError(err)), "%s", err)
			return reconcilers.ErrHaltSubReconcilers
		case child == none:
			conditions.MarkTrue(condition, "NotNeeded", "")
			return nil
		case child.GetDeletionTimestamp() != nil:
			conditions.MarkUnknown(condition, "Replacing", "waiting until the previous %q is deleted", child.GetName())
			return reconcilers.ErrHaltSubReconcilers
		}
		conditions.MarkTrue(condition, "Current", "")
		if then == nil {
			return nil
		}
		return then(ctx, db, child)
	}
}
