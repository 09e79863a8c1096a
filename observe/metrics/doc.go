// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes what controllers do as metrics for Prometheus: causes of reconciles, steps, writes, failing
// objects, the time until a change of a spec has taken effect, and what reconcilers, informers and handlers report. No
// other package of this module makes metrics.
//
// reconcilers.NewConfig and informer.View enable them for their manager. For another manager, or to disable them:
//
//	observe.Of(mgr).Add(metrics.Default())
//	observe.Of(mgr).Remove(metrics.Default())
//
// The guide on operating lists the metrics, with alert rules and a dashboard.
//
// No label contains the name of an object. The number of series depends on the number of controllers, steps and kinds,
// and is limited: see [New].
//
// The converge time is the time from the event that announces the creation of an object, or the latest change of its
// generation, until the end of the first reconcile that finds the object converged. A reconcile finds it converged if
// it did not only wait for the caches, ends without an error, and
//
//   - the status of the object has no observedGeneration, or one that is not older than this generation, and
//   - the condition Ready is True in the event that caused the reconcile, or in the answer of its last write of the
//     object. A kind without this condition is converged if the reconcile was not halted, and requests no requeue.
//
// A further change of the spec starts the measurement again. An object that is deleted before it converges is not
// measured, nor is an object that existed when the controller started, until its spec changes. The event arrives later
// than the change, usually by milliseconds.
package metrics
