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
	"trueup.dev/shards"
)

//go:embed config/crd/bases/*.yaml config/rbac/*.yaml config/samples/*.yaml config/webhook/*.yaml
var config embed.FS

// AddToScheme registers the kind Website with a scheme.
var AddToScheme = websitev1.AddToScheme

// CRDs are the CustomResourceDefinitions of the example, as YAML files.
func CRDs() fs.FS { return dir("config/crd/bases") }

// RBAC is the ClusterRole with the permissions of the controller, as a YAML file.
func RBAC() fs.FS { return dir("config/rbac") }

// Webhooks are the webhook configurations that register the handlers of SetupWebhooks, as YAML files. They call a
// Service named webhook-service in the namespace system; without a Service, replace it with a URL and the caBundle of
// its certificate.
func Webhooks() fs.FS { return dir("config/webhook") }

// Samples are sample Websites and the themes they use, as YAML files.
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
	// Records is the external system in which sites are published. Required.
	Records dns.Provider
	// Recheck is the interval at which the controller checks the external system. The default is one minute.
	Recheck time.Duration
	// SyncPeriod is the SyncPeriod of the manager's cache. A tracked theme is no longer tracked if the site is not
	// reconciled for two such periods. The default is 10 hours, which is also the default of a manager.
	SyncPeriod time.Duration
	// Shard is this replica, if the sites are divided among several replicas. Its Kinds must have Website. They must not
	// have ConfigMap, because the themes are ConfigMaps and each replica needs all of them. The default is nil.
	Shard *shards.Shard
}

// SetupWithManager adds the controller to a manager. Its scheme must have the types of AddToScheme and of client-go.
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
	c.Shard = o.Shard
	return controller.NewWebsiteReconciler(c, o.Records, o.Recheck).SetupWithManager(ctx, mgr)
}

// SetupWebhooks serves the admission webhooks of the kind Website from the webhook server of a manager. Its scheme must
// have the types of AddToScheme. The webhooks need a certificate and must be registered, see Webhooks. The controller
// works without them.
func SetupWebhooks(ctx context.Context, mgr ctrl.Manager) error {
	return webhookv1.SetupWebsiteWebhookWithManager(ctx, mgr)
}
