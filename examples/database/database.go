// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"io/fs"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/examples/database/internal/controller"
	webhookv1 "trueup.dev/examples/database/internal/webhook/v1"
	"trueup.dev/reconcilers"
)

//go:embed config/crd/bases/*.yaml config/rbac/*.yaml config/samples/*.yaml config/webhook/*.yaml
var config embed.FS

// AddToScheme registers the kind Database with a scheme.
var AddToScheme = databasev1.AddToScheme

// CRDs are the CustomResourceDefinitions of the example, as YAML files.
func CRDs() fs.FS { return dir("config/crd/bases") }

// RBAC is the ClusterRole with the permissions of the controller, as a YAML file.
func RBAC() fs.FS { return dir("config/rbac") }

// Webhooks are the webhook configurations that register the handlers of SetupWebhooks, as YAML files. They call a
// Service named webhook-service in the namespace system; without a Service, replace it with a URL and the caBundle of
// its certificate.
func Webhooks() fs.FS { return dir("config/webhook") }

// Samples are sample Databases, as YAML files.
func Samples() fs.FS { return dir("config/samples") }

func dir(path string) fs.FS {
	sub, err := fs.Sub(config, path)
	if err != nil {
		panic(err) // only for a malformed pattern
	}
	return sub
}

// Options are what the controller needs besides a manager.
type Options struct {
	// Backups is the external system that takes the final backups. Required.
	Backups backup.System
	// Poll is the interval at which the controller checks whether a running backup is complete. The default is ten
	// seconds.
	Poll time.Duration
	// SyncPeriod is the SyncPeriod of the manager's cache. A tracked TLS Secret is no longer tracked if the Database is
	// not reconciled for two such periods. The default is 10 hours, which is also the default of a manager.
	SyncPeriod time.Duration
}

// SetupWithManager adds the controller to a manager. Its scheme must have the types of AddToScheme and of client-go.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Backups == nil {
		return errors.New("database.Options: Backups is required")
	}
	if o.Poll == 0 {
		o.Poll = 10 * time.Second
	}
	if o.SyncPeriod == 0 {
		o.SyncPeriod = 10 * time.Hour
	}
	// The first release wrote under the name of its binary. Now the name is derived from the kind.
	c := reconcilers.NewConfig(mgr, &databasev1.Database{}, o.SyncPeriod).WithFormerFieldOwners("database")
	return controller.NewDatabaseReconciler(c, o.Backups, o.Poll, rand.Text).SetupWithManager(ctx, mgr)
}

// SetupWebhooks serves the admission webhooks of the kind Database from the webhook server of a manager. Its scheme
// must have the types of AddToScheme. The webhooks need a certificate and must be registered, see Webhooks. The
// controller works without them.
func SetupWebhooks(ctx context.Context, mgr ctrl.Manager) error {
	return webhookv1.SetupDatabaseWebhookWithManager(ctx, mgr)
}
