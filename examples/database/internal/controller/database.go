// SPDX-License-Identifier: Apache-2.0

// Package controller keeps what belongs to a Database in line with it. Read [NewDatabaseReconciler] first: it lists the
// steps of a pass in their order. Each step is in a file of its own:
//
//	final_backup.go   a system outside of the cluster, called before a deleted Database goes away
//	certificate.go    a Secret that others own: read, followed, and waited for
//	configuration.go  a child whose content restarts the servers
//	credentials.go    a child whose content is made once and never changes
//	service.go        two children of one kind
//	statefulset.go    a child whose own status decides about ours, and that has fields which cannot be changed
//	disruption.go     a child that is not always needed
//	schedule.go       another one
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

// +kubebuilder:rbac:groups=database.trueup.dev,resources=databases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=database.trueup.dev,resources=databases/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=database.trueup.dev,resources=databases/finalizers,verbs=update
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// Database is what the steps reconcile.
type Database = databasev1.Database

// NewDatabaseReconciler returns the reconciler of the kind Database. It asks the backup system every poll whether a
// running final backup is complete, and newPassword for what could be the password of a new Database.
func NewDatabaseReconciler(
	c reconcilers.Config, backups backup.System, poll time.Duration, newPassword func() string,
) *reconcilers.ResourceReconciler[*Database] {
	return &reconcilers.ResourceReconciler[*Database]{
		Name: "Database",
		Reconciler: &reconcilers.WithFinalizer[*Database]{
			Finalizer: databasev1.Finalizer,
			Reconciler: reconcilers.Sequence[*Database]{
				// First, because steps that manage children delete them when the Database is being deleted: as long as this
				// step fails or halts, the servers stay.
				FinalBackupReconciler(backups, poll),
				CertificateReconciler(),
				ConfigurationReconciler(),
				CredentialsReconciler(newPassword),
				PodsServiceReconciler(),
				ServiceReconciler(),
				StatefulSetReconciler(),
				// One that is refused does not keep the other from being created.
				reconcilers.Always[*Database]{DisruptionBudgetReconciler(), ScheduleReconciler()},
			},
		},
		SyncStatusDuringFinalization: true, // for the condition of the final backup
		Config:                       c,
	}
}

// object is what a child is: a pointer, which can be compared with nil.
type object interface {
	comparable
	client.Object
}

// reflectOn returns a function that sets the condition of a part from what became of its child. As long as the child
// does not exist, the steps that follow are halted. When it exists, then is called; it is optional.
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
			conditions.MarkUnknown(condition, "Replacing", "waiting until the former %q is deleted", child.GetName())
			return reconcilers.ErrHaltSubReconcilers
		}
		conditions.MarkTrue(condition, "Current", "")
		if then == nil {
			return nil
		}
		return then(ctx, db, child)
	}
}
