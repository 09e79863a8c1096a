// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the admission webhooks of the kind Database. They are ordinary reconcilers below an
// AdmissionWebhookAdapter: their changes to the Database become a patch, and they reject a request by setting the
// response.
//
// They do only what the schema cannot do. The controller does not rely on them, because webhooks can be disabled.
package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/reconcilers"
)

// +kubebuilder:webhookconfiguration:mutating=true,name=database-defaulting
// +kubebuilder:webhookconfiguration:mutating=false,name=database-validation
// +kubebuilder:webhook:path=/mutate-database-trueup-dev-v1-database,mutating=true,failurePolicy=fail,sideEffects=None,groups=database.trueup.dev,resources=databases,verbs=create;update,versions=v1,name=mdatabase-v1.database.trueup.dev,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-database-trueup-dev-v1-database,mutating=false,failurePolicy=fail,sideEffects=None,groups=database.trueup.dev,resources=databases,verbs=update;delete,versions=v1,name=vdatabase-v1.database.trueup.dev,admissionReviewVersions=v1

// The paths in the markers above.
const (
	defaultingPath = "/mutate-database-trueup-dev-v1-database"
	validatingPath = "/validate-database-trueup-dev-v1-database"
)

// SetupDatabaseWebhookWithManager serves both webhooks from the manager's webhook server.
func SetupDatabaseWebhookWithManager(ctx context.Context, mgr ctrl.Manager) error {
	c := reconcilers.NewConfig(mgr, &databasev1.Database{}, 0) // nothing is tracked, so the sync period is not used
	defaulting, defaultingErr := NewDefaultingWebhook(c).BuildWithContext(ctx)
	validating, validatingErr := NewValidatingWebhook(c).BuildWithContext(ctx)
	if err := errors.Join(defaultingErr, validatingErr); err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(defaultingPath, defaulting)
	mgr.GetWebhookServer().Register(validatingPath, validating)
	return nil
}

// NewDefaultingWebhook returns the webhook that sets defaults which depend on other fields, which the schema cannot
// express.
func NewDefaultingWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*databasev1.Database] {
	return &reconcilers.AdmissionWebhookAdapter[*databasev1.Database]{
		Name: "DatabaseDefaulting",
		Reconciler: &reconcilers.SyncReconciler[*databasev1.Database]{
			Name: "Defaults",
			Sync: func(_ context.Context, db *databasev1.Database) error {
				if db.Spec.Backup != nil && db.Spec.Backup.Target == "" {
					db.Spec.Backup.Target = db.DefaultTarget()
				}
				// PostgreSQL accepts any case, the schema only lower case. A duplicate name is kept, so that the schema
				// rejects it.
				for _, name := range slices.Sorted(maps.Keys(db.Spec.Parameters)) {
					lower := strings.ToLower(name)
					if _, twice := db.Spec.Parameters[lower]; !twice {
						db.Spec.Parameters[lower] = db.Spec.Parameters[name]
						delete(db.Spec.Parameters, name)
					}
				}
				return nil
			},
		},
		Config: c,
	}
}

// NewValidatingWebhook returns the webhook that rejects changes which would lose data, and warns about changes without
// an effect.
func NewValidatingWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*databasev1.Database] {
	return &reconcilers.AdmissionWebhookAdapter[*databasev1.Database]{
		Name: "DatabaseValidation",
		Reconciler: reconcilers.Sequence[*databasev1.Database]{
			BackgroundDeletion(),
			StorageStays(),
		},
		Config: c,
	}
}

// BackgroundDeletion rejects the foreground deletion of a Database: the garbage collector would delete the servers
// first, and the final backup would fail.
func BackgroundDeletion() reconcilers.SubReconciler[*databasev1.Database] {
	return &reconcilers.SyncReconciler[*databasev1.Database]{
		Name: "BackgroundDeletion",
		Sync: func(ctx context.Context, db *databasev1.Database) error {
			req := reconcilers.RetrieveAdmissionRequest(ctx)
			if req.Operation != admissionv1.Delete || db.Spec.Backup == nil ||
				db.Annotations[databasev1.AnnotationSkipFinalBackup] == "true" {
				return nil
			}
			var options metav1.DeleteOptions
			if len(req.Options.Raw) > 0 {
				if err := json.Unmarshal(req.Options.Raw, &options); err != nil {
					return err
				}
			}
			if options.PropagationPolicy == nil || *options.PropagationPolicy != metav1.DeletePropagationForeground {
				return nil
			}
			// A returned error also rejects the request, but with code 500, as if the webhook had failed.
			resource := databasev1.GroupVersion.WithResource("databases").GroupResource()
			denied := apierrs.NewForbidden(resource, db.Name, fmt.Errorf(
				"foreground deletion stops the servers before the final backup: use --cascade=background, "+
					"or set the annotation %s to true",
				databasev1.AnnotationSkipFinalBackup))
			response := reconcilers.RetrieveAdmissionResponse(ctx)
			response.Allowed, response.Result = false, new(denied.Status())
			return reconcilers.ErrHaltSubReconcilers
		},
	}
}

// StorageStays warns about a change of the volume size. It does not reject the change: the controller reports in a
// condition that it has no effect.
func StorageStays() reconcilers.SubReconciler[*databasev1.Database] {
	return &reconcilers.SyncReconciler[*databasev1.Database]{
		Name: "StorageStays",
		Sync: func(ctx context.Context, db *databasev1.Database) error {
			req := reconcilers.RetrieveAdmissionRequest(ctx)
			if req.Operation != admissionv1.Update {
				return nil
			}
			var old databasev1.Database
			if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
				return err
			}
			if old.Spec.Storage.Cmp(db.Spec.Storage) != 0 {
				response := reconcilers.RetrieveAdmissionResponse(ctx)
				response.Warnings = append(response.Warnings, fmt.Sprintf(
					"spec.storage: the size of existing volumes cannot change from %s to %s",
					&old.Spec.Storage, &db.Spec.Storage))
			}
			return nil
		},
	}
}
