// SPDX-License-Identifier: Apache-2.0

package database_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/examples/database"
	"trueup.dev/examples/database/backup"
)

func ExampleSetupWithManager() {
	run := func(ctx context.Context, cfg *rest.Config) error {
		scheme := runtime.NewScheme()
		if err := clientgoscheme.AddToScheme(scheme); err != nil {
			return err
		}
		if err := database.AddToScheme(scheme); err != nil {
			return err
		}
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme})
		if err != nil {
			return err
		}
		backups := backup.NewDirectory("/var/lib/backups")
		if err := database.SetupWithManager(ctx, mgr, database.Options{Backups: backups}); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	_ = run
}

func ExampleSetupWebhooks() {
	run := func(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme) error {
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme:        scheme,
			WebhookServer: webhook.NewServer(webhook.Options{CertDir: "/etc/database/certificate"}),
		})
		if err != nil {
			return err
		}
		if err := database.SetupWebhooks(ctx, mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	_ = run
}

func ExampleCRDs() {
	fmt.Println(fs.Glob(database.CRDs(), "*.yaml"))
	// Output: [database.trueup.dev_databases.yaml] <nil>
}

func ExampleRBAC() {
	fmt.Println(fs.Glob(database.RBAC(), "*.yaml"))
	// Output: [role.yaml] <nil>
}

func ExampleWebhooks() {
	fmt.Println(fs.Glob(database.Webhooks(), "*.yaml"))
	// Output: [manifests.yaml] <nil>
}

func ExampleSamples() {
	fmt.Println(fs.Glob(database.Samples(), "*.yaml"))
	// Output: [shop.yaml] <nil>
}

func TestSetupWithManager_needsBackups(t *testing.T) {
	err := database.SetupWithManager(t.Context(), nil, database.Options{})
	if err == nil || err.Error() != "database.Options: Backups is required" {
		t.Errorf("error = %v", err)
	}
}
