// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/observe"
	"trueup.dev/observe/otel"
	"trueup.dev/reconcilers"
)

// traced starts a span around a reconciler.
func traced(name string, reconciler subReconciler) subReconciler {
	return &reconcilers.Advice[*corev1.ConfigMap]{
		Reconciler: reconciler,
		Around: func(
			ctx context.Context, c *corev1.ConfigMap, reconciler subReconciler,
		) (reconcilers.Result, error) {
			ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("test").Start(ctx, name)
			defer span.End()
			return reconciler.Reconcile(ctx, c)
		},
	}
}

func TestWhatIsBelowAStep(t *testing.T) {
	provider, exported := newProvider()
	reconcileOnce(t, sequence{
		do("Before", func(context.Context, client.Client) error { return nil }),
		traced("own span", do("Read", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &corev1.SecretList{})
		})),
		keeper(),
	}, otel.New(provider, otel.Options{}))
	expect(t, drawing{}, exported.GetSpans(),
		"reconcile website",
		"  event trueup.cause",
		"  website",
		"    get ConfigMap",
		"    website.0",
		"      website.0.Before",
		"    website.1",
		"      website.1.Advice",
		"        own span",
		"          website.1.Advice.Read",
		"            list Secret",
		"    website.2",
		"      website.2.Secret",
		"        list Secret",
		"        create Secret (client)",
	)
}

func TestWhatDidAHandlerNote(t *testing.T) {
	for name, noOps := range map[string]bool{"before the span is recorded": false, "on the recorded span": true} {
		t.Run(name, func(t *testing.T) {
			provider, exported := newProvider()
			reconcileOnce(t, sequence{
				do("Note", func(ctx context.Context, _ client.Client) error {
					span := trace.SpanFromContext(ctx)
					if !span.IsRecording() {
						return errors.New("the span does not record")
					}
					span.SetName("noted")
					span.SetAttributes(attribute.Int("note.size", 3))
					span.AddEvent("looked up", trace.WithAttributes(attribute.Bool("note.found", true)))
					span.AddLink(trace.Link{Attributes: []attribute.KeyValue{attribute.Bool("note.link", true)}})
					span.SetStatus(codes.Ok, "")
					span.RecordError(nil)
					span.End() // must not end the step
					return nil
				}),
				do("Quota", fails),
			}, otel.New(provider, otel.Options{NoOps: noOps}))
			expect(t, drawing{keys: []string{"note.size", "note.found", "note.link"}}, exported.GetSpans(),
				"reconcile website FAILED quota exceeded",
				"  event trueup.cause",
				"  website FAILED quota exceeded",
				"    get ConfigMap",
				"    website.0",
				"      noted note.size=3",
				"        event looked up note.found=true",
				"        link to an unknown span note.link=true",
				"    website.1 FAILED quota exceeded",
				"      website.1.Quota FAILED quota exceeded",
				"        event exception",
			)
		})
	}
}

// TestWhatIfAHandlerOutlivesTheReconcile tests spans that are used after the reconcile has ended.
func TestWhatIfAHandlerOutlivesTheReconcile(t *testing.T) {
	for name, tt := range map[string]struct {
		write bool
		want  int // spans
	}{
		"not traced": {want: 1},
		"traced":     {write: true, want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			provider, exported := newProvider()
			var later context.Context
			var laterClient client.Client
			reconcileOnce(t, do("Start", func(ctx context.Context, c client.Client) error {
				later, laterClient = ctx, c
				if tt.write {
					return c.Create(ctx, newConfigMap("new"))
				}
				return nil
			}), otel.New(provider, otel.Options{}))
			if err := laterClient.Create(later, newConfigMap("later")); err != nil {
				t.Fatal(err)
			}
			span := trace.SpanFromContext(later)
			span.SetAttributes(attribute.Bool("late", true))
			span.RecordError(errQuota)
			if span.IsRecording() {
				t.Error("the span records after its end")
			}
			_, below := provider.Tracer("test").Start(later, "late")
			below.End()
			spans := exported.GetSpans()
			if len(spans) != tt.want || below.SpanContext().TraceID() != spans[0].SpanContext.TraceID() {
				t.Errorf("got %d spans, want %d:\n%s", len(spans), tt.want, drawing{}.draw(spans))
			}
		})
	}
}

// Two listeners export to two places. Each has complete traces.
func TestWhatDoTwoProvidersGet(t *testing.T) {
	first, exportedFirst := newProvider()
	second, exportedSecond := newProvider()
	reconcileOnce(t, keeper(), otel.New(first, otel.Options{}), otel.New(second, otel.Options{NoOps: true}))
	want := []string{
		"reconcile website", "  event trueup.cause", "  website", "    get ConfigMap", "    website.Secret",
		"      list Secret", "      create Secret (client)",
	}
	expect(t, drawing{}, exportedFirst.GetSpans(), want...)
	expect(t, drawing{}, exportedSecond.GetSpans(), want...)
}

// TestWhatDidGoroutinesDo tests spans that several goroutines use while the reconcile becomes one that is traced.
func TestWhatDidGoroutinesDo(t *testing.T) {
	const goroutines = 20
	provider, exported := newProvider()
	reconcileOnce(t, do("All", func(ctx context.Context, c client.Client) error {
		var running sync.WaitGroup
		for i := range goroutines {
			running.Go(func() {
				ctx, span := provider.Tracer("test").Start(ctx, "own")
				defer span.End()
				trace.SpanFromContext(ctx).AddEvent("started")
				_ = c.Create(ctx, newConfigMap(fmt.Sprint(i)))
			})
		}
		running.Wait()
		return nil
	}), otel.New(provider, otel.Options{}))
	count := map[string]int{}
	for _, s := range exported.GetSpans() {
		count[s.Name]++
	}
	if count["own"] != goroutines || count["create ConfigMap"] != goroutines || count["website.All"] != 1 {
		t.Errorf("got spans %v", count)
	}
}

type items = reconcilers.ForEach[*corev1.ConfigMap, string]

func TestHowLargeCanATraceGet(t *testing.T) {
	provider, exported := newProvider()
	reconcileOnce(t, &items{
		Items: func(context.Context, *corev1.ConfigMap) ([]string, error) { return []string{"a", "b", "c"}, nil },
		Reconciler: do("Create", func(ctx context.Context, c client.Client) error {
			item := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item
			return c.Create(ctx, newConfigMap(item))
		}),
	}, otel.New(provider, otel.Options{MaxSpans: 8}))
	expect(t, drawing{keys: []string{"trueup.reconcile.omitted_spans", "k8s.object.name", "trueup.step"}},
		exported.GetSpans(),
		"reconcile website name=blog trueup.reconcile.omitted_spans=5",
		"  event trueup.cause",
		"  website trueup.step=website",
		"    get ConfigMap name=blog",
		"    website.ForEach trueup.step=website.ForEach",
		"      website.ForEach.* trueup.step=website.ForEach.0",
		"        website.ForEach.*.Create trueup.step=website.ForEach.0.Create",
		"          create ConfigMap (client) name=a",
		"      website.ForEach.* trueup.step=website.ForEach.1",
	)
}

// TestIsAFailureOfAnOmittedStepTraced tests that the limit omits no failure of a reconcile.
func TestIsAFailureOfAnOmittedStepTraced(t *testing.T) {
	provider, exported := newProvider()
	reconcileOnce(t, sequence{do("Quota", fails)}, otel.New(provider, otel.Options{MaxSpans: 2}))
	expect(t, drawing{keys: []string{"trueup.reconcile.omitted_spans", "exception.message"}}, exported.GetSpans(),
		"reconcile website FAILED quota exceeded trueup.reconcile.omitted_spans=3",
		"  event trueup.cause",
		"  website FAILED quota exceeded",
		"    event exception exception.message=quota exceeded",
	)
}

// TestWhatIfItIsAddedLate tests a listener that is added while a reconcile runs.
func TestWhatIfItIsAddedLate(t *testing.T) {
	provider, exported := newProvider()
	listener := otel.New(provider, otel.Options{NoOps: true})
	run := &observe.Run{Controller: "website"}
	for _, event := range []observe.Event{
		&observe.StepStarted{Run: run, Path: []string{"website"}},
		&observe.Call{Run: run, Verb: observe.VerbCreate},
		&observe.Call{Verb: observe.VerbCreate}, // not by a reconcile
		&observe.Tracked{Run: run}, &observe.StaleWait{Run: run}, &observe.LoopFound{Run: run},
		&observe.StepFinished{Run: run, Path: []string{"website"}},
		&observe.ReconcileFinished{Run: run},
	} {
		if listener.Observe(t.Context(), event) != t.Context() {
			t.Errorf("%T changed the context", event)
		}
	}
	expect(t, drawing{}, exported.GetSpans())
}
