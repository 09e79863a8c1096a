// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/observe"
	"trueup.dev/observe/otel"
)

// region operating-traces

// AddTraces exports traces to a collector. The environment variables of OpenTelemetry name it, for example
// OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_SERVICE_NAME. The returned function exports the last spans.
func AddTraces(ctx context.Context, mgr manager.Manager) (shutdown func(context.Context) error, err error) {
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	observe.Of(mgr).Add(otel.New(provider, otel.Options{}))
	return provider.Shutdown, nil
}

// endregion

func ExampleNew() {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	listener := otel.New(provider, otel.Options{}) // observe.Of(mgr).Add(listener)

	run := &observe.Run{Controller: "website", Causes: []observe.Cause{{Type: observe.CauseStartUp, Count: 1}}}
	ctx := listener.Observe(context.Background(), &observe.ReconcileStarted{Run: run})
	listener.Observe(ctx, &observe.Call{Run: run, Verb: observe.VerbGet, Kind: configMaps})
	listener.Observe(ctx, &observe.ReconcileFinished{Run: run, Err: errors.New("quota exceeded")})

	for _, span := range exporter.GetSpans() {
		fmt.Printf("%s %q\n", span.Name, span.Status.Description)
	}
	// Output:
	// get ConfigMap ""
	// reconcile website "quota exceeded"
}
