// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

func ExampleDefault() {
	var mgr manager.Manager // for example from controllerruntime.NewManager
	observe.Of(mgr).Add(metrics.Default())
}

func ExampleNew() {
	registry := prometheus.NewRegistry()
	listener, err := metrics.New(registry)
	if err != nil {
		panic(err)
	}
	run := &observe.Run{Controller: "website", Causes: []observe.Cause{{Type: observe.CauseOwned, Count: 1}}}
	listener.Observe(context.Background(), &observe.ReconcileStarted{Run: run})

	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetCounter().GetValue() > 0 {
				fmt.Println(family.GetName(), m.GetLabel()[0].GetValue())
			}
		}
	}
	// Output: trueup_reconcile_causes_total Owned
}
