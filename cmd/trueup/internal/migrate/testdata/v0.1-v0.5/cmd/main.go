// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	streamingv1alpha1 "example.com/streaming/api/v1alpha1"
	"example.com/streaming/controllers"
	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	"github.com/vmware-labs/reconciler-runtime/tracker"
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func main() {
	syncPeriod := flag.Duration("sync-period", 10*time.Hour, "the time between resyncs")
	flag.Parse()
	_ = streamingv1alpha1.AddToScheme(scheme)
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err != nil {
		setupLog.Error(err, "unable to start manager")
		os.Exit(1)
	}
	config := reconcilers.Config{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  mgr.GetEventRecorderFor("Processor"),
		Log:       ctrl.Log.WithName("controllers").WithName("Processor"),
		Scheme:    mgr.GetScheme(),
		Tracker:   tracker.New(*syncPeriod),
	}
	if err := controllers.ProcessorReconciler(config, "system").SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "unable to create controller")
		os.Exit(1)
	}
	if err := ctrl.NewWebhookManagedBy(mgr).For(&streamingv1alpha1.Processor{}).Complete(); err != nil {
		setupLog.Error(err, "unable to create webhook")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
