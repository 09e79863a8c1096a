// SPDX-License-Identifier: Apache-2.0

package website

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/examples/website/internal/controller"
	webhookv1 "trueup.dev/examples/website/internal/webhook/v1"
	"trueup.dev/reconcilers"
)

//go:embed config/crd/bases/*.yaml config/rbac/*.yaml config/samples/*.yaml config/webhook/*.yaml
var config embed.FS

// AddToScheme registers the kind Website with a scheme.
var AddToScheme = websitev1.AddToScheme

// CRDs are the CustomResourceDefinitions of the example, as YAML files.
func CRDs() fs.FS { return folder("config/crd/bases") }

// RBAC is the ClusterRole with all that the controller needs, as a YAML file.
func RBAC() fs.FS { return folder("config/rbac") }

// Webhooks are the webhook configurations that register what SetupWebhooks serves, as YAML files. They call a Service
// named webhook-service in the namespace system; without one, put a URL and the caBundle of its certificate in its
// place.
func Webhooks() fs.FS { return folder("config/webhook") }

// Samples are sample Websites and the themes they use, as YAML files.
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
	// Records is the external system that sites are published in. Required.
	Records dns.Provider
	// Recheck is how often the external system is asked again. The default is one minute.
	Recheck time.Duration
	// SyncPeriod is the SyncPeriod of the manager's cache: themes that are followed are forgotten when two of them pass
	// without a look at the site. The default is 10 hours, which is also the default of a manager.
	SyncPeriod time.Duration
}

// SetupWithManager adds the controller to a manager, whose scheme has the types of AddToScheme and of client-go.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Records == nil {
		return errors.New("website.Options: Records is required")
	}
	if o.Recheck == 0 {
		o.Recheck = time.Minute
	}
	if o.SyncPeriod == 0 {
		o.SyncPeriod = 10 * time.Hour
	}
	c := reconcilers.NewConfig(mgr, &websitev1.Website{}, o.SyncPeriod)
	return controller.NewWebsiteReconciler(c, o.Records, o.Recheck).SetupWithManager(ctx, mgr)
}

// SetupWebhooks serves the admission webhooks of the kind Website from the webhook server of a manager, whose scheme
// has the types of AddToScheme. They need a certificate, and to be registered, see Webhooks. The controller works
// without them.
func SetupWebhooks(ctx context.Context, mgr ctrl.Manager) error {
	return webhookv1.SetupWebsiteWebhookWithManager(ctx, mgr)
}
