// SPDX-License-Identifier: Apache-2.0

// Package time gives every reconcile request one stable "now". It is commonly
// imported as rtime.
//
// Reconcilers that record timestamps are hard to test with [time.Now], which returns a different time on every call.
// Read the time from the context instead:
//
//	resource.Status.CheckedAt = metav1.NewTime(rtime.RetrieveNow(ctx))
//
// Root reconcilers stash the time at which the request started, so all steps of one request see the same time, however
// long they take. Call [time.Now] to measure elapsed time.
//
// A test pins the time by stashing it before the reconciler runs. A root reconciler does not overwrite a stashed time:
//
//	ctx = rtime.StashNow(ctx, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
//
// Conditions managed with the apis package also get their lastTransitionTime from it.
package time
