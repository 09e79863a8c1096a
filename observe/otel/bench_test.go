// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"trueup.dev/observe"
	"trueup.dev/observe/otel"
)

// BenchmarkNew measures what traces add to a reconcile with five steps and three reads.
func BenchmarkNew(b *testing.B) {
	provider := sdktrace.NewTracerProvider()
	for name, listener := range map[string]observe.Listener{
		"NotTraced": otel.New(provider, otel.Options{}),
		"Traced":    otel.New(provider, otel.Options{NoOps: true}),
	} {
		b.Run(name, func(b *testing.B) {
			run := &observe.Run{
				Controller: "website", Kind: configMaps, Object: blog.NamespacedName, Started: time.Now(),
				Causes: []observe.Cause{{Type: observe.CauseResync, Count: 1}},
			}
			paths := [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d"}, {"a", "b", "c", "d", "e"}}
			call := &observe.Call{Run: run, Verb: observe.VerbGet, Kind: configMaps, Object: blog.NamespacedName, Cached: true}
			b.ReportAllocs()
			for b.Loop() {
				contexts := [6]context.Context{listener.Observe(b.Context(), &observe.ReconcileStarted{Run: run})}
				for i, path := range paths {
					contexts[i+1] = listener.Observe(contexts[i], &observe.StepStarted{Run: run, Path: path})
				}
				for range 3 {
					listener.Observe(contexts[5], call)
				}
				for i := len(paths) - 1; i >= 0; i-- {
					listener.Observe(contexts[i+1], &observe.StepFinished{Run: run, Path: paths[i], Outcome: observe.Succeeded})
				}
				listener.Observe(contexts[0], &observe.ReconcileFinished{Run: run})
			}
		})
	}
}
