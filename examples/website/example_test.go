// SPDX-License-Identifier: Apache-2.0

package website_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/examples/website"
	"trueup.dev/examples/website/dns"
)

func ExampleSetupWithManager() {
	run := func(ctx context.Context, cfg *rest.Config) error {
		scheme := runtime.NewScheme()
		if err := clientgoscheme.AddToScheme(scheme); err != nil {
			return err
		}
		if err := website.AddToScheme(scheme); err != nil {
			return err
		}
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme})
		if err != nil {
			return err
		}
		records := dns.NewDirectory("/var/lib/records")
		if err := website.SetupWithManager(ctx, mgr, website.Options{Records: records}); err != nil {
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
			WebhookServer: webhook.NewServer(webhook.Options{CertDir: "/etc/website/certificate"}),
		})
		if err != nil {
			return err
		}
		if err := website.SetupWebhooks(ctx, mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	_ = run
}

func ExampleWebhooks() {
	files, err := fs.Glob(website.Webhooks(), "*.yaml")
	fmt.Println(files, err)
	// Output: [manifests.yaml] <nil>
}

func ExampleCRDs() {
	files, err := fs.Glob(website.CRDs(), "*.yaml")
	fmt.Println(files, err)
	// Output: [demo.trueup.dev_websites.yaml] <nil>
}

func ExampleRBAC() {
	files, err := fs.Glob(website.RBAC(), "*.yaml")
	fmt.Println(files, err)
	// Output: [role.yaml] <nil>
}

func ExampleSamples() {
	files, err := fs.Glob(website.Samples(), "*.yaml")
	fmt.Println(strings.Join(files, "\n"), err)
	// Output:
	// bakery.yaml
	// bookshop.yaml
	// cinema.yaml
	// museum.yaml
	// themes.yaml <nil>
}

func TestSetupWithManager_needsRecords(t *testing.T) {
	err := website.SetupWithManager(t.Context(), nil, website.Options{})
	if err == nil || err.Error() != "website.Options: Records is required" {
		t.Errorf("error = %v", err)
	}
}
