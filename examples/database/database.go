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
func CRDs() fs.FS { return folder("config/crd/bases") }

// RBAC is the ClusterRole with all that the controller needs, as a YAML file.
func RBAC() fs.FS { return folder("config/rbac") }

// Webhooks are the webhook configurations that register what SetupWebhooks serves, as YAML files. They call a Service
// named webhook-service in the namespace system; without one, put a URL and the caBundle of its certificate in its
// place.
func Webhooks() fs.FS { return folder("config/webhook") }

// Samples are sample Databases, as YAML files.
func Samples() fs.FS { return folder("config/samples") }

func folder(path string) fs.FS {
	sub, err := fs.Sub(config, path)
	if err != nil {
		panic(err) // only for a path that is malformed
	}
	return sub
}

// Options are what the controller needs besides a manager.
type Options struct {
	// Backups is the external system that takes the final backups. Required.
	Backups backup.System
	// Poll is how often the external system is asked whether a running backup is complete. The default is ten seconds.
	Poll time.Duration
	// SyncPeriod is the SyncPeriod of the manager's cache: TLS Secrets that are tracked are forgotten when two of
	// them pass without a reconcile of the Database. The default is 10 hours, which is also the default of a manager.
	SyncPeriod time.Duration
}

// SetupWithManager adds the controller to a manager, whose scheme has the types of AddToScheme and of client-go.
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
	c := reconcilers.NewConfig(mgr, &databasev1.Database{}, o.SyncPeriod)
	return controller.NewDatabaseReconciler(c, o.Backups, o.Poll, rand.Text).SetupWithManager(ctx, mgr)
}

// SetupWebhooks serves the admission webhooks of the kind Database from the webhook server of a manager, whose scheme
// has the types of AddToScheme. They need a certificate, and to be registered, see Webhooks. The controller works
// without them.
func SetupWebhooks(ctx context.Context, mgr ctrl.Manager) error {
	return webhookv1.SetupDatabaseWebhookWithManager(ctx, mgr)
}
