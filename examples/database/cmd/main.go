// SPDX-License-Identifier: Apache-2.0

// Command database runs the controller of the kind Database against the cluster of the kubeconfig, or of the pod that
// it runs in.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/examples/database"
	"trueup.dev/examples/database/backup"
	"trueup.dev/graph"
	"trueup.dev/plan"
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(database.AddToScheme(scheme))
}

func main() {
	var metricsAddr, probeAddr, backups string
	var leaderElect, enableWebhooks bool
	var leaseNamespace string
	var webhookOptions webhook.Options
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "The address of the metrics endpoint; 0 disables it.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "The address of /healthz and /readyz.")
	flag.BoolVar(&leaderElect, "leader-elect", false, "Elect one of several managers as the active one.")
	flag.StringVar(
		&leaseNamespace, "leader-election-namespace", "",
		"The namespace of the lease. The default is the namespace of the pod; outside of a pod it has no default.",
	)
	flag.StringVar(&backups, "backups", "backups", "The directory that replaces a backup service.")
	flag.BoolVar(&enableWebhooks, "enable-webhooks", true, "Serve the admission webhooks, which need a certificate.")
	flag.StringVar(
		&webhookOptions.CertDir, "webhook-cert-path", "",
		"The directory of the certificate; the default is <temporary directory>/k8s-webhook-server/serving-certs.",
	)
	flag.StringVar(&webhookOptions.CertName, "webhook-cert-name", "tls.crt", "The file with the certificate.")
	flag.StringVar(&webhookOptions.KeyName, "webhook-cert-key", "tls.key", "The file with the key of the certificate.")
	level := slog.LevelInfo
	flag.TextVar(&level, "log-level", level, "The log level: DEBUG, INFO, WARN or ERROR.")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))

	setUp := func(ctx context.Context, mgr ctrl.Manager) error {
		err := database.SetupWithManager(ctx, mgr, database.Options{Backups: backup.NewDirectory(backups)})
		if err != nil || !enableWebhooks {
			return err
		}
		return database.SetupWebhooks(ctx, mgr)
	}
	graph.Main(scheme, setUp)
	plan.Main(scheme, setUp)

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: metricsAddr},
		WebhookServer:           webhook.NewServer(webhookOptions),
		HealthProbeBindAddress:  probeAddr,
		LeaderElection:          leaderElect,
		LeaderElectionNamespace: leaseNamespace,
		LeaderElectionID:        "database.trueup.dev",
		// The next leader does not wait until the lease expires. This is safe because nothing runs after the manager has
		// stopped: main ends, and with it what is left of reconciles that did not stop in time.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		setupLog.Error(err, "no manager")
		os.Exit(1)
	}
	ctx := ctrl.SetupSignalHandler()
	if err := setUp(ctx, mgr); err != nil {
		setupLog.Error(err, "unable to set up the controller and its webhooks")
		os.Exit(1)
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		setupLog.Error(err, "unable to set up health check")
		os.Exit(1)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		setupLog.Error(err, "unable to set up ready check")
		os.Exit(1)
	}
	setupLog.Info("starting manager")
	if err := mgr.Start(ctx); err != nil {
		setupLog.Error(err, "the manager stopped")
		os.Exit(1)
	}
}
