// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// newProvider returns a provider, and what it exports.
func newProvider(options ...sdktrace.TracerProviderOption) (trace.TracerProvider, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(exporter))...)
	return provider, exporter
}

// drawing draws traces as text.
type drawing struct {
	// durations adds the durations of spans.
	durations bool
	// keys are the keys of the attributes that are shown, or prefixes that end with a dot.
	keys []string
}

// draw draws the exported spans, the oldest trace first.
func (d drawing) draw(spans tracetest.SpanStubs) []string {
	lines := []string{}
	var below func(parent trace.SpanID, indent string)
	below = func(parent trace.SpanID, indent string) {
		children := slices.DeleteFunc(slices.Clone(spans), func(s tracetest.SpanStub) bool {
			return s.Parent.SpanID() != parent
		})
		slices.SortStableFunc(children, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
		for _, s := range children {
			lines = append(lines, indent+d.line(s))
			for _, note := range d.notes(s, spans) {
				lines = append(lines, indent+"  "+note)
			}
			below(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	below(trace.SpanID{}, "")
	return lines
}

// notes returns the events and the links of a span.
func (d drawing) notes(s tracetest.SpanStub, spans tracetest.SpanStubs) (lines []string) {
	for _, e := range s.Events {
		lines = append(lines, "event "+e.Name+d.attributes(e.Attributes))
	}
	for _, link := range s.Links {
		to := "an unknown span"
		for _, other := range spans {
			if other.SpanContext.Equal(link.SpanContext) {
				to = other.Name
			}
		}
		lines = append(lines, "link to "+to+d.attributes(link.Attributes))
	}
	return lines
}

func (d drawing) line(s tracetest.SpanStub) string {
	line := s.Name
	if s.SpanKind != trace.SpanKindInternal {
		line += " (" + s.SpanKind.String() + ")"
	}
	if d.durations {
		line += " " + s.EndTime.Sub(s.StartTime).String()
	}
	if s.Status.Code == codes.Error {
		line += " FAILED " + s.Status.Description
	}
	return line + d.attributes(s.Attributes)
}

// short removes prefixes of keys.
var short = strings.NewReplacer("trueup.call.", "", "trueup.cause.", "", "k8s.object.", "")

func (d drawing) attributes(all []attribute.KeyValue) string {
	text := ""
	for _, a := range all {
		if slices.ContainsFunc(d.keys, func(key string) bool {
			return string(a.Key) == key || strings.HasSuffix(key, ".") && strings.HasPrefix(string(a.Key), key)
		}) {
			text += fmt.Sprintf(" %s=%s", short.Replace(string(a.Key)), a.Value.String())
		}
	}
	return text
}

func expect(t *testing.T, d drawing, spans tracetest.SpanStubs, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, d.draw(spans), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("traces (-want +got):\n%s", diff)
	}
}

func contains(spans tracetest.SpanStubs, span trace.SpanContext) bool {
	return slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool { return s.SpanContext.Equal(span) })
}
