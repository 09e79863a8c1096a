// SPDX-License-Identifier: Apache-2.0

// Package step is the one place through which every built-in reconciler does its work.
//
// A step is a node of the reconciler tree, for the time of one call. [Run] names it on the logger, hands its start and its finish to an
// [Observer] when one is attached to the context, and notes in the [Trace] of the request which steps a panic or an error passes on its way up.
// Reconcilers therefore neither build loggers nor measure time, and errors stay as they are. With no observer, and a context without a logger, a step allocates nothing.
package step
