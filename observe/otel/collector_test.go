// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// collector receives traces over OTLP, as the collector of OpenTelemetry does.
type collector struct {
	collectorpb.UnimplementedTraceServiceServer
	mu       sync.Mutex
	spans    tracetest.SpanStubs
	raw      []byte
	scopes   map[string]string // the URLs of the schemas, by instrumentation
	received chan struct{}
}

func (c *collector) Export(
	_ context.Context, request *collectorpb.ExportTraceServiceRequest,
) (*collectorpb.ExportTraceServiceResponse, error) {
	raw, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, raw...)
	for _, ofResource := range request.GetResourceSpans() {
		for _, ofScope := range ofResource.GetScopeSpans() {
			c.scopes[ofScope.GetScope().GetName()] = ofScope.GetSchemaUrl()
			for _, s := range ofScope.GetSpans() {
				c.spans = append(c.spans, decode(s))
			}
		}
	}
	select {
	case c.received <- struct{}{}:
	default:
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

// startCollector starts a collector that the environment names to exporters.
func startCollector(t *testing.T) *collector {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{scopes: map[string]string{}, received: make(chan struct{}, 1)}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, c)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		server.GracefulStop()
		serving.Wait()
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // milliseconds
	return c
}

// traces waits for n traces of an object, and returns their spans.
func (c *collector) traces(t *testing.T, name string, n int) tracetest.SpanStubs {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		if spans, found := c.find(name); found >= n {
			return spans
		}
		select {
		case <-c.received:
		case <-timeout:
			spans, found := c.find(name)
			t.Fatalf("received %d traces, want %d: %v", found, n, drawing{}.draw(spans))
		}
	}
}

// find returns the spans of the traces whose reconciles are received. They are the last span of a trace.
func (c *collector) find(name string) (spans tracetest.SpanStubs, traces int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[trace.TraceID]bool{}
	for _, s := range c.spans {
		if !s.Parent.IsValid() && slices.Contains(s.Attributes, attribute.String("k8s.object.name", name)) {
			found[s.SpanContext.TraceID()] = true
		}
	}
	for _, s := range c.spans {
		if found[s.SpanContext.TraceID()] {
			spans = append(spans, s)
			if !s.Parent.IsValid() {
				traces++
			}
		}
	}
	return spans, traces
}

func (c *collector) contains(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.raw, []byte(text))
}

// decode returns a span of OTLP as one of the SDK.
func decode(s *tracepb.Span) tracetest.SpanStub {
	stub := tracetest.SpanStub{
		Name: s.GetName(), SpanKind: trace.SpanKind(s.GetKind()), Attributes: decodeAttributes(s.GetAttributes()),
		SpanContext: decodeContext(s.GetTraceId(), s.GetSpanId()),
		StartTime:   decodeTime(s.GetStartTimeUnixNano()), EndTime: decodeTime(s.GetEndTimeUnixNano()),
	}
	if len(s.GetParentSpanId()) > 0 {
		stub.Parent = decodeContext(s.GetTraceId(), s.GetParentSpanId())
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		stub.Status = sdktrace.Status{Code: codes.Error, Description: s.GetStatus().GetMessage()}
	}
	for _, e := range s.GetEvents() {
		stub.Events = append(stub.Events, sdktrace.Event{
			Name: e.GetName(), Time: decodeTime(e.GetTimeUnixNano()), Attributes: decodeAttributes(e.GetAttributes()),
		})
	}
	for _, link := range s.GetLinks() {
		stub.Links = append(stub.Links, sdktrace.Link{
			SpanContext: decodeContext(link.GetTraceId(), link.GetSpanId()),
			Attributes:  decodeAttributes(link.GetAttributes()),
		})
	}
	return stub
}

func decodeTime(nanoseconds uint64) time.Time { return time.Unix(0, int64(nanoseconds)) }

func decodeContext(traceID, spanID []byte) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(traceID), SpanID: trace.SpanID(spanID)})
}

func decodeAttributes(all []*commonpb.KeyValue) (attributes []attribute.KeyValue) {
	for _, a := range all {
		key := attribute.Key(a.GetKey())
		switch value := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			attributes = append(attributes, key.String(value.StringValue))
		case *commonpb.AnyValue_BoolValue:
			attributes = append(attributes, key.Bool(value.BoolValue))
		case *commonpb.AnyValue_IntValue:
			attributes = append(attributes, key.Int64(value.IntValue))
		case *commonpb.AnyValue_DoubleValue:
			attributes = append(attributes, key.Float64(value.DoubleValue))
		case *commonpb.AnyValue_ArrayValue:
			texts := []string{}
			for _, element := range value.ArrayValue.GetValues() {
				texts = append(texts, element.GetStringValue())
			}
			attributes = append(attributes, key.StringSlice(texts))
		}
	}
	return attributes
}
