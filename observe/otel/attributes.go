// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// The keys of attributes.
const (
	keyAPIVersion      = attribute.Key("k8s.object.api_version")
	keyKind            = attribute.Key("k8s.object.kind")
	keyName            = attribute.Key("k8s.object.name")
	keyResourceVersion = attribute.Key("k8s.object.resource_version")

	keyController   = attribute.Key("trueup.controller")
	keyReconcileID  = attribute.Key("trueup.reconcile.id")
	keyCauseTypes   = attribute.Key("trueup.reconcile.causes")
	keyOmittedCause = attribute.Key("trueup.reconcile.omitted_causes")
	keyOmittedSpans = attribute.Key("trueup.reconcile.omitted_spans")
	keyResult       = attribute.Key("trueup.reconcile.result")
	keyRequeueAfter = attribute.Key("trueup.reconcile.requeue_after")

	keyStep    = attribute.Key("trueup.step")
	keyOutcome = attribute.Key("trueup.step.outcome")

	keyVerb        = attribute.Key("trueup.call.verb")
	keySubresource = attribute.Key("trueup.call.subresource")
	keyApply       = attribute.Key("trueup.call.apply")
	keyDryRun      = attribute.Key("trueup.call.dry_run")
	keyCached      = attribute.Key("trueup.call.cached")
	keyNoOp        = attribute.Key("trueup.call.no_op")
	keyFound       = attribute.Key("trueup.call.found")
	keyItems       = attribute.Key("trueup.call.items")
	keyBefore      = attribute.Key("trueup.call.resource_version_before")

	keyGroup    = attribute.Key("trueup.tracked.group")
	keySelector = attribute.Key("trueup.tracked.selector")

	keyCause   = attribute.Key("trueup.cause.type")
	keyEvent   = attribute.Key("trueup.cause.verb")
	keyChanged = attribute.Key("trueup.cause.changed")
	keyManager = attribute.Key("trueup.cause.field_manager")
	keyCount   = attribute.Key("trueup.cause.count")
	keyAttempt = attribute.Key("trueup.cause.attempt")
	keyError   = attribute.Key("trueup.cause.error")
	keyDelay   = attribute.Key("trueup.delay")

	keyLoopReconciles = attribute.Key("trueup.loop.reconciles")
	keyLoopDuration   = attribute.Key("trueup.loop.duration")
	keyLoopRepeats    = attribute.Key("trueup.loop.repeats")
)

var errorTypePanic = semconv.ErrorTypeKey.String("panic")

// errorType returns the reason of an error of the API, or the type of another error.
func errorType(err error) attribute.KeyValue {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return semconv.ErrorTypeKey.String(string(reason))
	}
	return semconv.ErrorType(err)
}

func seconds(key attribute.Key, d time.Duration) attribute.KeyValue { return key.Float64(d.Seconds()) }

// objectAttributes returns the attributes of an object. Those that are unknown are missing.
func objectAttributes(kind schema.GroupVersionKind, object types.NamespacedName) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 10)
	if kind.Kind != "" {
		attributes = append(attributes, keyAPIVersion.String(kind.GroupVersion().String()), keyKind.String(kind.Kind))
	}
	if object.Namespace != "" {
		attributes = append(attributes, semconv.K8SNamespaceName(object.Namespace))
	}
	if object.Name != "" {
		attributes = append(attributes, keyName.String(object.Name))
	}
	return attributes
}

// describe returns what is known when a span starts, so that a sampler can use it.
func (s *span) describe() (name string, kind trace.SpanKind, attributes []attribute.KeyValue) {
	switch {
	case s.call != nil:
		kind = trace.SpanKindClient
		if s.call.Cached {
			kind = trace.SpanKindInternal
		}
		return callName(s.call), kind, callAttributes(s.call)
	case s.path != nil:
		return s.stepName(), trace.SpanKindInternal, []attribute.KeyValue{keyStep.String(strings.Join(s.path, "."))}
	}
	run := s.reconcile.run
	attributes = append(objectAttributes(run.Kind, run.Object),
		keyController.String(run.Controller), keyReconcileID.String(run.ID), keyCauseTypes.StringSlice(causeTypes(run)))
	return "reconcile " + run.Controller, trace.SpanKindInternal, attributes
}

func causeTypes(run *observe.Run) (names []string) {
	for _, cause := range run.Causes {
		names = append(names, string(cause.Type))
	}
	return names
}

func callName(c *observe.Call) string {
	name := c.Verb
	if c.Apply {
		name = "apply"
	}
	name += " " + c.Kind.Kind
	if c.Subresource != "" {
		name += "/" + c.Subresource
	}
	return name
}

func callAttributes(c *observe.Call) []attribute.KeyValue {
	attributes := append(objectAttributes(c.Kind, c.Object), keyVerb.String(c.Verb))
	if c.Subresource != "" {
		attributes = append(attributes, keySubresource.String(c.Subresource))
	}
	if c.After != "" {
		attributes = append(attributes, keyResourceVersion.String(c.After))
	}
	if c.IsWrite() {
		if c.Before != "" {
			attributes = append(attributes, keyBefore.String(c.Before))
		}
		if c.Apply {
			attributes = append(attributes, keyApply.Bool(true))
		}
		if c.DryRun {
			attributes = append(attributes, keyDryRun.Bool(true))
		}
		return append(attributes, keyNoOp.Bool(c.NoOp))
	}
	attributes = append(attributes, keyCached.Bool(c.Cached))
	switch {
	case c.Verb == observe.VerbList && c.Err == nil:
		attributes = append(attributes, keyItems.Int(c.Items))
	case c.Err != nil && !callFailed(c):
		attributes = append(attributes, keyFound.Bool(false))
	}
	return attributes
}

func resultAttributes(e *observe.ReconcileFinished, omitted int) []attribute.KeyValue {
	attributes := []attribute.KeyValue{}
	result := "success"
	switch {
	case e.Panicked:
		result = "panic"
	case e.Err != nil:
		result = "error"
	case e.Result.RequeueAfter > 0:
		result = "requeue_after"
		attributes = append(attributes, seconds(keyRequeueAfter, e.Result.RequeueAfter))
	case !e.Result.IsZero():
		result = "requeue"
	}
	if e.Run.OmittedCauses > 0 {
		attributes = append(attributes, keyOmittedCause.Int(e.Run.OmittedCauses))
	}
	if omitted > 0 {
		attributes = append(attributes, keyOmittedSpans.Int(omitted))
	}
	return append(attributes, keyResult.String(result))
}

func trackedAttributes(e *observe.Tracked) []attribute.KeyValue {
	object := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
	attributes := objectAttributes(schema.GroupVersionKind{}, object)
	attributes = append(attributes, keyKind.String(e.Kind.Kind))
	if e.Kind.Group != "" {
		attributes = append(attributes, keyGroup.String(e.Kind.Group))
	}
	if e.Selector != "" {
		attributes = append(attributes, keySelector.String(e.Selector))
	}
	return attributes
}

func loopAttributes(e *observe.LoopFound) []attribute.KeyValue {
	return []attribute.KeyValue{
		keyLoopReconciles.Int(e.Reconciles), seconds(keyLoopDuration, e.Within), keyLoopRepeats.StringSlice(e.Repeats),
	}
}
