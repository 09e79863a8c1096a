// SPDX-License-Identifier: Apache-2.0

// Package otel makes OpenTelemetry traces of reconciles. It is a module of its own, so that other users of trueup do
// not inherit the modules of OpenTelemetry.
//
//	observe.Of(mgr).Add(otel.New(provider, otel.Options{}))
//
// Each reconcile is a trace: a span for the reconcile, one for each step, and one for each call of a client.
//
//	reconcile website
//	└ website
//	  ├ get Website
//	  └ website.Children
//	    └ website.Children.DeploymentChildReconciler
//	      ├ list Deployment
//	      └ update Deployment
//
// # What is traced
//
// A reconcile that wrote nothing, and in which nothing failed, is not traced, because a controller has many of them.
// Reads that find no object, waits for a cache, requeues and dry runs are neither writes nor failures. [Options.NoOps]
// traces these reconciles, too. The sampler of the provider decides about the other ones.
//
// # Spans of your own
//
// The context of a step has the span of the step. Spans that handlers start with it are below that span, and so are
// spans of instrumented clients:
//
//	ctx, span := tracer.Start(ctx, "read quota")
//	defer span.End()
//
// A reconcile with such a span is traced, even if it wrote nothing: the span would have no parent. The same holds if a
// handler reads the ID of the span, for example for a log line, or records an error. Attributes and events that a
// handler adds to the span of the step do not cause a trace.
//
// # Causes
//
// The span of a reconcile has a link to the span of each write that caused it. If it is a requeue or a retry, it has a
// link to the span of the reconcile before. This is limited to sampled spans of this process: the last 10,000 writes
// and the last 10,000 reconciles. Each other cause is an event "trueup.cause" with the time of the cause. If several
// updates of an object are merged, the link leads to the last one.
//
// # Attributes
//
// Keys with the prefix "trueup." are the keys of this package. The other keys are the keys of the semantic conventions,
// and of the events of Kubernetes that OpenTelemetry's collector receives: k8s.object.api_version, k8s.object.kind,
// k8s.object.name and k8s.object.resource_version. Durations are in seconds. Names of spans do not contain names of
// objects.
//
// Spans do not have contents of objects. A cause has the names of the changed parts, such as spec or status. Spans have
// the messages of errors.
package otel
