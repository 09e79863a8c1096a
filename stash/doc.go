// SPDX-License-Identifier: Apache-2.0

// Package stash passes values between the reconcilers that work on the same
// request.
//
// A reconciler is often split into steps: one looks something up, a later one uses it. A context can only pass values
// down the call tree, and the steps of a sequence are siblings. The stash is a small map on the context: every step of
// a request reads the values that other steps stored.
//
// Describe the value once, with a typed [Stasher]:
//
//	var themeStasher = stash.New[*corev1.ConfigMap]("theme")
//
// One step stores it, a later one reads it back, without a cast:
//
//	themeStasher.Store(ctx, theme)
//	...
//	theme := themeStasher.RetrieveOrDie(ctx)
//
// Choose the reading method by what a missing value means:
//
//   - RetrieveOrDie panics: the value must exist, otherwise the reconcilers are composed incorrectly;
//   - RetrieveOrError returns [ErrValueNotFound] or [ErrValueNotAssignable];
//   - RetrieveOrEmpty returns the zero value: the step works without it.
//
// [StoreValue], [RetrieveValue], [HasValue] and [ClearValue] do the same for
// values of any type, by key.
//
// # Where the map comes from
//
// Root reconcilers install an empty map for every request; nothing survives
// until the next one. Code that runs outside a root reconciler, a test for
// example, calls [WithContext] first. Using a stash on a context that has none
// is a programming error and panics.
//
// # Concurrency
//
// Every operation is atomic: reconcilers of one request may run in parallel and share a stash. Values are returned
// without a copy, so two steps that change the same stored object concurrently need their own lock.
package stash
